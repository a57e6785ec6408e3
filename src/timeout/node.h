/* SPDX-License-Identifier: MIT */
/*
 * A timeout in memory. It takes one cache line. The only other memory that a one-shot timeout needs
 * is its slot entry; a periodic one has a second block (timeout/chain.h).
 *
 * Ownership. From birth (the step that makes a free block a timeout) to push the scheduling thread
 * owns the node. From the push on, the worker owns the links and the place. One exception is the
 * link `cancelled`. A thread that has cancelled the timeout in the wheel, or has set its queued
 * bit, owns that link from its compare-and-swap to its push. If a timeout is cancelled while it is
 * in a ring, the canceller owns the whole node, because a ring holds only the node's address. The
 * worker may still come to the node by the stale ring entry, but then reads only word, engine and
 * deadline.
 *
 * Any thread may change the word, by compare-and-swap, and the deadline together with the word
 * (api/reschedule.c). Engine, kind and argument do not change from birth to end. But a thread with
 * a stale handle may read them while the node becomes a new timeout, so they are atomics. Such a
 * thread may use the values only if the word has the handle's generation after it has read them.
 */
#ifndef TWI_TIMEOUT_NODE_H
#define TWI_TIMEOUT_NODE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "memory/slab.h"
#include "queue/mpsc.h"
#include "timeout/word.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/timeout.h>

struct tw_engine;

struct twi_node {
	union {
		struct twi_mpsc_node ingress; /* [handoff E1]; in the wheel: a list's link */
		/*
		 * [worker] In the slots of a wheel with an order: among equal deadlines, the lowest
		 * number runs first.
		 */
		_Atomic uint64_t sequence;
	};
	struct twi_mpsc_node cancelled; /* [handoff E1] */
	_Alignas(
		16) _Atomic uint64_t word; /* [atomic E4] also changed as a pair with deadline_ns */
	_Atomic int64_t deadline_ns;       /* [atomic E4] */
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

/* The node is not in the wheel. */
#define TWI_PLACE_NONE ((uintptr_t)0)
/*
 * The node is on one of the wheel's lists (wheel/list.h), for example on the list of the nodes for
 * whose slot entry there was no memory. The other bits are the address of the previous node, or 0.
 * A slot entry has its number in the same bits, and the number is at most 60 (wheel/chunk.h).
 */
#define TWI_PLACE_LISTED ((uintptr_t)(TWI_BLOCK_BYTES - 1))

/*
 * The node is not in the wheel yet, but among the owner's fresh timeouts (turn/fresh.h). The other
 * bits are its index there, times TWI_BLOCK_BYTES.
 */
#define TWI_PLACE_FRESH ((uintptr_t)(TWI_BLOCK_BYTES - 2))

/*
 * The node is in the wheel's sorted run (wheel/sorted.h). The other bits are its index there, times
 * TWI_BLOCK_BYTES.
 */
#define TWI_PLACE_SORTED ((uintptr_t)(TWI_BLOCK_BYTES - 3))

static inline bool twi_place_is_fresh(uintptr_t place)
{
	return (place & (TWI_BLOCK_BYTES - 1)) == TWI_PLACE_FRESH;
}

static inline bool twi_place_is_listed(uintptr_t place)
{
	return (place & TWI_PLACE_LISTED) == TWI_PLACE_LISTED;
}

/*
 * Returns true if the node is in the wheel but in none of its slots: it is on a list or in the
 * sorted run. The node must not be fresh.
 */
static inline bool twi_place_is_beside(uintptr_t place)
{
	return (place & (TWI_BLOCK_BYTES - 1)) >= TWI_PLACE_SORTED;
}

static inline bool twi_place_is_slot(uintptr_t place)
{
	return place != TWI_PLACE_NONE && !twi_place_is_beside(place);
}

/* RELAXED, load and store: after ingress only the worker uses this field. */
static inline uint64_t twi_node_sequence(struct twi_node *node)
{
	return twi_load_relaxed(&node->sequence);
}

/* RELAXED: as above. */
static inline void twi_node_set_sequence(struct twi_node *node, uint64_t sequence)
{
	twi_store_relaxed(&node->sequence, sequence);
}

static inline struct twi_node *twi_node_of_ingress(struct twi_mpsc_node *link)
{
	return TWI_CONTAINER_OF(link, struct twi_node, ingress);
}

static inline struct twi_node *twi_node_of_cancelled(struct twi_mpsc_node *link)
{
	return TWI_CONTAINER_OF(link, struct twi_node, cancelled);
}

/*
 * Returns false for zeroed handles, and for most invented ones: the low bits of a generation, as a
 * handle holds it, are 0.
 */
static inline bool twi_handle_sane(struct tw_handle handle)
{
	return handle.node != NULL && handle.generation >= TWI_WORD_GENERATION &&
	       handle.generation % TWI_WORD_GENERATION == 0;
}

static inline struct twi_node *twi_node_of_handle(struct tw_handle handle)
{
	return handle.node;
}

/*
 * E4, these four functions: their loads pair with twi_node_begin. If a reader gets a field of a
 * later timeout, it finds that timeout's generation in the state word afterwards.
 */
static inline struct tw_engine *twi_node_engine(struct twi_node *node)
{
	return twi_load_acquire(&node->engine); /* E4: see above */
}

static inline const struct tw_kind *twi_node_kind(struct twi_node *node)
{
	return twi_load_acquire(&node->kind); /* E4: see above */
}

static inline void *twi_node_arg(struct twi_node *node)
{
	return twi_load_acquire(&node->arg); /* E4: see above */
}

static inline int64_t twi_node_deadline_ns(struct twi_node *node)
{
	return twi_load_acquire(&node->deadline_ns); /* E4: see above */
}

/* Makes the node a new timeout, in CANCELLED at first. No other thread has its handle yet. */
static inline TWI_WORKER_UNCHECKED struct tw_handle twi_node_begin(struct twi_node *node,
								   struct tw_engine *engine,
								   const struct tw_kind *kind,
								   void *arg, int64_t deadline_ns)
{
	/* RELAXED: the caller owns the node, so no other thread changes its word. */
	uint64_t generation = twi_word_next_generation(twi_load_relaxed(&node->word));

	/*
	 * E4: if a thread has the handle of the node's earlier timeout, this store shows that
	 * thread that the earlier timeout has ended. The thread also sees the writes of that
	 * timeout's callback. The new timeout is published later, by its push.
	 */
	twi_store_release(&node->word, twi_word_to(generation, TWI_WORD_CANCELLED));
	/* E4: the new generation must be visible before each new field. */
	twi_store_release(&node->engine, engine);
	twi_store_release(&node->kind, kind);               /* E4: as above */
	twi_store_release(&node->arg, arg);                 /* E4: as above */
	twi_store_release(&node->deadline_ns, deadline_ns); /* E4: as above */
	node->place = TWI_PLACE_NONE;
	return (struct tw_handle){.node = node, .generation = generation};
}

/*
 * Makes the node a new timeout that needs no ingress, because the worker's own thread schedules it.
 * The timeout is pending from here on. `bits`: its state word without the generation.
 */
static inline struct tw_handle twi_node_begin_here(struct twi_node *node, uint64_t bits,
						   struct tw_engine *engine,
						   const struct tw_kind *kind, void *arg,
						   int64_t deadline_ns,
						   struct tw_handle *ret_handle)
{
	struct tw_handle handle = twi_node_begin(node, engine, kind, arg, deadline_ns);

	if (ret_handle != NULL)
		*ret_handle = handle;
	/*
	 * E70: pairs with word_look() in a forked child. If the child finds the timeout alive, it
	 * must also find the fields and the caller's handle, because the child may run the
	 * callback.
	 */
	twi_store_release(&node->word, handle.generation | bits);
	return handle;
}

/*
 * Makes the timeout pending. Called just before the push, when nothing can reject the timeout any
 * more. The worker may take the timeout even before the push, because a ring may hold a stale entry
 * for an earlier timeout of the node.
 */
static inline void twi_node_offer(struct twi_node *node, uint64_t generation,
				  enum twi_word_state state)
{
	/*
	 * E21: pairs with the load in node_transfer() (collect.c). A worker that finds INIT must
	 * also find the fields of this timeout. E70: a forked child must find them, too. E163: if no
	 * push follows, this store alone publishes the timeout.
	 */
	twi_store_release(&node->word, twi_word_to(generation, state));
}

/*
 * Returns the address that stands for a timeout in reports to ThreadSanitizer (base/tsan.h). Eight
 * consecutive timeouts of a node have different addresses. With one address for all, the sanitizer
 * would take independent timeouts as ordered, and miss races between their callbacks.
 */
static inline const void *twi_handle_tsan(struct tw_handle handle)
{
	return (const uint64_t *)handle.node +
	       handle.generation / TWI_WORD_GENERATION % (TWI_BLOCK_BYTES / sizeof(uint64_t));
}

/*
 * Reports an edge to ThreadSanitizer: what a thread did before it calls release happens before what
 * follows an acquire of the same timeout.
 */
static inline void twi_handle_release(struct tw_handle handle)
{
	twi_tsan_release(twi_handle_tsan(handle));
}

static inline void twi_handle_acquire(struct tw_handle handle)
{
	twi_tsan_acquire(twi_handle_tsan(handle));
}

#endif
