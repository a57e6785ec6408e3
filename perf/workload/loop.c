/* SPDX-License-Identifier: MIT */
/*
 * loop-*: the timeouts of an event loop, while many others are pending.
 *
 * There is no second thread. One operation is a pair: schedule for 60-3600 s, and cancel at once.
 * The caller computes the deadlines, and the timeouts are owner-only. The other pending timeouts
 * have delays of the same range. The event loops among the peers do the same in peer/loop.h.
 */
#include "harness/bench.h"
#include "harness/measure.h"
#include "harness/shape.h"
#include "workload/workload.h"

#include <stdlib.h>

static int prepare(struct bench *bench, struct random *random, uint64_t live, struct sample *sample)
{
	int64_t now_ns = tw_engine_now(bench->engine);

	for (uint64_t id = 1; id <= live; id++) {
		int error = tw_schedule_at(bench->engine, now_ns + loop_delay_ns(random),
					   &bench_kind_owned, id_to_arg(id), NULL);

		if (error)
			return error;
		tally_add(&sample->account.scheduled, id);
	}
	/* The poll moves them into the wheel. */
	return tw_engine_poll(bench->engine, 0) < 0 ? -1 : 0;
}

static int pairs(struct bench *bench, struct random *random, uint64_t first_id,
		 struct sample *sample)
{
	const uint64_t ops = bench->options->ops;
	int64_t now_ns = tw_engine_now(bench->engine);
	struct tally scheduled = {0, 0};
	struct tally cancelled = {0, 0};
	int64_t started_ns = measure_now_ns();
	int error = 0;

	for (uint64_t id = first_id; id != first_id + ops; id++) {
		struct tw_handle handle;

		error = tw_schedule_at(bench->engine, now_ns + loop_delay_ns(random),
				       &bench_kind_owned, id_to_arg(id), &handle);
		if (error)
			break;
		tally_add(&scheduled, id);
		if (tw_cancel(handle) == TW_CANCEL_DONE)
			tally_add(&cancelled, id);
	}
	sample->ns_per_op = (double)(measure_now_ns() - started_ns) / (double)ops;
	tally_merge(&sample->account.scheduled, scheduled);
	tally_merge(&sample->account.cancelled, cancelled);
	return error;
}

int workload_loop(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	struct options own = *options;
	struct random random = random_seeded(1);
	struct sample sample = sample_empty();
	struct bench bench;
	int64_t cpu_ns;
	int close_error, error;

	own.loop = true;
	error = bench_open(&own, 0, &bench);
	if (error)
		return error;
	error = tw_loop_enter(bench.engine);
	if (!error)
		error = prepare(&bench, &random, live, &sample);
	bench_note_memory(&bench);
	cpu_ns = measure_cpu_ns();
	if (!error)
		error = pairs(&bench, &random, live + 1, &sample);
	sample.cpu_ns_per_op = (double)(measure_cpu_ns() - cpu_ns) / (double)options->ops;
	close_error = bench_close(&bench, &sample);
	*ret_sample = sample;
	return error ? error : close_error;
}
