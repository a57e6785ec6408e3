/* SPDX-License-Identifier: MIT */
/*
 * The producer's side of a lane: pushes to the worker.
 */
#ifndef TWI_INGRESS_PUSH_H
#define TWI_INGRESS_PUSH_H

#include "base/atomic.h"
#include "ingress/far.h"
#include "ingress/rings.h"
#include "worker/worker.h"

enum {
	/*
	 * The bound on memory in ingress. A lane counts a unit for every TWI_UNIT_TIMEOUTS timeouts
	 * that it pushes. When TWI_UNITS_MAX units wait for the worker, the producer wakes the
	 * worker, even if the next due tick is far away. TWI_UNITS_MAX units take 2 MiB, and fill
	 * half of a ring of the largest size.
	 */
	TWI_UNIT_TIMEOUTS = 64,
	TWI_UNITS_MAX = 512,
};

/* Adds a lane to those that the worker looks at. Makes its ring if this is its first push. */
void twi_lane_join(struct twi_worker *worker, struct twi_lane *lane);

/*
 * Makes sure that the worker sees a push to a far lane, even if it has stopped looking at that lane
 * (rest.h).
 */
void twi_lane_far_pushed(struct twi_lane *lane);

/* Calls twi_lane_join if the lane has not joined yet. */
void twi_lane_ready(struct twi_worker *worker, struct twi_lane *lane);

/*
 * The rare code paths of twi_lane_push and twi_lane_push_cancelled. Called if the lane's ring is
 * full or does not exist yet, or, for a scheduled timeout, if the engine has an order.
 */
void twi_lane_push_linked(struct twi_worker *worker, struct twi_lane *lane, struct twi_node *node,
			  uint64_t generation);

void twi_lane_cancelled_linked(struct twi_worker *worker, struct twi_lane *lane,
			       struct twi_node *node);

/* Counts pushed units. Wakes the worker if too many units wait for it. */
void twi_units_add(struct twi_worker *worker, uint32_t units);

/*
 * Pushes a node after this thread's reschedule has set the node's queued bit. Returns the deadline
 * for which the worker must be woken. Another thread may have set this deadline meanwhile.
 */
int64_t twi_lane_push_queued(struct twi_worker *worker, struct twi_lane *lane,
			     struct twi_node *node);

/*
 * Returns whether a push to the lane needs no fence, because the lane is marked as busy. The mark
 * is never removed. Before each sleep after the mark was set, the worker makes a barrier in all
 * threads instead.
 */
static inline bool twi_lane_unfenced(const struct twi_lane *lane)
{
	/*
	 * E8: the worker may set the mark after it has published its sleep. Then this load also
	 * makes the published values visible.
	 */
	return twi_load_acquire(&lane->unfenced);
}

/*
 * Returns whether the worker will still read the lane's last entry, and that entry names the node.
 * Then a timeout of this node needs no push. Must be called after the timeout's state became INIT.
 */
static inline bool twi_lane_reads_again(const struct twi_lane *lane, const struct twi_node *node)
{
	/* RELAXED: a hint. twi_ring_will_read() looks at the worker's promise. */
	return TWI_UNLIKELY(twi_load_relaxed(&lane->again)) &&
	       twi_ring_will_read(&lane->ring, &lane->ring_out, (uintptr_t)node);
}

/*
 * Makes sure that the worker looks at the lane. Must be called after each push to a lane that may
 * be far, because the worker may have stopped looking at that lane (rest.h).
 */
static inline void twi_lane_pushed(struct twi_lane *lane)
{
	if (TWI_UNLIKELY(lane->number >= TWI_LANES))
		twi_lane_far_pushed(lane);
}

/* Called by the lane's thread. Returns whether the lane's ring has a free entry. */
static inline bool twi_lane_has_room(struct twi_worker *worker, struct twi_lane *lane)
{
	return TWI_LIKELY(twi_ring_knows_room(&lane->ring)) || twi_lane_ring_room(worker, lane, 1);
}

/*
 * Pushes a scheduled timeout. The push is the linearization point of schedule.
 *
 * An engine with an order uses only the link queue, because a ring does not keep the order of the
 * pushes. When the ring is full, later timeouts go through the link queue and may overtake those in
 * the ring. And the worker may take a timeout early by a stale ring entry for its node (collect.c).
 */
static inline void twi_lane_push(struct twi_worker *worker, struct twi_lane *lane,
				 struct twi_node *node, uint64_t generation)
{
	if (TWI_LIKELY(!worker->ordered && twi_lane_has_room(worker, lane))) {
		twi_node_offer(node, generation, TWI_WORD_INIT);
		twi_ring_push(&lane->ring, (uintptr_t)node, twi_lane_unfenced(lane));
	} else {
		twi_lane_push_linked(worker, lane, node, generation);
	}
	twi_lane_pushed(lane);
}

/* Pushes a timeout that was cancelled in the wheel, or that the worker must file again. */
static inline void twi_lane_push_cancelled(struct twi_worker *worker, struct twi_lane *lane,
					   struct twi_node *node)
{
	if (TWI_LIKELY(twi_lane_has_room(worker, lane)))
		twi_ring_push(&lane->ring, (uintptr_t)node | TWI_ENTRY_CANCELLED,
			      twi_lane_unfenced(lane));
	else
		twi_lane_cancelled_linked(worker, lane, node);
	twi_lane_pushed(lane);
}

#endif
