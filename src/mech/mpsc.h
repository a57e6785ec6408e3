/* SPDX-License-Identifier: MIT */
/*
 * Intrusive queue of many producers and one consumer, after Dmitry Vyukov ("Intrusive MPSC
 * node-based queue", 1024cores.net).
 *
 * Protocol. Nodes form a chain from the consumer's `tail` to the producers' `head`. A producer
 * exchanges `head` with its node (LIN of push), then links the node behind the one it got; with the last
 * node of a chain of its own, it links the first. Between the two steps the chain is cut: the consumer sees what is before the cut, and comes back for the
 * rest. A stub, which is never a user's node, lets the consumer take the last one: it pushes the
 * stub behind it.
 *
 * Who owns what. `head`: all, by exchange. A node's `next`: its producer until the exchange, then
 * the one producer that comes next, then the consumer. `tail` and the stub: the consumer.
 *
 * Progress. push: wait-free, one exchange. take: wait-free; NULL when empty or cut, never spins. A
 * producer that stands still between its two steps hides what was pushed later (so, taken strictly,
 * the queue is not lock-free); nothing is lost, and all of it shows when the producer goes on.
 */
#ifndef TWI_MECH_MPSC_H
#define TWI_MECH_MPSC_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/test_point.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct twi_mpsc_node {
	_Atomic(struct twi_mpsc_node *) next; /* [handoff E1] */
};

/* The producers' end. */
struct twi_mpsc_in {
	_Atomic(struct twi_mpsc_node *) head; /* [atomic E2] */
};

/* The consumer's end; on another cache line than the producers'. */
struct twi_mpsc_out {
	struct twi_mpsc_node *tail TWI_WORKER_FIELD; /* [worker] */
	struct twi_mpsc_node stub;                   /* [worker; its link: handoff E1] */
};

/* RELAXED: the queue is made known to producers by whoever publishes what contains it. */
static inline TWI_WORKER_UNCHECKED void twi_mpsc_init(struct twi_mpsc_in *in,
						      struct twi_mpsc_out *out)
{
	twi_store_relaxed(&out->stub.next, NULL);
	twi_store_relaxed(&in->head, &out->stub);
	out->tail = &out->stub;
}

/*
 * Any thread. A chain, which is linked from `first` to `last`, in one step. The fields of its nodes are
 * the consumer's from here on.
 */
static inline void twi_mpsc_push_chain_mp(struct twi_mpsc_in *in, struct twi_mpsc_node *first,
					  struct twi_mpsc_node *last)
{
	struct twi_mpsc_node *previous;

	/* RELAXED: made visible by the exchange. */
	twi_store_relaxed(&last->next, NULL);
	/*
	 * E2, pairs with itself in the next producer: its link must come after our NULL. Weaker,
	 * the NULL could overwrite the link, and all that follows would be lost. E8 of who pushes
	 * to a worker that may sleep: the reason to wake up, before the look whether it does.
	 */
	previous = twi_exchange_seq_cst(&in->head, last);
	TWI_TEST_POINT("mpsc_push:exchanged");
	/* E1, pairs with the consumer's load of next: publishes the fields, and the chain's own links. */
	twi_store_release(&previous->next, first);
}

/* Any thread. The same for a single node. */
static inline void twi_mpsc_push_mp(struct twi_mpsc_in *in, struct twi_mpsc_node *node)
{
	twi_mpsc_push_chain_mp(in, node, node);
}

/* Who builds a chain: `node` comes behind `last`. RELAXED: the chain is its own until it is pushed. */
static inline void twi_mpsc_chain(struct twi_mpsc_node *last, struct twi_mpsc_node *node)
{
	twi_store_relaxed(&last->next, node);
}

/* The consumer. The node pushed last, to be compared with those taken: where a batch can end. */
static inline const struct twi_mpsc_node *twi_mpsc_last_sc(const struct twi_mpsc_in *in)
{
	/* Compared, not followed. E8: the sleeper's last look. */
	return twi_load_seq_cst(&in->head);
}

/* The consumer. The oldest node, free of the queue, or NULL when there is none in sight. */
static inline TWI_WORKER_ONLY struct twi_mpsc_node *twi_mpsc_take_sc(struct twi_mpsc_in *in,
								     struct twi_mpsc_out *out)
{
	struct twi_mpsc_node *tail = out->tail;
	/* E1, pairs with push: the next node's fields are readable after this. */
	struct twi_mpsc_node *next = twi_load_acquire(&tail->next);

	if (tail == &out->stub) {
		if (next == NULL)
			return NULL;
		out->tail = tail = next;
		next = twi_load_acquire(&tail->next); /* E1 */
	}
	if (next == NULL) {
		/* RELAXED: decides only whether the stub is worth pushing; push orders itself. */
		if (twi_load_relaxed(&in->head) != tail)
			return NULL;
		twi_mpsc_push_mp(in, &out->stub);
		/* E1: also the link itself is written, before the node serves again. */
		next = twi_load_acquire(&tail->next);
		if (next == NULL)
			return NULL;
	}
	out->tail = next;
	return tail;
}

/* The consumer. How many it could take by now: a walk over all of them. */
static inline TWI_WORKER_ONLY uint64_t twi_mpsc_count_sc(const struct twi_mpsc_out *out)
{
	const struct twi_mpsc_node *node = out->tail;
	uint64_t count = 0;

	while (node != NULL) {
		count += node != &out->stub;
		node = twi_load_acquire(&node->next); /* E1, pairs with push: its link is written */
	}
	return count;
}

#endif
