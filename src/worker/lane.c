/* SPDX-License-Identifier: MIT */
/*
 * Batches over many lanes. Each lane in use gets its share of a batch first, and what is left over
 * goes to whoever has more, so that no flood holds up another thread's timeouts.
 */
#include "worker/worker.h"

#include "base/atomic.h"

TWI_COLD void twi_lane_join(struct twi_worker *worker, uint32_t number)
{
	/* E8: before the push that may need a wake. */
	(void)twi_fetch_or_seq_cst(&worker->lanes_used, UINT64_C(1) << number);
	/* E15: the bit comes before whatever anybody pushes to a lane that is known. */
	twi_store_release(&worker->lane[number].known, true);
}

TWI_COLD void twi_unseen_note(struct twi_worker *worker)
{
	/* E8: the reason, before the wake. */
	if (twi_fetch_add_seq_cst(&worker->unseen, 1) + 1 >= TWI_UNSEEN_MAX)
		twi_park_wake(&worker->park);
}

static TWI_WORKER_ONLY bool queue_idle(const struct twi_mpsc_in *in, const struct twi_mpsc_out *out)
{
	return twi_mpsc_last_sc(in) == &out->stub && out->tail == &out->stub;
}

bool twi_lanes_idle(const struct twi_worker *worker)
{
	/* E8: the sleeper's last look, lane by lane. */
	uint64_t used = twi_load_seq_cst(&worker->lanes_used);

	for (; used != 0; used &= used - 1) {
		const struct twi_lane *lane = &worker->lane[__builtin_ctzll(used)];

		/* What is in a cancel queue may be an earlier deadline. */
		if (!queue_idle(&lane->ingress, &lane->ingress_out) ||
		    !queue_idle(&lane->cancelled, &lane->cancelled_out))
			return false;
	}
	return true;
}

/* One round over the lanes in use. */
struct round {
	uint64_t used;
	uint64_t share; /* the most that one lane gives */
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
	/* RELAXED: a lane seen too late is seen in the next turn; after a grace period, all are. */
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
