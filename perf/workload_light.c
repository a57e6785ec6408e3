/* SPDX-License-Identifier: MIT */
/*
 * light: 1,000 timeouts of 1-50 ms a second, all fire: how late are they when nothing presses?
 *
 * Each producer sleeps between two schedules. ns per operation is the time inside schedule, a wake
 * of the sleeping worker included where there was one, and the harness's own clock read.
 */
#include "measure.h"
#include "producer.h"
#include "workload.h"

enum { FROM_US = 1000, TO_US = 50000 };
#define PERIOD_NS INT64_C(1000000)
#define WAIT_NS INT64_C(10000000000)

static int schedule_one(struct producer *producer, uint64_t id)
{
	int64_t delay_ns = random_delay_ns(&producer->random, FROM_US, TO_US);
	int64_t before_ns = measure_now_ns();
	int error = producer_schedule(producer, delay_ns, &bench_kind_late, id, NULL);

	producer->inside_ns += measure_now_ns() - before_ns;
	return error;
}

static int run(struct producer *producer)
{
	int64_t next_ns = measure_now_ns();

	for (uint64_t i = 0; i < producer->ops; i++) {
		int error = schedule_one(producer, producer->first_id + i);

		if (error)
			return error;
		tally_add(&producer->scheduled, producer->first_id + i);
		next_ns += PERIOD_NS * (int64_t)producer->count;
		measure_sleep_until_ns(next_ns);
	}
	return 0;
}

int workload_light(const struct options *options, uint64_t unused, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.run = run,
		.ops = options->ops,
		.wait_expired = options->ops,
		.wait_timeout_ns = WAIT_NS,
	};

	(void)unused;
	return producers_bench(options, &plan, ret_sample);
}
