/* SPDX-License-Identifier: MIT */
/*
 * light and crowded: the producers schedule 1,000 timeouts of 1-50 ms each second, and all fire.
 * The result is their lateness.
 *
 * In light, there is no other work. In crowded, the hierarchical wheel reaches a far slot with very
 * many timeouts during the measurement, and must move all of them to other slots. These timeouts
 * are due only at the end of the slot's time, after the measurement.
 *
 * Each producer sleeps between two schedules. ns per operation is the time inside schedule. It
 * includes the wake-up of the worker, if the worker was asleep, and the harness's own clock read.
 */
#include "harness/measure.h"
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

/* The crowd's ticks lie near the end of the wheel's slot that covers the ticks 16384 to 20480. */
enum { CROWD_TICK = 20000, CROWD_TICKS = 400 };

static int schedule_one(struct producer *producer, uint64_t id)
{
	int64_t delay_ns = light_delay_ns(&producer->random);
	int64_t before_ns = measure_now_ns();
	int error = producer_schedule(producer, delay_ns, &bench_kind_late, id, NULL);

	producer->inside_ns += measure_now_ns() - before_ns;
	return error;
}

/*
 * Schedules the crowd. The harness then flushes the engine, so the crowd is in the wheel before the
 * other timeouts are scheduled.
 */
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
