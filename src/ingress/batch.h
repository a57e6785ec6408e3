/* SPDX-License-Identifier: MIT */
/*
 * A batch of pushes: the timeouts that one thread pushes to one worker inside one RCU section. The
 * worker sees them all at once, except by way of stale ring entries (see below).
 *
 * Protocol. To add a node, the thread stores its new state, and writes an entry beyond the tail of
 * the lane's ring, where no other thread reads yet. If the ring is full or does not exist, the
 * thread appends the node to a private chain instead. At the end of the batch, the thread pushes
 * the chain to the link queue by one exchange (E2, E1), and raises the tail once over all entries
 * (E19). Both steps are ordinary pushes. So one check whether the worker sleeps (E8), with the
 * earliest of the deadlines, is enough.
 *
 * Before the end of the batch. An added timeout can no longer be rejected, and its state is that of
 * a pushed one. A stale ring entry of an earlier generation may still name its node. Through that
 * entry the worker may transfer it, expire it and run it before the batch ends (ingress/collect.c).
 * So a timeout must be complete, and counted, before it is added. A node in the chain (LINKED) is
 * not touched by any other thread before the end.
 *
 * Ownership. The batch lies on its thread's stack. The thread owns it, the ring's entries from the
 * tail on, and the chain with its links.
 *
 * Progress. Wait-free. A thread that is stopped in the middle of a batch delays only the timeouts
 * that it has added. That holds in the shared lane too, because the chain is private until the
 * exchange.
 */
#ifndef TWI_INGRESS_BATCH_H
#define TWI_INGRESS_BATCH_H

#include "ingress/pressure.h"
#include "ingress/push.h"

/*
 * The most timeouts in one batch. The bound is needed because stop waits for the RCU section, and
 * because the worker gets all of the timeouts at once.
 */
enum { TWI_BATCH_MAX = TWI_THROTTLE_UNIT };

struct twi_batch {
	struct twi_worker *worker;
	struct twi_lane *lane;
	_Atomic uintptr_t *entry;
	uint32_t mask;
	uint64_t tail; /* the number of the next ring entry */
	uint64_t room; /* entries below this number are free */
	/*
	 * Like `room`, but for scheduled timeouts. In an engine with an order these never get ring
	 * entries. Then this is `tail` as it was at the beginning of the batch.
	 */
	uint64_t schedule_room;
	/* The chain, or NULL. */
	struct twi_node *first;
	struct twi_node *last;
};

/* batch.c: looks for more free ring entries. Called if fewer are known than the batch may need. */
void twi_batch_find_room(struct twi_batch *batch, uint32_t wanted);
/* batch.c: adds a node to the chain. */
void twi_batch_chain(struct twi_batch *batch, struct twi_node *node, uint64_t generation);
/* batch.c: pushes the chain. */
void twi_batch_push_chain(struct twi_batch *batch);

/*
 * Begins a batch. Must be called inside an RCU section in which the engine was seen to accept, or
 * one of its timeouts was seen alive. Otherwise the engine may be freed.
 */
static inline void twi_batch_begin(struct twi_batch *batch, struct twi_worker *worker,
				   const struct twi_thread *thread, uint32_t wanted)
{
	struct twi_lane *lane = twi_lane_of(worker, thread);

	*batch = (struct twi_batch){
		.worker = worker,
		.lane = lane,
		.entry = lane->ring.entry,
		.mask = lane->ring.mask,
		/* RELAXED: only the producer writes the tail. */
		.tail = twi_load_relaxed(&lane->ring.tail),
	};
	batch->room = batch->tail + twi_ring_known_room(&lane->ring);
	if (TWI_UNLIKELY(batch->room - batch->tail < wanted))
		twi_batch_find_room(batch, wanted);
	batch->schedule_room = worker->ordered ? batch->tail : batch->room;
}

/* Adds a new timeout's node. The timeout must already be counted. */
static inline void twi_batch_add(struct twi_batch *batch, struct twi_node *node,
				 uint64_t generation)
{
	if (TWI_UNLIKELY(batch->tail == batch->schedule_room)) {
		twi_batch_chain(batch, node, generation);
		return;
	}
	twi_node_offer(node, generation, TWI_WORD_INIT);
	twi_ring_put(batch->entry, batch->mask, batch->tail++, (uintptr_t)node);
}

/*
 * Adds a node that was cancelled in the wheel. If the ring is full, pushes it to the cancel queue
 * at once.
 */
static inline void twi_batch_add_cancelled(struct twi_batch *batch, struct twi_node *node)
{
	if (TWI_UNLIKELY(batch->tail == batch->room))
		twi_lane_cancelled_linked(batch->worker, batch->lane, node);
	else
		twi_ring_put(batch->entry, batch->mask, batch->tail++,
			     (uintptr_t)node | TWI_ENTRY_CANCELLED);
}

/*
 * Pushes everything that was added; this is the linearization point for all of it. Must be called
 * inside the same RCU section as twi_batch_begin.
 */
static inline void twi_batch_end(struct twi_batch *batch)
{
	struct twi_ring_in *ring = &batch->lane->ring;

	if (TWI_UNLIKELY(batch->first != NULL))
		twi_batch_push_chain(batch);
	/* RELAXED: only the producer writes the tail. */
	if (TWI_LIKELY(batch->tail != twi_load_relaxed(&ring->tail)))
		twi_ring_raise(ring, batch->tail, twi_lane_unfenced(batch->lane));
	twi_lane_pushed(batch->lane);
}

#endif
