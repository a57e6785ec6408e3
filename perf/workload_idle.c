/* SPDX-License-Identifier: MIT */
/*
 * idle: what an engine costs that has nothing to do for a minute.
 *
 * One timeout for 60 s; then the voluntary context switches of all threads but the harness's own,
 * and the CPU time of the process, are taken over 3 s. ns per operation is the one schedule, cold.
 */
#include "bench.h"
#include "measure.h"
#include "workload.h"

#define DELAY_NS INT64_C(60000000000)
#define CALM_NS INT64_C(200000000)
#define WINDOW_NS INT64_C(3000000000)
#define WINDOW_S 3.0

static int schedule_one(struct bench *bench, struct sample *sample)
{
	int64_t before_ns = measure_now_ns();
	int error = tw_schedule(bench->engine, DELAY_NS, &bench_kind_late, id_to_arg(1), NULL);

	sample->ns_per_op = (double)(measure_now_ns() - before_ns);
	if (!error)
		tally_add(&sample->account.scheduled, 1);
	return error;
}

static void watch(struct sample *sample)
{
	uint64_t sleeps;
	int64_t cpu_ns;

	measure_sleep_ns(CALM_NS);
	sleeps = measure_other_threads_sleeps();
	cpu_ns = measure_cpu_ns();
	measure_sleep_ns(WINDOW_NS);
	cpu_ns = measure_cpu_ns() - cpu_ns;
	sleeps = measure_other_threads_sleeps() - sleeps;
	sample->cpu_ns_per_op = (double)cpu_ns;
	sample->cpu_ms_per_s = (double)cpu_ns / 1e6 / WINDOW_S;
	sample->wakeups_per_s = (double)sleeps / WINDOW_S;
}

int workload_idle(const struct options *options, uint64_t unused, struct sample *ret_sample)
{
	struct bench bench;
	int close_error;
	int error = bench_open(options, 0, &bench);

	(void)unused;
	*ret_sample = sample_empty();
	if (error)
		return error;
	error = schedule_one(&bench, ret_sample);
	if (!error)
		watch(ret_sample);
	close_error = bench_close(&bench, ret_sample);
	return error ? error : close_error;
}
