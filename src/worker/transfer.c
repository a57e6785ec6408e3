/* SPDX-License-Identifier: MIT */
/*
 * From ingress into the wheel, a batch at most, so that expiry is held up by no more than that. A
 * timeout that was cancelled on the way goes back to the pool and never touches the wheel.
 */
#include "worker/worker.h"

#include "base/atomic.h"

/* True: it went into the wheel. */
static bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/* RELAXED: the compare-and-swap decides; its node was acquired by E1. */
	uint64_t word = twi_load_relaxed(&node->word);

	TWI_TEST_POINT("transfer:taken");
	/* E3: before the entry is made, so that whoever cancels from now on tells the worker. */
	if (twi_word_state(word) == TWI_WORD_INIT &&
	    twi_cas_acq_rel(&node->word, &word, twi_word_to(word, TWI_WORD_WHEELED))) {
		twi_wheel_insert(worker->wheel, node);
		return true;
	}
	twi_pool_give(&worker->self->stock, node);
	return false;
}

/* At most `most` from one lane. Returns how many were taken. */
static uint64_t lane_transfer(struct twi_worker *worker, struct twi_lane *lane, uint64_t most)
{
	uint64_t taken = 0;
	uint64_t transferred = 0;
	/* What comes meanwhile waits for the next turn: a chase would move lines to and fro. */
	const struct twi_mpsc_node *last = twi_mpsc_last_sc(&lane->ingress);
	struct twi_mpsc_node *link = NULL;

	while (taken < most && link != last &&
	       (link = twi_mpsc_take_sc(&lane->ingress, &lane->ingress_out)) != NULL) {
		TWI_PREFETCH_WRITE(lane->ingress_out.tail);
		transferred += node_transfer(worker, twi_node_of_ingress(link));
		taken++;
	}
	twi_count_add(&worker->transferred_count, transferred);
	return taken;
}

static void batch_count(struct twi_worker *worker, uint64_t taken)
{
	if (taken == 0)
		return;
	twi_count_add(&worker->transfer_count, 1);
	/* RELAXED: one writer. */
	if (taken > twi_load_relaxed(&worker->largest_transfer))
		twi_store_relaxed(&worker->largest_transfer, taken);
}

bool twi_worker_transfer(struct twi_worker *worker, uint64_t batch)
{
	uint64_t taken = 0;
	/* RELAXED: as in reclaim. */
	uint64_t used = twi_load_relaxed(&worker->lanes_used);

	/* A batch that ended in the middle goes on with the lane that it did not finish. */
	for (uint32_t i = 0; i < TWI_LANES && taken < batch; i++) {
		uint32_t number = (worker->first_lane + i) % TWI_LANES;

		if ((used >> number & 1) == 0)
			continue;
		taken += lane_transfer(worker, &worker->lane[number], batch - taken);
		if (taken == batch)
			worker->first_lane = number;
	}
	batch_count(worker, taken);
	return taken == batch;
}
