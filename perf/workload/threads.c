/* SPDX-License-Identifier: MIT */
/*
 * threads: a server with many threads, each with a few pending timeouts.
 *
 * Each producer owns a window of timeouts, oldest first. One operation is a pair: cancel the
 * oldest, schedule a new one in its place. A part of the new timeouts is due after 1 ms, and fires
 * if the cancel comes later. The others have delays of 30-60 s.
 */
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

#define FIRE_NS INT64_C(1000000)

static uint64_t fire_percent;

static int schedule_one(struct producer *producer, uint64_t id, struct tw_handle *ret_handle)
{
	bool fires = random_below(&producer->random, 100) < fire_percent;
	int64_t delay_ns = fires ? FIRE_NS : live_ring_delay_ns(&producer->random);
	int error = producer_schedule(producer, delay_ns, &bench_kind, id, ret_handle);

	if (!error)
		tally_add(&producer->scheduled, id);
	return error;
}

static int prepare(struct producer *producer)
{
	int error = 0;

	for (uint64_t i = 0; i < producer->live_count && !error; i++)
		error = schedule_one(producer, producer->first_id + i, &producer->live[i]);
	return error;
}

static int run(struct producer *producer)
{
	uint64_t oldest_id = producer->first_id;
	uint64_t slot = 0;
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error; i++, oldest_id++) {
		if (tw_cancel(producer->live[slot]) == TW_CANCEL_DONE)
			tally_add(&producer->cancelled, oldest_id);
		error = schedule_one(producer, oldest_id + producer->live_count,
				     &producer->live[slot]);
		slot = slot + 1 == producer->live_count ? 0 : slot + 1;
	}
	return error;
}

int workload_threads(const struct options *options, uint64_t percent, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = prepare,
		.run = run,
		.ops = options->ops,
		.live_count = (uint64_t)options->producers * WORKLOAD_THREADS_WINDOW,
		.memory_when_prepared = true,
	};

	fire_percent = percent;
	return producers_bench(options, &plan, ret_sample);
}
