/* SPDX-License-Identifier: MIT */
/*
 * light and crowded: 1,000 timeouts of 1-50 ms a second, all fire: how late are they?
 *
 * Light: nothing presses. Crowded: meanwhile the hierarchical wheel comes to a far slot with a crowd
 * in it, all of which has to be filed anew, and is due only at the end of the time that the slot is
 * for, after the measurement.
 *
 * Each producer sleeps between two schedules. ns per operation is the time inside schedule, a wake
 * of the sleeping worker included where there was one, and the harness's own clock read.
 */
#include "harness/measure.h"
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

/* Of the wheel's slot from tick 16384 to 20480, near its end. */
enum { CROWD_TICK = 20000, CROWD_TICKS = 400 };

static int schedule_one(struct producer *producer, uint64_t id)
{
	int64_t delay_ns = light_delay_ns(&producer->random);
	int64_t before_ns = measure_now_ns();
	int error = producer_schedule(producer, delay_ns, &bench_kind_late, id, NULL);

	producer->inside_ns += measure_now_ns() - before_ns;
	return error;
}

/* The worker is told of them in time: they are in the wheel before the first of the others. */
static int prepare(struct producer *producer)
{
	int64_t tick_ns = (int64_t)producer->bench->options->tick_ns;
	uint64_t first_id = producer->first_id + producer->ops;

	for (uint64_t i = 0; i < producer->live_count; i++) {
		int64_t delay_ns = (CROWD_TICK + (int64_t)(i % CROWD_TICKS)) * tick_ns;
		int error = tw_schedule(producer->engine, delay_ns, &bench_kind,
					id_to_arg(first_id + i), &producer->live[i]);

		if (error)
			return error;
		tally_add(&producer->scheduled, first_id + i);
	}
	return 0;
}

static int run(struct producer *producer)
{
	int64_t next_ns = measure_now_ns();

	for (uint64_t i = 0; i < producer->ops; i++) {
		int error = schedule_one(producer, producer->first_id + i);

		if (error)
			return error;
		tally_add(&producer->scheduled, producer->first_id + i);
		next_ns += LIGHT_PERIOD_NS * (int64_t)producer->count;
		measure_sleep_until_ns(next_ns);
	}
	return 0;
}

int workload_light(const struct options *options, uint64_t crowd, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.prepare = prepare,
		.run = run,
		.ops = options->ops,
		.live_count = crowd,
		.wait_expired = options->ops,
		.wait_timeout_ns = LIGHT_WAIT_NS,
	};

	return producers_bench(options, &plan, ret_sample);
}
