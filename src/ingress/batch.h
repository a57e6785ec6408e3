/* SPDX-License-Identifier: MIT */
/*
 * A batch of pushes: the timeouts that one thread pushes to one worker inside one section. The
 * worker sees them all at once.
 *
 * Protocol. A node that is added gets its state, and an entry beyond the tail of the lane's ring,
 * where no thread reads it. If the ring is full or does not exist, the node is linked to the end of
 * a chain that is the thread's own. The end of the batch raises the tail once over all entries
 * (E19), and gives the chain to the link queue by one exchange (E2, E1). Both steps are pushes like
 * any other. So the thread looks only once whether the worker sleeps (E8), for the earliest of the
 * deadlines.
 *
 * Before the end. A timeout that is added can no longer be rejected, and its state is that of a
 * pushed one. An entry of an earlier generation may still name its node. By that entry the worker
 * may transfer it, expire it and run it before the batch ends (ingress/collect.c). So a timeout
 * must be complete, and counted, when it is added; its own entry is stale then. In a chain (LINKED)
 * no other thread touches it before the end.
 *
 * Ownership. The batch lies on its thread's stack and is the thread's own. So are the entries from
 * the tail on, and the chain with its links.
 *
 * Progress. Wait-free. If a thread stands in the middle of a batch, it hides only the timeouts that
 * it has added. That holds in the shared lane too, because a chain is the thread's own until the
 * exchange.
 */
#ifndef TWI_INGRESS_BATCH_H
#define TWI_INGRESS_BATCH_H

#include "ingress/pressure.h"
#include "ingress/push.h"

/*
 * The most that one section adds, because stop waits for it and the worker gets all of it at once.
 */
enum { TWI_BATCH_MAX = TWI_THROTTLE_UNIT };

struct twi_batch {
	struct twi_worker *worker;
	const struct twi_thread *thread;
	struct twi_lane *lane;
	_Atomic uintptr_t *entry;
	uint64_t tail; /* number of the next entry */
	uint64_t room; /* entries below this number are free */
	/* The same for scheduled timeouts, which have no entries in an engine with an order. */
	uint64_t schedule_room;
	/* The chain, or NULL. */
	struct twi_node *first;
	struct twi_node *last;
};

/* batch.c: looks for free entries if the lane has fewer than are wanted, as far as is known. */
void twi_batch_find_room(struct twi_batch *batch);
/* batch.c: adds a node to the chain. */
void twi_batch_chain(struct twi_batch *batch, struct twi_node *node, uint64_t generation);
/* batch.c: pushes the chain. */
void twi_batch_push_chain(struct twi_batch *batch);

/*
 * Must be called inside a section in which the engine was seen to accept, or one of its timeouts
 * alive.
 */
static inline void twi_batch_begin(struct twi_batch *batch, struct twi_worker *worker,
				   const struct twi_thread *thread, uint64_t wanted)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	/* RELAXED, both: only the producer writes them. */
	*batch = (struct twi_batch){
		.worker = worker,
		.thread = thread,
		.lane = lane,
		.entry = twi_load_relaxed(&lane->ring.entry),
		.tail = twi_load_relaxed(&lane->ring.tail),
		.room = lane->ring.room,
	};
	if (TWI_UNLIKELY(batch->room - batch->tail < wanted))
		twi_batch_find_room(batch);
	batch->schedule_room = worker->ordered ? batch->tail : batch->room;
}

/* Adds a node that was born for the batch and is counted. */
static inline void twi_batch_add(struct twi_batch *batch, struct twi_node *node,
				 uint64_t generation)
{
	if (TWI_UNLIKELY(batch->tail == batch->schedule_room)) {
		twi_batch_chain(batch, node, generation);
		return;
	}
	twi_node_offer(node, generation, TWI_WORD_INIT);
	twi_ring_put(batch->entry, batch->tail++, (uintptr_t)node);
}

/* Adds a node that was cancelled in the wheel. If the ring is full, the node is pushed at once. */
static inline void twi_batch_add_cancelled(struct twi_batch *batch, struct twi_node *node)
{
	if (TWI_UNLIKELY(batch->tail == batch->room))
		twi_lane_cancelled_far(batch->worker, batch->thread, node);
	else
		twi_ring_put(batch->entry, batch->tail++, (uintptr_t)node | TWI_ENTRY_CANCELLED);
}

/* Must be called inside the same section. LIN of all that was added: here. */
static inline void twi_batch_end(struct twi_batch *batch)
{
	struct twi_ring_in *ring = &batch->lane->ring;

	if (TWI_UNLIKELY(batch->first != NULL))
		twi_batch_push_chain(batch);
	/* RELAXED: only the producer writes it. */
	if (TWI_LIKELY(batch->tail != twi_load_relaxed(&ring->tail)))
		twi_ring_raise(ring, batch->tail, twi_lane_unfenced(batch->worker, batch->thread));
}

#endif
