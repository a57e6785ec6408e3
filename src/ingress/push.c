/* SPDX-License-Identifier: MIT */
/* The rare code paths of a push: the first push to a lane, and a push that finds the ring full. */
#include "ingress/push.h"

#include "base/atomic.h"

static struct twi_lane_block *block_of(struct twi_lane *lane)
{
	return TWI_CONTAINER_OF(lane - lane->number % TWI_LANES, struct twi_lane_block, lane);
}

static void lane_use(struct twi_lane *lane)
{
	/*
	 * E8: the lane's bit must be set before the thread checks whether the worker sleeps. E130:
	 * releases a far lane that was just initialised.
	 */
	(void)twi_fetch_or_seq_cst(&block_of(lane)->used, UINT64_C(1) << lane->number % TWI_LANES);
}

TWI_NOINLINE void twi_lane_far_pushed(struct twi_lane *lane)
{
	uint64_t used;

	TWI_TEST_POINT("far:pushed");
	/*
	 * E8: this load must come after the push. Either the worker sees the push in its last look
	 * at the lane, or this thread sees that the worker has cleared the lane's bit.
	 */
	used = twi_load_seq_cst(&block_of(lane)->used);
	if (TWI_UNLIKELY((used >> lane->number % TWI_LANES & 1) == 0))
		lane_use(lane);
	TWI_TEST_POINT("far:used");
}

TWI_COLD void twi_lane_join(struct twi_worker *worker, struct twi_lane *lane)
{
	if (lane->number != TWI_LANE_SHARED && !lane->joined) {
		twi_lane_ring_make(worker, lane);
		lane->joined = true;
	}
	lane_use(lane);
	/*
	 * E15: publishes the lane's bit. A thread that finds `known` set does not set the bit
	 * itself, so the bit must be visible before that thread pushes.
	 */
	twi_store_release(&lane->known, true);
}

static bool lane_known(const struct twi_lane *lane)
{
	/*
	 * E15: pairs with the store in twi_lane_join(). If `known` is set, the lane's bit was set
	 * before.
	 */
	return twi_load_acquire(&lane->known);
}

void twi_lane_ready(struct twi_worker *worker, struct twi_lane *lane)
{
	if (!lane_known(lane))
		twi_lane_join(worker, lane);
}

/*
 * Makes the lane ready. Returns true if this was the first push to an exclusive lane: the lane may
 * now have a ring, so the caller must try the ring again.
 */
static bool lane_ring_made(struct twi_worker *worker, struct twi_lane *lane)
{
	bool first = !lane->joined;

	twi_lane_ready(worker, lane);
	return first && lane->joined;
}

TWI_NOINLINE void twi_lane_push_linked(struct twi_worker *worker, struct twi_lane *lane,
				       struct twi_node *node, uint64_t generation)
{
	if (lane_ring_made(worker, lane)) {
		twi_lane_push(worker, lane, node, generation);
		return;
	}
	twi_node_offer(node, generation, TWI_WORD_LINKED);
	twi_mpsc_push_mp(&lane->ingress, &node->ingress);
}

TWI_NOINLINE void twi_lane_cancelled_linked(struct twi_worker *worker, struct twi_lane *lane,
					    struct twi_node *node)
{
	if (lane_ring_made(worker, lane)) {
		twi_lane_push_cancelled(worker, lane, node);
		return;
	}
	twi_mpsc_push_mp(&lane->cancelled, &node->cancelled);
}

int64_t twi_lane_push_queued(struct twi_worker *worker, struct twi_lane *lane,
			     struct twi_node *node)
{
	TWI_TEST_POINT("reschedule:queued");
	twi_lane_push_cancelled(worker, lane, node);
	TWI_TEST_POINT("reschedule:pushed");
	/*
	 * E8: reads the deadline between our push and our load of wake_before_ns. The access must
	 * be a read-modify-write (an addition of 0), so that it has a place in the order of all
	 * changes of the deadline (api/reschedule.c). The node may serve another timeout by now.
	 * Then one wake-up may be superfluous.
	 */
	return twi_fetch_add_release(&node->deadline_ns, 0);
}

TWI_COLD void twi_units_add(struct twi_worker *worker, uint32_t units)
{
	/* E8: the count must be raised before the check whether the worker sleeps. */
	if (twi_fetch_add_seq_cst(&worker->units_pending, units) + units >= TWI_UNITS_MAX)
		twi_park_wake(&worker->park);
}
