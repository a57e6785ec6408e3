/* SPDX-License-Identifier: MIT */
/*
 * From the rings (collect.c) and from the link queues of ingress into the wheel, a batch at most, so that
 * expiry is held up by no more than that. A timeout that was cancelled on the way never touches the wheel;
 * out of a link queue it goes back to the pool here.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "base/probe.h"

/* True: it went into the wheel. */
static TWI_WORKER_ONLY bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/* RELAXED: the swap decides; its node was acquired by E1. */
	uint64_t word = twi_load_relaxed(&node->word);

	TWI_TEST_POINT("transfer:taken");
	while (twi_word_state(word) == TWI_WORD_LINKED) {
		/*
		 * Before the entry is made, so that whoever cancels or wants it earlier from now on
		 * tells the worker. E4: and what was rescheduled before is in the deadline that the
		 * entry is made by.
		 */
		if (twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_WHEELED))) {
			TWI_PROBE3(transfer, worker, node, twi_word_birth(word));
			twi_wheel_insert(worker->wheel, node);
			return true;
		}
	}
	TWI_PROBE3(reclaim, worker, node, twi_word_birth(word));
	twi_worker_give_up(worker, node);
	twi_pool_give(&worker->self->stock, node);
	return false;
}

static TWI_WORKER_ONLY uint64_t lane_transfer(struct twi_worker *worker, struct twi_lane *lane,
					      uint64_t most, unsigned *left)
{
	/* What comes meanwhile waits for the next turn: a chase would move lines to and fro. */
	const struct twi_mpsc_node *last = twi_mpsc_last_sc(&lane->ingress);
	struct twi_mpsc_node *link = NULL;
	uint64_t transferred = 0;
	uint64_t taken = 0;

	while (taken < most && link != last) {
		link = twi_mpsc_take_sc(&lane->ingress, &lane->ingress_out);
		if (link == NULL) {
			*left |= twi_lane_left(worker, lane, last, &lane->ingress_out);
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

/* RELAXED: one writer. */
static void batch_count(struct twi_worker *worker, uint64_t taken)
{
	if (taken == 0)
		return;
	twi_count_add(&worker->transfer_count, 1);
	if (taken > twi_load_relaxed(&worker->largest_transfer))
		twi_store_relaxed(&worker->largest_transfer, taken);
}

/* Ring and link queue go first by turns, so that neither starves behind the other where both are full. */
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
