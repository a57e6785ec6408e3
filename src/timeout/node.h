/* SPDX-License-Identifier: MIT */
/*
 * A timeout in memory: one cache line, all there is of it besides its slot entry.
 *
 * Who owns what when. From birth to push: the scheduling thread. From the push on: links and place
 * are the worker's (the cancel link its canceller's, between the compare-and-swap to CANCELLED and
 * the push). In a ring nothing of the node is but its address: cancelled there, all of it is the
 * canceller's, and the worker, whom a stale entry brings to it, looks at word, engine and deadline only.
 * The word: everybody's, by compare-and-swap; the deadline too, together with the word
 * (api/reschedule.c). Engine, kind and argument do not change from birth to end, but may be read
 * through a stale handle while the node is born anew: so they are atomics, and count only when the
 * word still has the generation afterwards.
 */
#ifndef TWI_TIMEOUT_NODE_H
#define TWI_TIMEOUT_NODE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "mech/mpsc.h"
#include "mech/slab.h"
#include "timeout/word.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/timeout.h>

struct tw_engine;

struct twi_node {
	struct twi_mpsc_node ingress;         /* [handoff E1]; in the wheel: link of its limbo */
	struct twi_mpsc_node cancelled;       /* [handoff E1] */
	_Alignas(16) _Atomic uint64_t word;   /* [atomic E4] the two of them also as one pair */
	_Atomic int64_t deadline_ns;          /* [atomic E4] */
	_Atomic(struct tw_engine *) engine;   /* [handoff E1] */
	_Atomic(const struct tw_kind *) kind; /* [handoff E1] */
	_Atomic(void *) arg;                  /* [handoff E1] */
	uintptr_t place TWI_WORKER_FIELD;     /* [worker] where its slot entry is, or TWI_PLACE_* */
};

_Static_assert(sizeof(struct twi_node) == TWI_BLOCK_BYTES, "a node is one cache line");
_Static_assert(offsetof(struct twi_node, word) >= 2 * sizeof(void *),
	       "a free block leaves the word alone");
_Static_assert(offsetof(struct twi_node, deadline_ns) == offsetof(struct twi_node, word) + 8,
	       "word and deadline are a pair");

/* Not in the wheel. */
#define TWI_PLACE_NONE ((uintptr_t)0)
/*
 * In the wheel's limbo: the list of those that found no memory for a slot entry. The rest of the
 * place is the node before it, or nothing. No slot entry has this number.
 */
#define TWI_PLACE_LIMBO ((uintptr_t)(TWI_BLOCK_BYTES - 1))

/*
 * Not in the wheel yet: among the owner's fresh ones (worker/direct.h). The rest of the place is the
 * index there, times TWI_BLOCK_BYTES.
 */
#define TWI_PLACE_FRESH ((uintptr_t)(TWI_BLOCK_BYTES - 2))

static inline bool twi_place_is_fresh(uintptr_t place)
{
	return (place & (TWI_BLOCK_BYTES - 1)) == TWI_PLACE_FRESH;
}

static inline bool twi_place_is_limbo(uintptr_t place)
{
	return (place & TWI_PLACE_LIMBO) == TWI_PLACE_LIMBO;
}

static inline bool twi_place_is_slot(uintptr_t place)
{
	return place != TWI_PLACE_NONE && !twi_place_is_limbo(place);
}

static inline struct twi_node *twi_node_of_ingress(struct twi_mpsc_node *link)
{
	return TWI_CONTAINER_OF(link, struct twi_node, ingress);
}

static inline struct twi_node *twi_node_of_cancelled(struct twi_mpsc_node *link)
{
	return TWI_CONTAINER_OF(link, struct twi_node, cancelled);
}

/* Not of zeros, and not made up: a birth word has no state bits. */
static inline bool twi_handle_sane(struct tw_handle handle)
{
	return handle.node != NULL && handle.birth >= TWI_WORD_GENERATION &&
	       handle.birth % TWI_WORD_GENERATION == 0;
}

static inline struct twi_node *twi_node_of_handle(struct tw_handle handle)
{
	return handle.node;
}

/*
 * These four pair with birth: who reads a field of a later life finds a later generation in the
 * word afterwards.
 */
static inline struct tw_engine *twi_node_engine(struct twi_node *node)
{
	return twi_load_acquire(&node->engine); /* E4 */
}

static inline const struct tw_kind *twi_node_kind(struct twi_node *node)
{
	return twi_load_acquire(&node->kind); /* E4 */
}

static inline void *twi_node_arg(struct twi_node *node)
{
	return twi_load_acquire(&node->arg); /* E4 */
}

static inline int64_t twi_node_deadline_ns(struct twi_node *node)
{
	return twi_load_acquire(&node->deadline_ns); /* E4 */
}

/* Makes the node a new timeout at rest, not yet known to anybody. */
static inline TWI_WORKER_UNCHECKED struct tw_handle twi_node_birth(struct twi_node *node,
								   struct tw_engine *engine,
								   const struct tw_kind *kind,
								   void *arg, int64_t deadline_ns)
{
	/* RELAXED: the node is ours, and its word at rest. */
	uint64_t birth = twi_word_next_birth(twi_load_relaxed(&node->word));

	/*
	 * The push publishes it. E4: who has the handle of an earlier timeout learns by this one that
	 * it has ended, and may use what its callback wrote.
	 */
	twi_store_release(&node->word, twi_word_to(birth, TWI_WORD_CANCELLED));
	/* E4: the new generation comes before each new field. */
	twi_store_release(&node->engine, engine);
	twi_store_release(&node->kind, kind);               /* E4 */
	twi_store_release(&node->arg, arg);                 /* E4 */
	twi_store_release(&node->deadline_ns, deadline_ns); /* E4 */
	node->place = TWI_PLACE_NONE;
	return (struct tw_handle){.node = node, .birth = birth};
}

/* The same for one that needs no ingress: it waits from here on, in `state`. */
static inline struct tw_handle twi_node_birth_here(struct twi_node *node, enum twi_word_state state,
						   struct tw_engine *engine,
						   const struct tw_kind *kind, void *arg,
						   int64_t deadline_ns,
						   struct tw_handle *ret_handle)
{
	struct tw_handle handle = twi_node_birth(node, engine, kind, arg, deadline_ns);

	if (ret_handle != NULL)
		*ret_handle = handle;
	/*
	 * E70, pairs with a forked child's look: what is alive has all its fields, and the caller its
	 * handle, because the child may run the callback.
	 */
	twi_store_release(&node->word, twi_word_to(handle.birth, state));
	return handle;
}

/*
 * Just before its push, which nothing can prevent any more: an entry of the node's former life may be
 * in a ring still, and the worker comes by that as well.
 */
static inline void twi_node_offer(struct twi_node *node, uint64_t birth, enum twi_word_state state)
{
	/* E21, pairs with collect: who finds it in INIT finds the fields of this life. E70: so does a
	 * forked child. */
	twi_store_release(&node->word, twi_word_to(birth, state));
}

/*
 * The address by which ThreadSanitizer knows a timeout (base/tsan.h). Another one in each of eight lives of a
 * node in a row: two lives have nothing to do with each other, and with one address for all of them the
 * sanitizer would take a race between their callbacks for ordered.
 */
static inline const void *twi_handle_tsan(struct tw_handle handle)
{
	return (const uint64_t *)handle.node +
	       handle.birth / TWI_WORD_GENERATION % (TWI_BLOCK_BYTES / sizeof(uint64_t));
}

/* What the calling thread did before happens before what follows an acquire of this timeout. */
static inline void twi_handle_release(struct tw_handle handle)
{
	twi_tsan_release(twi_handle_tsan(handle));
}

static inline void twi_handle_acquire(struct tw_handle handle)
{
	twi_tsan_acquire(twi_handle_tsan(handle));
}

#endif
