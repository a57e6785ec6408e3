/* SPDX-License-Identifier: MIT */
/*
 * Measurements of runs that move the clock themselves. The values are exact, because a histogram
 * stores its least and its greatest value exactly. test_reinit.c has the tests for a forked child.
 *
 * Seen to fail with these defects:
 * - a run is not measured from the end of the previous one;
 * - the time of a finaliser, or of runs in an executor, is not measured;
 * - the time of the hook for slow runs counts for the next run;
 * - the duration of a run is recorded as its lateness, or the lateness as the duration;
 * - a sampled run is measured from the end of the previous sample;
 * - all runs are sampled, or none;
 * - a thread is the worker of two engines; when it ends inside the inner one, it no longer counts
 *   as the worker of the outer one.
 */
#include "asleep.h"
#include "slow_scene.h"

static struct tw_histogram histogram;

static struct tw_options measure_options(void)
{
	struct tw_options options = fixture_options();

	options.measure = TW_MEASURE_RUNS;
	return options;
}

static void measure_open(struct fixture *fixture)
{
	struct tw_options options = measure_options();

	fixture_open(fixture, &options);
}

static void measure_check(const struct fixture *fixture, uint32_t measurement, uint64_t count,
			  int64_t min_ns, int64_t max_ns)
{
	histogram = (struct tw_histogram){.size = sizeof histogram};
	check_int(tw_histogram_get(fixture->engine, measurement, &histogram), 0);
	check_int(histogram.count, count);
	check_int(histogram.min_ns, min_ns);
	check_int(histogram.max_ns, max_ns);
}

static void late_check(const struct fixture *fixture, uint64_t count, int64_t min_ns,
		       int64_t max_ns)
{
	measure_check(fixture, TW_MEASUREMENT_LATENESS, count, min_ns, max_ns);
}

static void late_least_check(const struct fixture *fixture, uint64_t count, int64_t min_ns)
{
	histogram = (struct tw_histogram){.size = sizeof histogram};
	check_int(tw_histogram_get(fixture->engine, TW_MEASUREMENT_LATENESS, &histogram), 0);
	check_int(histogram.count, count);
	check_int(histogram.min_ns, min_ns);
}

static void duration_check(const struct fixture *fixture, uint64_t count, int64_t min_ns,
			   int64_t max_ns)
{
	measure_check(fixture, TW_MEASUREMENT_DURATION, count, min_ns, max_ns);
}

Test(measure, lateness_and_duration_are_measured)
{
	struct work work = {.run_ns = 777, .end_ns = 111};
	struct fixture fixture;

	measure_open(&fixture);
	work.fixture = &fixture;
	late_check(&fixture, 0, 0, 0);
	must_schedule_at(fixture.engine, 5 * NS_PER_MS - 300, &work_kind, &work);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 6 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	late_check(&fixture, 1, NS_PER_MS + 300, NS_PER_MS + 300);
	check_int(histogram.sum_ns, NS_PER_MS + 300);
	duration_check(&fixture, 1, 888, 888);
	check_int(histogram.bucket[TW_HISTOGRAM_BUCKETS - 1], 0);
	fixture_close(&fixture);
}

/* The second run begins when the first one and its finaliser have ended. */
Test(measure, later_run_begins_after_the_earlier_finaliser)
{
	struct work work[2] = {{.run_ns = 100, .end_ns = 50}, {.run_ns = 100, .end_ns = 50}};
	struct fixture fixture;

	measure_open(&fixture);
	for (int i = 0; i < 2; i++) {
		work[i].fixture = &fixture;
		must_schedule_at(fixture.engine, NS_PER_MS, &work_kind, &work[i]);
	}
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 3 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	late_check(&fixture, 2, 2 * NS_PER_MS, 2 * NS_PER_MS + 150);
	duration_check(&fixture, 2, 150, 150);
	fixture_close(&fixture);
}

enum { MANY = 32768 };

/*
 * Checks the number of samples. The engine samples one of 32 runs, at random. The bounds are five
 * standard deviations away.
 */
static void samples_check(struct tw_options *options)
{
	struct work work = {.run_ns = 777, .end_ns = 111};
	struct fixture fixture;

	options->measure = TW_MEASURE_SAMPLES;
	fixture_open(&fixture, options);
	work.fixture = &fixture;
	for (int i = 0; i < MANY; i++)
		must_schedule_at(fixture.engine, NS_PER_MS, &work_kind, &work);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 2 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	check_int(work.runs, MANY);
	histogram = (struct tw_histogram){.size = sizeof histogram};
	check_int(tw_histogram_get(fixture.engine, TW_MEASUREMENT_LATENESS, &histogram), 0);
	check_at_least(histogram.count, MANY / 32 - 160);
	check_at_most(histogram.count, MANY / 32 + 160);
	check_at_least(histogram.max_ns - histogram.min_ns, UINT64_C(888) * (MANY - MANY / 32));
	duration_check(&fixture, histogram.count, 888, 888);
	fixture_close(&fixture);
}

Test(measure, samples_measure_one_run_in_32)
{
	struct tw_options options = measure_options();

	samples_check(&options);
}

/* The watch for slow runs needs the time of each run, but the measurement must still use samples
 * only. */
Test(measure, watch_for_slow_runs_leaves_the_samples_as_they_are)
{
	struct tw_options options = measure_options();

	options.slow_ns = (uint64_t)SLOW_NS;
	samples_check(&options);
}

/* Takes long. The time of this hook for slow runs must not count for any run. */
static void long_hook(void *context, const struct tw_slow *slow)
{
	(void)slow;
	pass(context, 5000);
}

Test(measure, beside_slow_and_late_runs)
{
	struct work work[2] = {{.run_ns = SLOW_NS + 1}, {.run_ns = 1}};
	struct tw_options options = measure_options();
	struct fixture fixture;

	options.slow_ns = (uint64_t)SLOW_NS;
	options.on_slow = long_hook;
	options.slow_context = &fixture;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 2; i++) {
		work[i].fixture = &fixture;
		must_schedule_at(fixture.engine, NS_PER_MS, &work_kind, &work[i]);
	}
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 2 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	/* The two works may run in either order. */
	check_int(work[0].runs + work[1].runs, 2);
	duration_check(&fixture, 2, 1, SLOW_NS + 1);
	late_least_check(&fixture, 2, NS_PER_MS);
	check_int(stats_of(fixture.engine).slow, 1);
	fixture_close(&fixture);
}

static void on_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	(void)self;
	(void)kind;
	(void)arg;
	(void)late_by_ns;
	pass(context, 40);
}

/* The hook runs instead of the callback, so its time must be measured. */
Test(measure, time_of_a_late_hook_is_measured)
{
	struct tw_options options = measure_options();
	struct fixture fixture;
	atomic_int runs = 0;

	options.late_ns = (uint64_t)NS_PER_MS;
	options.on_late = on_late;
	options.late_context = &fixture;
	fixture_open(&fixture, &options);
	must_schedule_at(fixture.engine, NS_PER_MS, &count_kind, &runs);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 9 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	check_int(runs, 0);
	late_check(&fixture, 1, 8 * NS_PER_MS, 8 * NS_PER_MS);
	duration_check(&fixture, 1, 40, 40);
	fixture_close(&fixture);
}

Test(measure, each_run_of_a_chain_is_measured)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct work work = {.run_ns = 60};
	struct fixture fixture;

	measure_open(&fixture);
	work.fixture = &fixture;
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &work_kind, &work, NULL), 0);
	fixture_flush(&fixture);
	for (int run = 1; run <= 3; run++) {
		check_int(tw_clock_set(fixture.clock, fixture.now_ns = run * 11 * NS_PER_MS), 0);
		fixture_flush(&fixture);
	}
	check_int(work.runs, 3);
	duration_check(&fixture, 3, 60, 60);
	late_check(&fixture, 3, NS_PER_MS, 3 * NS_PER_MS);
	fixture_close(&fixture);
}

/* Two runs are on threads of an executor, and one run stays on the worker. */
Test(measure, runs_in_an_executor_are_measured)
{
	static const struct tw_kind inline_kind = TW_KIND_INLINE(on_work, NULL);
	/* None of these values is at the edge of a bucket. */
	struct work work[3] = {{.run_ns = 1001}, {.run_ns = 2001}, {.run_ns = 3001}};
	struct tw_options options = measure_options();
	struct fixture fixture;
	pthread_t thread;
	void *result;

	taken.count = 0;
	options.dispatch = take;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 3; i++) {
		work[i].fixture = &fixture;
		must_schedule_at(fixture.engine, NS_PER_MS, i < 2 ? &work_kind : &inline_kind,
				 &work[i]);
	}
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = 2 * NS_PER_MS), 0);
	fixture_flush(&fixture);
	check_int(taken.count, 2);
	late_check(&fixture, 1, NS_PER_MS, NS_PER_MS);
	for (int i = 0; i < 2; i++) {
		check_int(pthread_create(&thread, NULL, run_due, &taken.due[i]), 0);
		check_int(pthread_join(thread, &result), 0);
		check_int((intptr_t)result, 0);
	}
	late_least_check(&fixture, 3, NS_PER_MS);
	check_at_least(histogram.max_ns, NS_PER_MS + 4002);
	duration_check(&fixture, 3, 1001, 3001);
	check_int(histogram.sum_ns, 6003);
	fixture_close(&fixture);
}

static void on_exit_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

/* Becomes the owner of the inner loop, and polls it. A callback of that loop ends the thread. */
static void on_inner_loop(struct tw_handle self, void *loop)
{
	static const struct tw_kind exit_kind = TW_KIND(on_exit_thread, NULL);

	(void)self;
	check_int(tw_loop_enter(loop), 0);
	must_schedule(loop, 1, &exit_kind, NULL);
	for (;;)
		(void)tw_engine_flush(loop, PATIENCE_NS);
}

/*
 * The inner callback ends the thread. The outer run must still be measured as a run on its own
 * worker, because without a dispatch hook an engine has memory only for its worker's measurements.
 */
Test(measure, outer_run_is_measured_on_its_own_worker)
{
	static const struct tw_kind outer_kind = TW_KIND(on_inner_loop, NULL);
	struct tw_options options = measure_options();
	struct tw_engine *engine, *loop;

	options.clock = NULL;
	check_int(tw_engine_create(&options, &engine), 0);
	options.flags |= TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &loop), 0);
	must_schedule(engine, 1, &outer_kind, loop);
	histogram.size = sizeof histogram;
	check_true(engine_state_await(engine, TW_ENGINE_FAILED));
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_stop(loop, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_histogram_get(loop, TW_MEASUREMENT_DURATION, &histogram), 0);
	check_int(histogram.count, 1);
	check_int(tw_histogram_get(engine, TW_MEASUREMENT_DURATION, &histogram), 0);
	check_int(histogram.count, 1);
	check_int(tw_engine_destroy(loop), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* A poll may be given a time ahead of the clock, so a run may begin before its deadline. Its
 * lateness must then be 0. */
Test(measure, a_time_before_the_deadline_is_zero)
{
	struct tw_options options = measure_options();
	struct fixture fixture;
	atomic_int runs = 0;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	must_schedule_at(fixture.engine, 50 * NS_PER_MS, &count_kind, &runs);
	check_int(tw_engine_poll_at(fixture.engine, 60 * NS_PER_MS, 0), 1);
	late_check(&fixture, 1, 0, 0);
	fixture_close(&fixture);
}

Test(measure, group_adds_up_the_runs_of_its_engines)
{
	struct tw_options options = measure_options();
	struct tw_group_options group_options;
	struct tw_group *group;
	atomic_int runs = 0;

	check_int(tw_group_options_init(&group_options, sizeof group_options), 0);
	group_options.engines = 2;
	group_options.engine = &options;
	check_int(tw_group_create(&group_options, &group), 0);
	for (uint32_t i = 0; i < 3; i++)
		must_schedule(tw_group_engine(group, i / 2), 0, &count_kind, &runs);
	check_true(wait_until_at_least(&runs, 3));
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	histogram.size = sizeof histogram;
	for (uint32_t measurement = 0; measurement < 2; measurement++) {
		check_int(tw_group_histogram_get(group, measurement, &histogram), 0);
		check_int(histogram.count, 3);
	}
	check_int(tw_group_histogram_get(NULL, 0, &histogram), -EINVAL);
	check_int(tw_group_histogram_get(group, 2, &histogram), -EINVAL);
	check_int(tw_group_histogram_get(group, 0, NULL), -EINVAL);
	check_int(tw_group_destroy(group), 0);
}

Test(measure, bad_arguments_are_rejected)
{
	struct tw_options options = measure_options();
	struct tw_engine *engine;
	struct fixture fixture;

	options.measure = TW_MEASURE_SAMPLES + 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	measure_open(&fixture);
	histogram.size = sizeof histogram;
	check_int(tw_histogram_get(NULL, 0, &histogram), -EINVAL);
	check_int(tw_histogram_get(fixture.engine, 0, NULL), -EINVAL);
	check_int(tw_histogram_get(fixture.engine, 2, &histogram), -EINVAL);
	histogram.size--;
	check_int(tw_histogram_get(fixture.engine, 0, &histogram), -EINVAL);
	histogram.size++;
	fixture_close(&fixture);
	/* An engine measures nothing unless its options ask for it. */
	fixture_open(&fixture, NULL);
	check_int(tw_histogram_get(fixture.engine, 0, &histogram), -EINVAL);
	fixture_close(&fixture);
}
