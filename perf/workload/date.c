/* SPDX-License-Identifier: MIT */
/*
 * date-at, date-wall, date-step: compares the cost of a date with that of a deadline, and measures
 * the cost of a step of the wall clock.
 *
 * date-at, date-wall: one operation is one schedule for 1 to 2 hours from now, by a deadline or by
 * a date. CPU time is that of all threads until the wheel holds all timeouts, because the worker
 * computes the deadline of a date.
 *
 * date-step: many dates are pending in virtual time, and the workload sets the wall clock forward
 * by a second. One operation is one date: the worker puts the date's timeout into another slot.
 */
#include "harness/bench.h"
#include "harness/measure.h"
#include "harness/random.h"
#include "workload/workload.h"

#include <time.h>

#define DATE_NS TW_HOURS(500000)

static int64_t wall_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return TW_S(now.tv_sec) + now.tv_nsec;
}

/* Schedules all timeouts, either by dates or by deadlines, for 1 to 2 hours after `now_ns`. */
static int schedule_all(struct bench *bench, bool dates, int64_t now_ns, struct sample *sample)
{
	struct random random = random_seeded(1);
	int error = 0;

	for (uint64_t id = 1; id <= bench->options->ops && !error; id++) {
		int64_t at_ns = now_ns + TW_HOURS(1) + TW_MS(random_below(&random, 3600000));

		error = dates ? tw_schedule_wall(bench->engine, at_ns, &bench_kind, id_to_arg(id),
						 NULL)
			      : tw_schedule_at(bench->engine, at_ns, &bench_kind, id_to_arg(id),
					       NULL);
		if (!error)
			tally_add(&sample->account.scheduled, id);
	}
	return error;
}

static int measure_schedules(struct bench *bench, bool dates, struct sample *sample)
{
	const double ops = (double)bench->options->ops;
	int64_t cpu_ns = measure_cpu_ns();
	int64_t started_ns = measure_now_ns();
	int error = schedule_all(bench, dates, dates ? wall_now_ns() : tw_engine_now(bench->engine),
				 sample);

	sample->ns_per_op = (double)(measure_now_ns() - started_ns) / ops;
	if (!error)
		error = tw_engine_flush(bench->engine, TW_NEVER);
	sample->cpu_ns_per_op = (double)(measure_cpu_ns() - cpu_ns) / ops;
	bench_note_memory(bench);
	return error;
}

static int prepare_step(struct bench *bench, struct sample *sample)
{
	int error = tw_clock_set_wall(bench->clock, DATE_NS);

	if (!error)
		error = schedule_all(bench, true, DATE_NS, sample);
	return error ? error : tw_engine_flush(bench->engine, TW_NEVER);
}

static int measure_step(struct bench *bench, struct sample *sample)
{
	const double ops = (double)bench->options->ops;
	int error = prepare_step(bench, sample);
	int64_t cpu_ns = measure_cpu_ns();
	int64_t started_ns = measure_now_ns();

	if (!error)
		error = tw_clock_set_wall(bench->clock, DATE_NS + TW_S(1));
	if (!error)
		error = tw_engine_flush(bench->engine, TW_NEVER);
	sample->ns_per_op = (double)(measure_now_ns() - started_ns) / ops;
	sample->cpu_ns_per_op = (double)(measure_cpu_ns() - cpu_ns) / ops;
	bench_note_memory(bench);
	return error;
}

int workload_date(const struct options *options, uint64_t work, struct sample *ret_sample)
{
	struct bench bench;
	int close_error;
	int error = bench_open(options, work == WORKLOAD_DATE_STEP, &bench);

	*ret_sample = sample_empty();
	if (error)
		return error;
	error = work == WORKLOAD_DATE_STEP
			? measure_step(&bench, ret_sample)
			: measure_schedules(&bench, work == WORKLOAD_DATE_WALL, ret_sample);
	close_error = bench_close(&bench, ret_sample);
	return error ? error : close_error;
}
