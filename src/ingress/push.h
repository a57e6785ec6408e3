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
	 * The bound on memory. A lane counts a unit for every TWI_UNIT_TIMEOUTS timeouts that it
	 * pushes. When TWI_UNITS_MAX units wait that the worker has not seen, it is woken, even if
	 * its next tick is far away. So many timeouts take 2 MiB, and fill half of a ring.
	 */
	TWI_UNIT_TIMEOUTS = 64,
	TWI_UNITS_MAX = 512,
};

/* Adds a lane to those that the worker looks at. */
void twi_lane_join(struct twi_worker *worker, uint32_t number);

/* Makes sure that the worker looks at the thread's lane. */
void twi_lane_ready(struct twi_worker *worker, const struct twi_thread *thread);

/*
 * Does the same as the two pushes below. Called if the lane's ring is full or does not exist yet.
 */
void twi_lane_push_far(struct twi_worker *worker, const struct twi_thread *thread,
		       struct twi_node *node, uint64_t generation);

void twi_lane_cancelled_far(struct twi_worker *worker, const struct twi_thread *thread,
			    struct twi_node *node);

/* Counts units that were pushed and that the worker has not seen. */
void twi_units_add(struct twi_worker *worker, uint32_t units);

/*
 * Pushes a node whose queued bit was set by this thread's own swap of state word and deadline.
 * Returns the deadline that the worker must be woken for.
 */
int64_t twi_lane_push_queued(struct twi_worker *worker, const struct twi_thread *thread,
			     struct twi_node *node);

/*
 * Returns whether a push to the lane needs no fence. A lane's bit is never cleared. A worker that
 * goes to sleep after the bit was set makes the barrier instead.
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
 * An engine with an order uses only the link queue, because a ring does not keep the order of the
 * pushes. When the ring is full, later timeouts overtake it through the link queue. And a stale
 * ring entry transfers its node's next timeout early (collect.c).
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

/* Pushes a timeout that was cancelled in the wheel, or that the worker must file again. */
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
