/* SPDX-License-Identifier: MIT */
/*
 * Intrusive queue of many producers and one consumer, after Dmitry Vyukov ("Intrusive MPSC
 * node-based queue", 1024cores.net).
 *
 * Protocol. Nodes form a chain from the consumer's `tail` to the producers' `head`. A producer
 * exchanges `head` with its node (the linearization point of push), then links that node behind the
 * former head. If a producer pushes a chain of its own, it exchanges `head` with the chain's last
 * node and links the first one. Between the two steps the queue is cut: the consumer sees only the
 * nodes before the cut, and takes the rest later.
 *
 * The last node can be taken only if another node follows it. So the consumer pushes a stub, a node
 * without data, behind the last node.
 *
 * Ownership. Any thread may exchange `head`. A node's `next` belongs to its producer until the
 * exchange, then to the producer of the next node, then to the consumer. `tail` and the stub belong
 * to the consumer.
 *
 * Progress. push is wait-free, with one exchange. take is wait-free: it never spins, and returns
 * NULL if the queue is empty or cut. But while a producer is stopped between its two steps, the
 * consumer cannot see the nodes that were pushed later. So, strictly speaking, the queue is not
 * lock-free. Nothing is lost: the nodes become visible when the producer continues.
 */
#ifndef TWI_QUEUE_MPSC_H
#define TWI_QUEUE_MPSC_H

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

/*
 * RELAXED: producers get the queue only with the object that contains it, and its publication
 * orders these stores.
 */
static inline TWI_WORKER_UNCHECKED void twi_mpsc_init(struct twi_mpsc_in *in,
						      struct twi_mpsc_out *out)
{
	twi_store_relaxed(&out->stub.next, NULL);
	twi_store_relaxed(&in->head, &out->stub);
	out->tail = &out->stub;
}

/*
 * Pushes a chain, linked from `first` to `last`, in one step. Any thread may call it. Afterwards
 * the nodes belong to the consumer.
 */
static inline void twi_mpsc_push_chain_mp(struct twi_mpsc_in *in, struct twi_mpsc_node *first,
					  struct twi_mpsc_node *last)
{
	struct twi_mpsc_node *previous;

	/* RELAXED: the exchange below publishes this store. */
	twi_store_relaxed(&last->next, NULL);
	/*
	 * E2: pairs with the same exchange by the next producer. That producer stores its link into
	 * our `next`, and must do so after our NULL. Otherwise the NULL could overwrite the link,
	 * and all later nodes would be lost. E8: the push must come before the producer's check
	 * whether the consumer sleeps. Otherwise the consumer could miss the push and sleep.
	 */
	previous = twi_exchange_seq_cst(&in->head, last);
	TWI_TEST_POINT("mpsc_push:exchanged");
	/*
	 * E1: pairs with the consumer's load of `next`. Publishes the nodes' fields and the links
	 * inside the chain.
	 */
	twi_store_release(&previous->next, first);
}

/* Pushes a single node. Any thread may call it. */
static inline void twi_mpsc_push_mp(struct twi_mpsc_in *in, struct twi_mpsc_node *node)
{
	twi_mpsc_push_chain_mp(in, node, node);
}

/*
 * Links `node` behind `last` while a producer builds a chain. RELAXED: only the producer uses the
 * chain until the push.
 */
static inline void twi_mpsc_chain(struct twi_mpsc_node *last, struct twi_mpsc_node *node)
{
	twi_store_relaxed(&last->next, node);
}

/*
 * For the consumer. Returns the node that was pushed last. The consumer compares it with the nodes
 * that it takes, to end a batch there.
 */
static inline const struct twi_mpsc_node *twi_mpsc_last_sc(const struct twi_mpsc_in *in)
{
	/*
	 * E8: this load is also part of the consumer's last look before it sleeps. The pointer is
	 * compared, not followed.
	 */
	return twi_load_seq_cst(&in->head);
}

/*
 * For the consumer. Takes the oldest node out and returns it, or returns NULL if no node is
 * visible.
 */
static inline TWI_WORKER_ONLY struct twi_mpsc_node *twi_mpsc_take_sc(struct twi_mpsc_in *in,
								     struct twi_mpsc_out *out)
{
	struct twi_mpsc_node *tail = out->tail;
	/* E1: pairs with a push, so that the next node's fields can be read. */
	struct twi_mpsc_node *next = twi_load_acquire(&tail->next);

	if (tail == &out->stub) {
		if (next == NULL)
			return NULL;
		out->tail = tail = next;
		next = twi_load_acquire(&tail->next); /* E1: as above. */
	}
	if (next == NULL) {
		/*
		 * RELAXED: this load only decides whether to push the stub, and the push has its
		 * own order.
		 */
		if (twi_load_relaxed(&in->head) != tail)
			return NULL;
		twi_mpsc_push_mp(in, &out->stub);
		/*
		 * E1: as above. If `tail` were returned before its link is written, a late producer
		 * could write the link into a node that is in use again.
		 */
		next = twi_load_acquire(&tail->next);
		if (next == NULL)
			return NULL;
	}
	out->tail = next;
	return tail;
}

/* For the consumer. Walks over the nodes that it could take now, and counts them. */
static inline TWI_WORKER_ONLY uint64_t twi_mpsc_count_sc(const struct twi_mpsc_out *out)
{
	const struct twi_mpsc_node *node = out->tail;
	uint64_t count = 0;

	while (node != NULL) {
		count += node != &out->stub;
		/* E1: pairs with a push, so that the link is written. */
		node = twi_load_acquire(&node->next);
	}
	return count;
}

#endif
