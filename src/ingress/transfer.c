/* SPDX-License-Identifier: MIT */
/*
 * Moves timeouts from the rings (collect.c) and from the link queues of ingress into the wheel. It
 * moves at most one batch at a time, so that expiry is not delayed for longer. A timeout that was
 * cancelled before never enters the wheel. If it was in a link queue, its node is returned to the
 * pool here.
 */
#include "ingress/transfer.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "ingress/collect.h"
#include "ingress/lanes.h"
#include "ingress/reclaim.h"

/* Returns true if the timeout went into the wheel. */
static TWI_WORKER_ONLY bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/* RELAXED: the swap decides, and E1 has acquired the node's fields. */
	uint64_t word = twi_load_relaxed(&node->word);

	TWI_TEST_POINT("transfer:taken");
	while (twi_word_state(word) == TWI_WORD_LINKED) {
		/*
		 * The swap must come before the slot entry is made. Then a thread that cancels the
		 * timeout, or makes it earlier, after the swap notifies the worker. E4: acquires
		 * earlier reschedules, because the entry is made by the deadline that they left.
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
	 * Nodes that are pushed meanwhile wait for the next turn. To follow the pushes would move
	 * their cache lines to and fro.
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

/* RELAXED: the worker is the only writer. */
static void batch_count(struct twi_worker *worker, uint64_t taken)
{
	if (taken == 0)
		return;
	twi_count_add(&worker->transfer_count, 1);
	if (taken > twi_load_relaxed(&worker->largest_transfer))
		twi_store_relaxed(&worker->largest_transfer, taken);
}

/*
 * The ring and the link queue take turns at going first. Otherwise one could starve while the other
 * is always full.
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
