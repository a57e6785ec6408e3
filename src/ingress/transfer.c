/* SPDX-License-Identifier: MIT */
/*
 * Moves timeouts from the rings (collect.c) and from the link queues of ingress into the wheel.
 * Moves at most one batch at a time, so that due timeouts do not wait for too long. If a timeout
 * was cancelled before its transfer, it never enters the wheel. If it was in a link queue, the
 * worker returns its node to the pool here.
 */
#include "ingress/transfer.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "ingress/collect.h"
#include "ingress/lanes.h"
#include "ingress/reclaim.h"

/*
 * Moves a timeout from a link queue into the wheel. If it was cancelled, frees its node instead and
 * returns false.
 */
static TWI_WORKER_ONLY bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/*
	 * RELAXED: the swap decides, and the load of the link (E1) has acquired the node's fields.
	 */
	uint64_t word = twi_load_relaxed(&node->word);

	TWI_TEST_POINT("transfer:taken");
	while (twi_word_state(word) == TWI_WORD_LINKED) {
		/*
		 * The swap must come before the slot entry is made. A thread that cancels the
		 * timeout after the swap, or makes it earlier, then pushes the node to the worker.
		 * E4: acquires the deadline of an earlier reschedule, because the slot entry
		 * depends on it.
		 */
		if (twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_WHEELED))) {
			TWI_PROBE3(transfer, worker, node, twi_word_generation(word));
			twi_wheel_insert(worker->wheel, node);
			return true;
		}
	}
	TWI_PROBE3(reclaim, worker, node, twi_word_generation(word));
	twi_worker_give_up(worker, node);
	twi_pool_give(&worker->self->stock, node);
	return false;
}

static TWI_WORKER_ONLY uint64_t lane_transfer(struct twi_worker *worker, struct twi_lane *lane,
					      uint64_t most, unsigned *left)
{
	/*
	 * Nodes that are pushed after this load wait for the next turn. If the worker followed the
	 * pushes, the cache lines of new nodes would move back and forth between the cores.
	 */
	const struct twi_mpsc_node *last = twi_mpsc_last_sc(&lane->ingress);
	struct twi_mpsc_node *link = NULL;
	uint64_t transferred = 0;
	uint64_t taken = 0;

	while (taken < most && link != last) {
		link = twi_mpsc_take_sc(&lane->ingress, &lane->ingress_out);
		if (link == NULL) {
			*left |= twi_lane_left(lane, last, &lane->ingress_out);
			break;
		}
		TWI_PREFETCH_WRITE(lane->ingress_out.tail);
		twi_pool_guess_ahead(lane->ingress_out.tail);
		transferred += node_transfer(worker, twi_node_of_ingress(link));
		taken++;
	}
	twi_count_add(&worker->transferred_count, transferred);
	twi_count_add(&worker->unlinked_count, taken - transferred);
	twi_count_add(&worker->reclaimed_count, taken - transferred);
	return taken;
}

/* Counts a transfer of `taken` entries. RELAXED: only the worker writes these counters. */
static void batch_count(struct twi_worker *worker, uint64_t taken)
{
	if (taken == 0)
		return;
	twi_count_add(&worker->transfer_count, 1);
	if (taken > twi_load_relaxed(&worker->largest_transfer))
		twi_store_relaxed(&worker->largest_transfer, taken);
}

/*
 * Takes from the lane's ring and from its link queue. Each of the two comes first in turn.
 * Otherwise one of them could starve while the other is always full.
 */
static TWI_WORKER_ONLY uint64_t lane_take_both(struct twi_worker *worker, struct twi_lane *lane,
					       uint64_t most, unsigned *left)
{
	twi_lane_step *first = lane->links_first ? lane_transfer : twi_lane_collect;
	twi_lane_step *second = lane->links_first ? twi_lane_collect : lane_transfer;
	uint64_t taken = first(worker, lane, most, left);

	lane->links_first = !lane->links_first;
	if (taken < most)
		taken += second(worker, lane, most - taken, left);
	return taken;
}

uint64_t twi_ingress_take(struct twi_worker *worker, uint64_t batch, unsigned *left)
{
	return twi_lanes_take(worker, lane_take_both, batch, left);
}

unsigned twi_worker_transfer(struct twi_worker *worker, uint64_t batch)
{
	unsigned left = TWI_LEFT_NOTHING;

	batch_count(worker, twi_ingress_take(worker, batch, &left));
	return left;
}
