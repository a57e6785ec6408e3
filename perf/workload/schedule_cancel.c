/* SPDX-License-Identifier: MIT */
/*
 * schedule-cancel: a request timeout that is cancelled at once, because the answer comes at once.
 *
 * One operation is a pair: schedule for 30 s, cancel. Nothing stays pending.
 */
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

static int run(struct producer *producer)
{
	struct tally scheduled = {0, 0};
	struct tally cancelled = {0, 0};
	uint64_t end_id = producer->first_id + producer->ops;
	int error = 0;

	for (uint64_t id = producer->first_id; id != end_id; id++) {
		struct tw_handle handle;

		error = producer_schedule(producer, SCHEDULE_CANCEL_DELAY_NS, &bench_kind, id,
					  &handle);
		if (error)
			break;
		tally_add(&scheduled, id);
		if (tw_cancel(handle) == TW_CANCEL_DONE)
			tally_add(&cancelled, id);
	}
	producer->scheduled = scheduled;
	producer->cancelled = cancelled;
	return error;
}

int workload_schedule_cancel(const struct options *options, uint64_t unused,
			     struct sample *ret_sample)
{
	const struct producer_plan plan = {.run = run, .ops = options->ops};

	(void)unused;
	return producers_bench(options, &plan, ret_sample);
}
