/* SPDX-License-Identifier: MIT */
/*
 * pending-* and pending-fresh-* measure whether the cost of an operation depends on how many
 * timeouts are pending.
 *
 * One operation is a pair; delays are 60-3600 s. A pair of pending-fresh-* schedules a timeout and
 * cancels this timeout. A pair of pending-* cancels a random pending timeout, and schedules a new
 * one. The harness prefetches the handles, so that cache misses in its own array do not count as
 * the library's. A pending timeout's id is first_id plus its index in the array.
 */
#include "harness/producer.h"
#include "workload/workload.h"

#define FROM_US 60000000u
#define TO_US 3600000000u

enum { AHEAD = 16 };

static int schedule_one(struct producer *producer, uint64_t place)
{
	int64_t delay_ns = random_delay_ns(&producer->random, FROM_US, TO_US);

	return producer_schedule(producer, delay_ns, &bench_kind, producer->first_id + place,
				 &producer->live[place]);
}

static int prepare(struct producer *producer)
{
	for (uint64_t place = 0; place < producer->live_count; place++) {
		int error = schedule_one(producer, place);

		if (error)
			return error;
		tally_add(&producer->scheduled, producer->first_id + place);
	}
	return 0;
}

static uint32_t place_ahead(struct producer *producer, struct random *places)
{
	uint32_t place = random_below(places, (uint32_t)producer->live_count);

	__builtin_prefetch(&producer->live[place]);
	return place;
}

static int replace(struct producer *producer, uint64_t place)
{
	int error;

	if (tw_cancel(producer->live[place]) == TW_CANCEL_DONE)
		tally_add(&producer->cancelled, producer->first_id + place);
	error = schedule_one(producer, place);
	if (!error)
		tally_add(&producer->scheduled, producer->first_id + place);
	return error;
}

static int run(struct producer *producer)
{
	struct random places = random_seeded(producer->index + 1000);
	uint32_t ahead[AHEAD];
	int error = 0;

	if (producer->live_count == 0)
		return 0;
	for (unsigned i = 0; i < AHEAD; i++)
		ahead[i] = place_ahead(producer, &places);
	for (uint64_t i = 0; i < producer->ops && !error; i++) {
		uint32_t place = ahead[i % AHEAD];

		ahead[i % AHEAD] = place_ahead(producer, &places);
		error = replace(producer, place);
	}
	return error;
}

static int run_fresh(struct producer *producer)
{
	uint64_t first_id = producer->first_id + producer->live_count;

	for (uint64_t id = first_id; id < first_id + producer->ops; id++) {
		int64_t delay_ns = random_delay_ns(&producer->random, FROM_US, TO_US);
		struct tw_handle handle;
		int error = producer_schedule(producer, delay_ns, &bench_kind, id, &handle);

		if (error)
			return error;
		tally_add(&producer->scheduled, id);
		if (tw_cancel(handle) == TW_CANCEL_DONE)
			tally_add(&producer->cancelled, id);
	}
	return 0;
}

static int pending_bench(const struct options *options, uint64_t live,
			 int (*body)(struct producer *producer), struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = prepare,
		.run = body,
		.ops = options->ops,
		.live_count = live,
		.memory_when_prepared = true,
	};

	return producers_bench(options, &plan, ret_sample);
}

int workload_pending(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	return pending_bench(options, live, run, ret_sample);
}

int workload_pending_fresh(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	return pending_bench(options, live, run_fresh, ret_sample);
}
