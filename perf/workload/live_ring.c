/* SPDX-License-Identifier: MIT */
/*
 * live-ring: a server with a million pending requests.
 *
 * Each producer owns its share of the live timeouts, oldest first in a ring. One operation is a
 * pair: cancel the oldest, schedule a new one for 30-60 s in its place. Ids are consecutive, so
 * that the id of the oldest timeout need not be stored.
 */
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

static int schedule_one(struct producer *producer, uint64_t id, struct tw_handle *ret_handle)
{
	int64_t delay_ns = live_ring_delay_ns(&producer->random);

	return producer_schedule(producer, delay_ns, &bench_kind, id, ret_handle);
}

static int prepare(struct producer *producer)
{
	for (uint64_t i = 0; i < producer->live_count; i++) {
		uint64_t id = producer->first_id + i;
		int error = schedule_one(producer, id, &producer->live[i]);

		if (error)
			return error;
		tally_add(&producer->scheduled, id);
	}
	return 0;
}

static int run(struct producer *producer)
{
	struct tally scheduled = producer->scheduled;
	struct tally cancelled = {0, 0};
	uint64_t oldest_id = producer->first_id;
	uint64_t slot = 0;
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && producer->live_count && !error; i++) {
		if (tw_cancel(producer->live[slot]) == TW_CANCEL_DONE)
			tally_add(&cancelled, oldest_id);
		error = schedule_one(producer, oldest_id + producer->live_count,
				     &producer->live[slot]);
		if (!error)
			tally_add(&scheduled, oldest_id + producer->live_count);
		oldest_id++;
		slot = slot + 1 == producer->live_count ? 0 : slot + 1;
	}
	producer->scheduled = scheduled;
	producer->cancelled = cancelled;
	return error;
}

int workload_live_ring(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = prepare,
		.run = run,
		.ops = options->ops,
		.live_count = live,
		.memory_when_prepared = true,
	};

	return producers_bench(options, &plan, ret_sample);
}
