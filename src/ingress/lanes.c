/* SPDX-License-Identifier: MIT */
/*
 * Takes a batch of entries from many lanes. Each lane in use gets an equal share of the batch
 * first, and lanes that have more entries share the rest. So a flood in one lane does not hold up
 * another thread's timeouts.
 */
#include "ingress/lanes.h"

#include "base/atomic.h"
#include "memory/memory.h"

#include <pthread.h>

void twi_lanes_free(struct twi_worker *worker)
{
	for (uint32_t number = 0; number < TWI_LANES; number++) {
		/* RELAXED: no other thread uses the engine any more. */
		void *entry = twi_load_relaxed(&worker->lane[number].ring.entry);

		twi_tsan_acquire(entry);
		if (entry != NULL)
			worker->allocator->release(worker->allocator->context, entry,
						   TWI_RING_BYTES, TWI_CACHE_LINE);
	}
}

static TWI_WORKER_ONLY bool queue_idle(const struct twi_mpsc_in *in, const struct twi_mpsc_out *out)
{
	return twi_mpsc_last_sc(in) == &out->stub && out->tail == &out->stub;
}

bool twi_lane_idle(const struct twi_lane *lane)
{
	/* The deadline cannot decide, because a node in a cancel queue may have an earlier one. */
	return twi_ring_pushed(&lane->ring) == twi_ring_taken(&lane->ring_out) &&
	       queue_idle(&lane->ingress, &lane->ingress_out) &&
	       queue_idle(&lane->cancelled, &lane->cancelled_out);
}

bool twi_lanes_idle(const struct twi_worker *worker)
{
	/* E8: the sleeper's last look, lane by lane. */
	uint64_t used = twi_load_seq_cst(&worker->lanes_used);

	for (; used != 0; used &= used - 1) {
		if (!twi_lane_idle(&worker->lane[__builtin_ctzll(used)]))
			return false;
	}
	return true;
}

/* One round over the lanes in use. */
struct round {
	uint64_t used;
	uint64_t share; /* the most entries that one lane may give */
	uint64_t batch;
	bool more; /* a lane gave its whole share */
};

static TWI_WORKER_ONLY uint64_t round_take(struct twi_worker *worker, twi_lane_step *step,
					   struct round *round, unsigned *left)
{
	uint64_t taken = 0;

	for (uint32_t i = 0; i < TWI_LANES && taken < round->batch; i++) {
		uint32_t number = (worker->first_lane + i) % TWI_LANES;
		uint64_t room = round->batch - taken;
		uint64_t most = room < round->share ? room : round->share;
		uint64_t count;

		if ((round->used >> number & 1) == 0)
			continue;
		count = step(worker, &worker->lane[number], most, left);
		round->more |= count == most;
		taken += count;
	}
	return taken;
}

uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step, uint64_t batch,
			unsigned *left)
{
	/*
	 * RELAXED: a lane that is not seen here is seen in the next turn. After a grace period all
	 * lanes are seen.
	 */
	struct round round = {.used = twi_load_relaxed(&worker->lanes_used), .batch = batch};
	uint64_t taken;

	if (round.used == 0)
		return 0;
	round.share = batch / (uint64_t)__builtin_popcountll(round.used) + 1;
	taken = round_take(worker, step, &round, left);
	if (round.more && taken < batch) {
		round.share = round.batch = batch - taken;
		taken += round_take(worker, step, &round, left);
	}
	if (taken == batch) {
		*left |= TWI_LEFT_MORE;
		worker->first_lane = (worker->first_lane + 1) % TWI_LANES;
	}
	return taken;
}
