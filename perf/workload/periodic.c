/* SPDX-License-Identifier: MIT */
/*
 * periodic: the cost of a run of a periodic timeout for the worker.
 *
 * Chains with a period of 1 s are spread evenly over that second. They have a fixed rate that makes
 * up for missed runs, a fixed rate that skips them, or a fixed delay. With the latter two rules the
 * worker reads the clock after each run. ns per operation is the cost of one schedule. The CPU time
 * is that of all threads during 2 s, divided by the runs in that time. Only the worker is awake in
 * these 2 s. So the figure includes the callback, which only counts, and the worker's sleep and
 * wake-up at each tick.
 */
#include "harness/bench.h"
#include "harness/measure.h"
#include "workload/workload.h"

#include <stdatomic.h>

#define PERIOD_NS INT64_C(1000000000)
#define WARM_NS INT64_C(1100000000)
#define WINDOW_NS INT64_C(2000000000)

static _Atomic uint64_t runs;

/* There is only one writer, so no atomic read-modify-write is needed. */
static void on_run(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_store_explicit(&runs, atomic_load_explicit(&runs, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static const struct tw_kind run_kind = TW_KIND(on_run, NULL);

static uint64_t runs_so_far(void)
{
	return atomic_load_explicit(&runs, memory_order_relaxed);
}

static struct tw_period period_of(uint64_t rule)
{
	struct tw_period period = TW_PERIOD_RATE(PERIOD_NS);

	if (rule == WORKLOAD_PERIODIC_SKIP)
		period.missed = TW_MISSED_SKIP;
	if (rule == WORKLOAD_PERIODIC_DELAY)
		period.mode = TW_PERIOD_FIXED_DELAY;
	return period;
}

static int schedule_all(struct bench *bench, uint64_t rule, uint64_t count, struct sample *sample)
{
	struct tw_period period = period_of(rule);
	int64_t before_ns = measure_now_ns();

	for (uint64_t id = 1; id <= count; id++) {
		int error;

		period.first_ns = (int64_t)(id * (uint64_t)PERIOD_NS / count);
		error = tw_schedule_periodic(bench->engine, &period, &run_kind, id_to_arg(id),
					     NULL);
		if (error)
			return error;
		tally_add(&sample->account.scheduled, id);
	}
	sample->ns_per_op = (double)(measure_now_ns() - before_ns) / (double)count;
	return 0;
}

static void watch(struct sample *sample)
{
	uint64_t before = runs_so_far();
	int64_t cpu_ns = measure_cpu_ns();
	uint64_t count;

	measure_sleep_ns(WINDOW_NS);
	cpu_ns = measure_cpu_ns() - cpu_ns;
	count = runs_so_far() - before;
	sample->cpu_ns_per_op = count == 0 ? 0 : (double)cpu_ns / (double)count;
	sample->cpu_ms_per_s = (double)cpu_ns / 1e6 / ((double)WINDOW_NS / 1e9);
}

static int measure(struct bench *bench, uint64_t rule, uint64_t count, struct sample *sample)
{
	int error = schedule_all(bench, rule, count, sample);

	if (error)
		return error;
	measure_sleep_ns(WARM_NS);
	bench_note_memory(bench);
	watch(sample);
	return 0;
}

int workload_periodic(const struct options *options, uint64_t rule, struct sample *ret_sample)
{
	struct bench bench;
	int close_error;
	int error = bench_open(options, 0, &bench);

	*ret_sample = sample_empty();
	if (error)
		return error;
	error = measure(&bench, rule, options->ops, ret_sample);
	close_error = bench_close(&bench, ret_sample);
	return error ? error : close_error;
}
