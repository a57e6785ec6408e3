/* SPDX-License-Identifier: MIT */
/*
 * A burst: what one thread pushes to one worker inside one section, seen by the worker at once.
 *
 * Protocol. A node that is added gets its state, and an entry beyond the tail of the lane's ring, which
 * nobody reads there; where the ring has no room, or there is none, it is linked behind the last node of
 * a chain that is the thread's own. End raises the tail once over all entries (E19), and gives the chain
 * to the link queue by one exchange (E2, E1). Who then looks whether the worker sleeps (E8) looks once,
 * for the earliest of the deadlines: both steps are pushes like any other.
 *
 * What may come before the end. Nothing can refuse a timeout that is added, and its state is that of one
 * which is pushed: by an entry of the node's former life the worker may transfer it, expire it, and run it
 * before the burst ends (worker/collect.c). So it is added when all else about it is done, its count too;
 * its own entry is stale then. In a chain (LINKED) nobody touches it before the end.
 *
 * Who owns what. The burst: its thread, on its stack. Entries from the tail on, the chain and its links:
 * the same.
 *
 * Progress. Wait-free. A thread that stands in the middle of a burst hides what it has added to that, and
 * nothing of anybody else, in the shared lane either, where a chain is the thread's own until the exchange.
 */
#ifndef TWI_WORKER_BURST_H
#define TWI_WORKER_BURST_H

#include "worker/worker.h"

/* So many at most in one section: stop waits for no more, and the worker hears of no more at once. */
enum { TWI_BURST_MAX = TWI_WAY_UNIT };

struct twi_burst {
	struct twi_worker *worker;
	const struct twi_thread *thread;
	struct twi_lane *lane;
	_Atomic uintptr_t *entry;
	uint64_t tail; /* number of the next entry */
	uint64_t room; /* there is room below it */
	/* The chain, or NULL. */
	struct twi_node *first;
	struct twi_node *last;
};

/* burst.c: the lane has less room than is wanted, as far as is known. */
void twi_burst_find_room(struct twi_burst *burst);
/* burst.c: adds to the chain. */
void twi_burst_chain(struct twi_burst *burst, struct twi_node *node, uint64_t birth);
/* burst.c: pushes the chain. */
void twi_burst_push_chain(struct twi_burst *burst);

/* Inside a section, in which the engine was seen to accept, or a timeout of it alive. */
static inline void twi_burst_begin(struct twi_burst *burst, struct twi_worker *worker,
				   const struct twi_thread *thread, uint64_t wanted)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	/* RELAXED, both: the producer's own. */
	*burst = (struct twi_burst){
		.worker = worker,
		.thread = thread,
		.lane = lane,
		.entry = twi_load_relaxed(&lane->ring.entry),
		.tail = twi_load_relaxed(&lane->ring.tail),
		.room = lane->ring.room,
	};
	if (TWI_UNLIKELY(burst->room - burst->tail < wanted))
		twi_burst_find_room(burst);
}

/* A node that was born for that, and is counted. */
static inline void twi_burst_add(struct twi_burst *burst, struct twi_node *node, uint64_t birth)
{
	if (TWI_UNLIKELY(burst->tail == burst->room)) {
		twi_burst_chain(burst, node, birth);
		return;
	}
	twi_node_offer(node, birth, TWI_WORD_INIT);
	twi_ring_put(burst->entry, burst->tail++, (uintptr_t)node);
}

/* A node that was cancelled in the wheel. Where there is no room, it is pushed at once. */
static inline void twi_burst_add_cancelled(struct twi_burst *burst, struct twi_node *node)
{
	if (TWI_UNLIKELY(burst->tail == burst->room))
		twi_lane_cancelled_far(burst->worker, burst->thread, node);
	else
		twi_ring_put(burst->entry, burst->tail++, (uintptr_t)node | TWI_ENTRY_CANCELLED);
}

/* Inside the same section. LIN of what was added: here. */
static inline void twi_burst_end(struct twi_burst *burst)
{
	struct twi_ring_in *ring = &burst->lane->ring;

	if (TWI_UNLIKELY(burst->first != NULL))
		twi_burst_push_chain(burst);
	/* RELAXED: the producer's own. */
	if (TWI_LIKELY(burst->tail != twi_load_relaxed(&ring->tail)))
		twi_ring_raise(ring, burst->tail, twi_lane_unfenced(burst->worker, burst->thread));
}

#endif
