/* SPDX-License-Identifier: MIT */
/*
 * Workloads of the curves, in addition to those of workload/workload.h.
 *
 * In trickle, the producers make pairs of schedule and cancel as fast as they can. Before one in
 * 4,096 pairs a producer also schedules a timeout that fires in 1-50 ms. The workload shows how
 * late the worker is under full load. In ring, a producer cancels its oldest live timeout and
 * schedules a new one, again and again. In fire, all timeouts fire.
 */
#include "harness/producer.h"
#include "scale/scale.h"

enum { TRICKLE_EVERY = 4096, TRICKLE_FROM_US = 1000, TRICKLE_TO_US = 50000 };
enum { LATENESS_EVERY = 8, RING_MAX = 1000000 };
#define PAIR_DELAY_NS INT64_C(30000000000)
#define WAIT_NS INT64_C(120000000000)
#define MS INT64_C(1000000)
#define S (1000 * MS)
#define DAY (86400 * S)

const struct scale_range scale_ring_ranges[] = {
	{"10s-20s", 10 * S, 20 * S},
	{"1min-1h", 60 * S, 3600 * S},
	{"1h-1d", 3600 * S, DAY},
	{"1d-1year", DAY, 365 * DAY},
	{"1year-100years", 365 * DAY, 36500 * DAY},
	{NULL, 0, 0},
};

const struct scale_range scale_fire_ranges[] = {
	{"1ms-10ms", MS, 10 * MS},
	{"1ms-100ms", MS, 100 * MS},
	{"1ms-1s", MS, 1000 * MS},
	{"1ms-4s", MS, 4 * S},
	{NULL, 0, 0},
};

static uint64_t trickles(uint64_t ops)
{
	return (ops + TRICKLE_EVERY - 1) / TRICKLE_EVERY;
}

/*
 * Returns how many timeouts all producers together schedule in addition to their pairs. The
 * producers' shares of the operations differ by one at most.
 */
static uint64_t trickles_of_all(const struct options *options)
{
	uint64_t share = options->ops / options->producers;
	uint64_t larger = options->ops % options->producers;

	return larger * trickles(share + 1) + (options->producers - larger) * trickles(share);
}

static int trickle(struct producer *producer, uint64_t id)
{
	int64_t delay_ns = random_delay_ns(&producer->random, TRICKLE_FROM_US, TRICKLE_TO_US);
	int error = producer_schedule(producer, delay_ns, &bench_kind_late, id, NULL);

	if (!error)
		tally_add(&producer->scheduled, id);
	return error;
}

static int pair(struct producer *producer, uint64_t id)
{
	struct tw_handle handle;
	int error = producer_schedule(producer, PAIR_DELAY_NS, &bench_kind, id, &handle);

	if (error)
		return error;
	tally_add(&producer->scheduled, id);
	if (tw_cancel(handle) == TW_CANCEL_DONE)
		tally_add(&producer->cancelled, id);
	return 0;
}

static int trickle_run(struct producer *producer)
{
	uint64_t trickle_id = producer->first_id + producer->ops;
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error; i++) {
		if (i % TRICKLE_EVERY == 0)
			error = trickle(producer, trickle_id++);
		if (!error)
			error = pair(producer, producer->first_id + i);
	}
	return error;
}

int scale_trickle(const struct options *options, uint64_t unused, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.run = trickle_run,
		.ops = options->ops,
		.wait_expired = trickles_of_all(options),
		.wait_timeout_ns = WAIT_NS,
	};

	(void)unused;
	return producers_bench(options, &plan, ret_sample);
}

/* The range of the delays. It can be global, because a process runs only one workload. */
static struct scale_range range;

static int64_t range_delay_ns(struct producer *producer)
{
	uint64_t span_us = (uint64_t)(range.to_ns - range.from_ns) / 1000;

	return range.from_ns + (int64_t)(random_next(&producer->random) % span_us) * 1000;
}

static int ring_schedule(struct producer *producer, uint64_t id, struct tw_handle *ret_handle)
{
	int error =
		producer_schedule(producer, range_delay_ns(producer), &bench_kind, id, ret_handle);

	if (!error)
		tally_add(&producer->scheduled, id);
	return error;
}

static int ring_prepare(struct producer *producer)
{
	int error = 0;

	for (uint64_t i = 0; i < producer->live_count && !error; i++)
		error = ring_schedule(producer, producer->first_id + i, &producer->live[i]);
	return error;
}

static int ring_run(struct producer *producer)
{
	uint64_t live = producer->live_count;
	uint64_t slot = 0;
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && live && !error; i++) {
		uint64_t oldest_id = producer->first_id + i;

		if (tw_cancel(producer->live[slot]) == TW_CANCEL_DONE)
			tally_add(&producer->cancelled, oldest_id);
		error = ring_schedule(producer, oldest_id + live, &producer->live[slot]);
		slot = slot + 1 == live ? 0 : slot + 1;
	}
	return error;
}

int scale_ring(const struct options *options, uint64_t which, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = ring_prepare,
		.run = ring_run,
		.ops = options->ops,
		.live_count = options->pending && options->pending < RING_MAX ? options->pending
									      : RING_MAX,
		.memory_when_prepared = true,
	};

	range = scale_ring_ranges[which];
	return producers_bench(options, &plan, ret_sample);
}

static int fire_run(struct producer *producer)
{
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error; i++) {
		uint64_t id = producer->first_id + i;

		error = producer_schedule(producer, range_delay_ns(producer),
					  i % LATENESS_EVERY ? &bench_kind : &bench_kind_late, id,
					  NULL);
		if (!error)
			tally_add(&producer->scheduled, id);
	}
	return error;
}

int scale_fire(const struct options *options, uint64_t which, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.run = fire_run,
		.ops = options->ops,
		.wait_expired = options->ops,
		.wait_timeout_ns = WAIT_NS,
	};

	range = scale_fire_ranges[which];
	return producers_bench(options, &plan, ret_sample);
}
