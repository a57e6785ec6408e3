/* SPDX-License-Identifier: MIT */
/*
 * idle and held: the cost of an engine that has nothing to do.
 *
 * In idle, one timeout for 60 s is pending. In held, millions for 600-3600 s are pending. The
 * workload measures two figures, over 3 s for idle and over the first minute for held: the
 * voluntary context switches of all threads except the harness's own, and the CPU time of the
 * process. ns per operation is the cost of one schedule; in idle, with cold caches.
 */
#include "harness/bench.h"
#include "harness/measure.h"
#include "harness/random.h"
#include "workload/workload.h"

#define DELAY_NS INT64_C(60000000000)
#define CALM_NS INT64_C(200000000)
#define WINDOW_NS INT64_C(3000000000)
#define HELD_WINDOW_NS INT64_C(60000000000)
#define HELD_FROM_US 600000000u
#define HELD_TO_US 3600000000u
#define FLUSH_NS INT64_C(60000000000)

static int schedule_one(struct bench *bench, struct sample *sample)
{
	int64_t before_ns = measure_now_ns();
	int error = tw_schedule(bench->engine, DELAY_NS, &bench_kind_late, id_to_arg(1), NULL);

	sample->ns_per_op = (double)(measure_now_ns() - before_ns);
	if (!error)
		tally_add(&sample->account.scheduled, 1);
	return error;
}

static int schedule_many(struct bench *bench, uint64_t count, struct sample *sample)
{
	struct random random = random_seeded(1);
	int64_t before_ns = measure_now_ns();

	for (uint64_t id = 1; id <= count; id++) {
		int64_t delay_ns = random_delay_ns(&random, HELD_FROM_US, HELD_TO_US);
		int error =
			tw_schedule(bench->engine, delay_ns, &bench_kind_late, id_to_arg(id), NULL);

		if (error)
			return error;
		tally_add(&sample->account.scheduled, id);
	}
	sample->ns_per_op = (double)(measure_now_ns() - before_ns) / (double)count;
	return tw_engine_flush(bench->engine, FLUSH_NS);
}

static void watch(int64_t window_ns, struct sample *sample)
{
	uint64_t sleeps = measure_other_threads_sleeps();
	int64_t cpu_ns = measure_cpu_ns();
	double window_s = (double)window_ns / 1e9;

	measure_sleep_ns(window_ns);
	cpu_ns = measure_cpu_ns() - cpu_ns;
	sleeps = measure_other_threads_sleeps() - sleeps;
	sample->cpu_ns_per_op = (double)cpu_ns;
	sample->cpu_ms_per_s = (double)cpu_ns / 1e6 / window_s;
	sample->wakeups_per_s = (double)sleeps / window_s;
}

static int idle(struct bench *bench, struct sample *sample)
{
	int error = schedule_one(bench, sample);

	if (error)
		return error;
	measure_sleep_ns(CALM_NS);
	watch(WINDOW_NS, sample);
	return 0;
}

static int held(struct bench *bench, uint64_t live, struct sample *sample)
{
	int error = schedule_many(bench, live, sample);

	if (error)
		return error;
	bench_note_memory(bench);
	watch(HELD_WINDOW_NS, sample);
	return 0;
}

int workload_idle(const struct options *options, uint64_t live, struct sample *ret_sample)
{
	struct bench bench;
	int close_error;
	int error = bench_open(options, 0, &bench);

	*ret_sample = sample_empty();
	if (error)
		return error;
	error = live == 0 ? idle(&bench, ret_sample) : held(&bench, live, ret_sample);
	close_error = bench_close(&bench, ret_sample);
	return error ? error : close_error;
}
