/* SPDX-License-Identifier: MIT */
/*
 * The producer's side of a lane: pushes to the worker.
 */
#ifndef TWI_INGRESS_PUSH_H
#define TWI_INGRESS_PUSH_H

#include "base/atomic.h"
#include "worker/worker.h"

enum {
	/*
	 * The memory bound. A lane counts a unit for every TWI_UNIT_TIMEOUTS timeouts that it
	 * pushes. When the worker has not seen TWI_UNITS_MAX units, it is woken, however far away
	 * its tick is. That is 2 MiB, and half of a ring.
	 */
	TWI_UNIT_TIMEOUTS = 64,
	TWI_UNITS_MAX = 512,
};

/* Makes the worker look at one more lane from now on. */
void twi_lane_join(struct twi_worker *worker, uint32_t number);

/* Makes sure that the worker looks at the thread's lane. */
void twi_lane_ready(struct twi_worker *worker, const struct twi_thread *thread);

/* Like the two pushes below, if the lane's ring is full or does not exist yet. */
void twi_lane_push_far(struct twi_worker *worker, const struct twi_thread *thread,
		       struct twi_node *node, uint64_t generation);

void twi_lane_cancelled_far(struct twi_worker *worker, const struct twi_thread *thread,
			    struct twi_node *node);

/* Counts units that were pushed and that the worker has not seen. */
void twi_units_add(struct twi_worker *worker, uint32_t units);

/*
 * Pushes a node after our own step on state word and deadline has set queued. Returns the
 * deadline for which the worker must be woken.
 */
int64_t twi_lane_push_queued(struct twi_worker *worker, const struct twi_thread *thread,
			     struct twi_node *node);

/*
 * Whether a push to the lane goes without a fence. A bit is never taken back, and a worker that
 * sleeps after it was set makes the barrier.
 */
static inline bool twi_lane_unfenced(const struct twi_worker *worker,
				     const struct twi_thread *thread)
{
	/*
	 * E8: if the mark was set after the sleeper published and before its sleep, this load also
	 * makes the published values visible.
	 */
	return (twi_load_acquire(&worker->lanes_busy) >> thread->lane & 1) != 0;
}

/*
 * Pushes a scheduled timeout. LIN of schedule: the push.
 *
 * An engine with an order gets them by the link queue alone. A ring does not keep the order of the
 * pushes. If it is full, later timeouts pass it by the link queue, and a stale entry transfers its
 * node's next timeout early (collect.c).
 */
static inline void twi_lane_push(struct twi_worker *worker, const struct twi_thread *thread,
				 struct twi_node *node, uint64_t generation)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	if (TWI_LIKELY(!worker->ordered && twi_ring_has_room(&lane->ring, &lane->ring_out))) {
		twi_node_offer(node, generation, TWI_WORD_INIT);
		twi_ring_push(&lane->ring, (uintptr_t)node, twi_lane_unfenced(worker, thread));
	} else {
		twi_lane_push_far(worker, thread, node, generation);
	}
}

/* Pushes a timeout that was cancelled in the wheel, or that the worker must file anew. */
static inline void twi_lane_push_cancelled(struct twi_worker *worker,
					   const struct twi_thread *thread, struct twi_node *node)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	if (TWI_LIKELY(twi_ring_has_room(&lane->ring, &lane->ring_out)))
		twi_ring_push(&lane->ring, (uintptr_t)node | TWI_ENTRY_CANCELLED,
			      twi_lane_unfenced(worker, thread));
	else
		twi_lane_cancelled_far(worker, thread, node);
}

#endif
