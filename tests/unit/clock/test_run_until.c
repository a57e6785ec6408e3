/* SPDX-License-Identifier: MIT */
/*
 * tw_engine_run_until must move virtual time from one due time to the next, with a worker and in
 * loop mode, with both wheels.
 *
 * Seen to fail with these defects: the clock moves to the end at once; timeouts that are due at the
 * last time do not run; the worker is not flushed before the next due time is read.
 */
#include "fixture.h"
#include "probe.h"

#include <errno.h>

enum { MOST = 64 };

static struct fixture fixture;
static int64_t ran_ns[MOST];
static int runs;
static int64_t again_ns;
static int code_inside;

static void on_run(struct tw_handle self, void *arg);
static const struct tw_kind run_kind = TW_KIND(on_run, NULL);

/* Records the time of the run. Then schedules itself again, as often as its argument says. */
static void on_run(struct tw_handle self, void *arg)
{
	intptr_t left = (intptr_t)arg;

	(void)self;
	if (runs < MOST)
		ran_ns[runs] = tw_engine_now(fixture.engine);
	runs++;
	if (left > 0)
		(void)must_schedule(fixture.engine, again_ns, &run_kind, (void *)(left - 1));
}

static void run_until(int64_t until_ns)
{
	check_int(tw_engine_run_until(fixture.engine, until_ns), 0);
	check_int(tw_engine_now(fixture.engine), until_ns);
}

static void open_loop(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
}

/*
 * Checks in both modes that each run is between `least_ns` and `most_ns` later than its due time.
 */
static void check_chain(int64_t least_ns, int64_t most_ns)
{
	again_ns = TW_HOURS(1);
	(void)must_schedule(fixture.engine, again_ns, &run_kind, (void *)100);
	run_until(TW_HOURS(24) + TW_MS(500));
	check_int(runs, 24);
	for (int run = 0; run < 24; run++)
		check_true(ran_ns[run] >= TW_HOURS(run + 1) + run * least_ns &&
			   ran_ns[run] <= TW_HOURS(run + 1) + (run + 1) * most_ns);
	fixture.now_ns = tw_engine_now(fixture.engine);
	fixture_close(&fixture);
}

Test(run_until, a_chain_of_callbacks_runs_at_its_times_by_a_worker)
{
	fixture_open(&fixture, NULL);
	check_chain(0, TW_MS(1));
}

Test(run_until, a_chain_of_callbacks_runs_at_its_times_in_a_loop)
{
	open_loop();
	check_chain(0, TW_MS(1));
}

/* Checks that timeouts that are scheduled in random order run in the order of their deadlines. */
static void check_crowd(void)
{
	for (int i = 0; i < 40; i++)
		(void)must_schedule(fixture.engine, TW_MS((i * 17 % 40 + 1) * 250), &run_kind,
				    NULL);
	run_until(TW_S(20));
	check_int(runs, 40);
	for (int run = 0; run < 40; run++)
		check_true(ran_ns[run] >= TW_MS((run + 1) * 250) &&
			   ran_ns[run] <= TW_MS((run + 1) * 250 + 1));
	fixture.now_ns = tw_engine_now(fixture.engine);
	fixture_close(&fixture);
}

Test(run_until, a_crowd_runs_in_order_by_a_worker)
{
	fixture_open(&fixture, NULL);
	check_crowd();
}

Test(run_until, a_crowd_runs_in_order_in_a_loop)
{
	open_loop();
	check_crowd();
}

Test(run_until, a_loop_runs_what_is_due_at_the_last_time)
{
	open_loop();
	(void)must_schedule(fixture.engine, TW_MS(10), &run_kind, NULL);
	run_until(TW_MS(10) - 1);
	check_int(runs, 0);
	run_until(TW_MS(10));
	check_int(runs, 1);
	run_until(TW_MS(10));
	check_int(runs, 1);
	fixture.now_ns = tw_engine_now(fixture.engine);
	fixture_close(&fixture);
}

Test(run_until, a_worker_runs_at_the_end_of_the_tick)
{
	fixture_open(&fixture, NULL);
	(void)must_schedule(fixture.engine, TW_MS(10), &run_kind, NULL);
	run_until(TW_MS(10));
	check_int(runs, 0);
	run_until(TW_MS(11));
	check_int(runs, 1);
	fixture.now_ns = tw_engine_now(fixture.engine);
	fixture_close(&fixture);
}

Test(run_until, delays_of_0_run_at_the_same_time)
{
	fixture_open(&fixture, NULL);
	again_ns = 0;
	(void)must_schedule(fixture.engine, 0, &run_kind, (void *)10);
	run_until(0);
	check_int(runs, 11);
	check_int(ran_ns[10], 0);
	fixture_close(&fixture);
}

static void on_inside(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	code_inside = tw_engine_run_until(fixture.engine, TW_HOURS(1));
}

Test(run_until, in_its_own_callback_it_is_rejected)
{
	static const struct tw_kind inside = TW_KIND(on_inside, NULL);

	fixture_open(&fixture, NULL);
	(void)must_schedule(fixture.engine, 0, &inside, NULL);
	run_until(TW_MS(5));
	check_int(code_inside, -EDEADLK);
	fixture.now_ns = tw_engine_now(fixture.engine);
	fixture_close(&fixture);
}

Test(run_until, odd_arguments_move_nothing)
{
	struct tw_engine *real = real_engine_open(NULL);

	fixture_open_at(&fixture, NULL, TW_S(1));
	check_int(tw_engine_run_until(NULL, TW_S(2)), -EINVAL);
	check_int(tw_engine_run_until(real, TW_HOURS(1000000)), -EINVAL);
	check_int(tw_engine_run_until(fixture.engine, TW_S(1) - 1), -EINVAL);
	check_int(tw_engine_run_until(fixture.engine, -1), -EINVAL);
	check_int(tw_engine_run_until(fixture.engine, TW_NEVER), -EINVAL);
	check_int(tw_engine_now(fixture.engine), TW_S(1));
	real_engine_close(real);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_run_until(fixture.engine, TW_S(2)), -ESHUTDOWN);
	fixture_destroy(&fixture);
}
