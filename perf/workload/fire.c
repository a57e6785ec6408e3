/* SPDX-License-Identifier: MIT */
/*
 * fire: the producers schedule timeouts of 1-1000 ms as fast as they can, and all of them fire.
 *
 * The wall time is that of the producers' schedules, including page faults of fresh memory. The CPU
 * time is that of all threads until the last callback has run. The lateness is measured only for
 * every eighth timeout, because a clock read in each callback would be a tenth of the cost.
 */
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

enum { NOTE_EVERY = 1 << 16 };

static int schedule_one(struct producer *producer, uint64_t id)
{
	int64_t delay_ns = fire_delay_ns(&producer->random);

	return producer_schedule(producer, delay_ns, &bench_kind_late_sampled, id, NULL);
}

static int run(struct producer *producer)
{
	struct tally scheduled = {0, 0};
	int error = 0;

	for (uint64_t i = 0; i < producer->ops; i++) {
		uint64_t id = producer->first_id + i;

		error = schedule_one(producer, id);
		if (error)
			break;
		tally_add(&scheduled, id);
		if (producer->index == 0 && i % NOTE_EVERY == NOTE_EVERY - 1)
			bench_note_memory(producer->bench);
	}
	producer->scheduled = scheduled;
	if (producer->index == 0)
		bench_note_memory(producer->bench);
	return error;
}

int workload_fire(const struct options *options, uint64_t unused, struct sample *ret_sample)
{
	const struct producer_plan plan = {
		.run = run,
		.ops = options->ops,
		.wait_expired = options->ops,
		.wait_timeout_ns = FIRE_WAIT_NS,
	};

	(void)unused;
	return producers_bench(options, &plan, ret_sample);
}
