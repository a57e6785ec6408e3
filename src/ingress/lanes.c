/* SPDX-License-Identifier: MIT */
/*
 * Takes a batch of entries from many lanes. In the first round the worker takes at most an equal
 * share of the batch from each lane in use. In the second round it takes the rest from lanes that
 * have more entries. So if one thread pushes very many timeouts, the worker still takes those of
 * other threads.
 */
#include "ingress/lanes.h"

#include "base/atomic.h"
#include "ingress/far.h"
#include "ingress/rings.h"

void twi_lanes_free(struct twi_worker *worker)
{
	for (uint32_t number = 0; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++) {
		struct twi_lane_block *block = twi_lane_block_at(worker, number);

		for (uint32_t i = 0; i < TWI_LANES; i++)
			twi_lane_ring_free(worker->allocator, &block->lane[i]);
	}
	twi_far_free(worker);
}

static TWI_WORKER_ONLY bool queue_idle(const struct twi_mpsc_in *in, const struct twi_mpsc_out *out)
{
	return twi_mpsc_last_sc(in) == &out->stub && out->tail == &out->stub;
}

bool twi_lane_idle(const struct twi_lane *lane)
{
	/*
	 * All three queues must be empty, whatever deadlines their nodes have: a rescheduled node
	 * in the cancel queue may have the earliest deadline of all.
	 */
	return twi_ring_pushed(&lane->ring) == twi_ring_taken(&lane->ring_out) &&
	       queue_idle(&lane->ingress, &lane->ingress_out) &&
	       queue_idle(&lane->cancelled, &lane->cancelled_out);
}

static TWI_WORKER_ONLY bool block_idle(const struct twi_lane_block *block)
{
	/* E8: this load is also part of the worker's last look before it sleeps. */
	uint64_t used = twi_load_seq_cst(&block->used);

	for (; used != 0; used &= used - 1) {
		if (!twi_lane_idle(&block->lane[__builtin_ctzll(used)]))
			return false;
	}
	return true;
}

bool twi_lanes_idle(struct twi_worker *worker)
{
	for (uint32_t number = 0; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++) {
		if (!block_idle(twi_lane_block_at(worker, number)))
			return false;
	}
	return true;
}

bool twi_lanes_unused(const struct twi_worker *worker)
{
	/*
	 * RELAXED: no other thread uses the engine. A page of far lanes exists only if a thread has
	 * pushed.
	 */
	return twi_load_relaxed(&worker->near.used) == 0 &&
	       twi_lane_block_next(worker, 1) == TWI_BLOCKS;
}

/* One round over the lanes in use. */
struct round {
	twi_lane_step *step;
	uint64_t share; /* the most entries to take from one lane */
	uint64_t batch;
	uint64_t taken;
	bool more; /* a lane gave its whole share and may have more */
};

static TWI_WORKER_ONLY void lane_take(struct twi_worker *worker, struct round *round,
				      struct twi_lane *lane, unsigned *left)
{
	uint64_t room = round->batch - round->taken;
	uint64_t most = room < round->share ? room : round->share;
	uint64_t count = round->step(worker, lane, most, left);

	round->more |= count == most;
	round->taken += count;
}

/* Takes from the lanes with the numbers from `from` to `to` - 1. */
static TWI_WORKER_ONLY void range_take(struct twi_worker *worker, struct round *round,
				       uint32_t from, uint32_t to, unsigned *left)
{
	for (uint32_t number = from / TWI_LANES;
	     (number = twi_lane_block_next(worker, number)) * TWI_LANES < to; number++) {
		struct twi_lane_block *block = twi_lane_block_at(worker, number);
		uint32_t first = number * TWI_LANES;
		uint64_t used = twi_lane_block_used(block);

		if (first < from)
			used &= UINT64_MAX << (from - first);
		if (to - first < TWI_LANES)
			used &= ~(UINT64_MAX << (to - first));
		for (; used != 0 && round->taken < round->batch; used &= used - 1)
			lane_take(worker, round, &block->lane[__builtin_ctzll(used)], left);
	}
}

static TWI_WORKER_ONLY void round_take(struct twi_worker *worker, struct round *round,
				       unsigned *left)
{
	range_take(worker, round, worker->first_lane, TWI_LANES_MAX, left);
	range_take(worker, round, 0, worker->first_lane, left);
}

static TWI_WORKER_ONLY uint64_t lanes_count(struct twi_worker *worker)
{
	uint64_t count = 0;

	for (uint32_t number = 0; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++)
		count += (uint64_t)__builtin_popcountll(
			twi_lane_block_used(twi_lane_block_at(worker, number)));
	return count;
}

/*
 * Lets the next batch begin one lane further than this one, so that each lane comes first in turn.
 */
static TWI_WORKER_ONLY void first_lane_advance(struct twi_worker *worker)
{
	uint32_t next = worker->first_lane + 1;

	if (next % TWI_LANES == 0)
		next = twi_lane_block_next(worker, next / TWI_LANES) * TWI_LANES;
	worker->first_lane = next % TWI_LANES_MAX;
}

uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step, uint64_t batch,
			unsigned *left)
{
	struct round round = {.step = step, .batch = batch};
	uint64_t lanes = lanes_count(worker);

	/* RELAXED: only a number, from which producers compute how long they pause. */
	twi_store_relaxed(&worker->lanes_seen, (uint32_t)lanes);
	if (lanes == 0)
		return 0;
	round.share = batch / lanes + 1;
	round_take(worker, &round, left);
	if (round.more && round.taken < batch) {
		round.share = batch - round.taken;
		round_take(worker, &round, left);
	}
	if (round.taken == batch) {
		*left |= TWI_LEFT_MORE;
		first_lane_advance(worker);
	}
	return round.taken;
}
