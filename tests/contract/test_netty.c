/* SPDX-License-Identifier: MIT */
/*
 * The tests of Netty's own suite for its HashedWheelTimer, with the numbers of that suite, in
 * virtual time.
 *
 * Seen to fail with this defect: a deadline overflows (test b15_...).
 */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns Netty's default options, with the given tick and number of slots. */
static struct tw_options netty_options(int64_t tick_ns, uint32_t slots)
{
	struct tw_options options = fixture_options();

	options.tick_ns = (uint64_t)tick_ns;
	options.slots = slots;
	return options;
}

static void open_defaults(struct fixture *fixture)
{
	const struct tw_options options = netty_options(100 * NS_PER_MS, 512);

	fixture_open(fixture, &options);
}

Test(netty, schedule_timeout_should_not_run_before_delay)
{
	struct fixture fixture;
	struct probe probe;

	open_defaults(&fixture);
	probe_schedule(&fixture, &probe, 10 * NS_PER_S);
	fixture_advance(&fixture, 3 * NS_PER_S);
	check_int(probe.runs, 0);
	fixture_close(&fixture);
}

Test(netty, schedule_timeout_should_run_after_delay)
{
	struct fixture fixture;
	struct probe probe;

	open_defaults(&fixture);
	probe_schedule(&fixture, &probe, 2 * NS_PER_S);
	fixture_advance(&fixture, 3 * NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(netty, stop_hands_back_timeouts_that_never_ran)
{
	struct fixture fixture;
	atomic_int near_runs = 0;
	atomic_int far_runs = 0;
	int i;

	open_defaults(&fixture);
	for (i = 0; i < 3; i++)
		must_schedule(fixture.engine, NS_PER_MS, &count_kind, &near_runs);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(near_runs, 3);
	for (i = 0; i < 5; i++)
		must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &far_runs);
	fixture_advance(&fixture, NS_PER_S);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 5);
	check_int(far_runs, 0);
	fixture_close(&fixture);
}

Test(netty, schedule_after_stop_is_rejected)
{
	struct fixture fixture;
	atomic_int runs = 0;

	open_defaults(&fixture);
	must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	fixture_stop(&fixture);
	check_int(tw_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs, NULL), -ESHUTDOWN);
	check_int(runs, 1);
	fixture_close(&fixture);
}

/* Netty's test of a wheel that overflows. Each callback schedules the next run 100 ms later, for
 * three runs. */
struct again {
	struct tw_engine *engine;
	atomic_int runs;
	int left;
	int64_t ran_at_ns[3];
};

static const struct tw_kind again_kind;

static void on_again(struct tw_handle self, void *arg)
{
	struct again *again = arg;

	(void)self;
	again->ran_at_ns[again->runs] = tw_engine_now(again->engine);
	atomic_fetch_add(&again->runs, 1);
	if (--again->left > 0)
		tw_schedule(again->engine, 100 * NS_PER_MS, &again_kind, again, NULL);
}

static const struct tw_kind again_kind = TW_KIND(on_again, NULL);

Test(netty, timer_should_expire_rearmed_three_times)
{
	const struct tw_options options = netty_options(100 * NS_PER_MS, 32);
	struct again again = {.left = 3};
	struct fixture fixture;
	int i;

	fixture_open(&fixture, &options);
	again.engine = fixture.engine;
	must_schedule(fixture.engine, 100 * NS_PER_MS, &again_kind, &again);
	for (i = 0; i < 40; i++)
		fixture_advance(&fixture, 50 * NS_PER_MS);
	check_int(again.runs, 3);
	for (i = 0; i < 3; i++)
		check_int(again.ran_at_ns[i], (2 + 2 * i) * 100 * NS_PER_MS);
	fixture_close(&fixture);
}

/*
 * In the next two tests, 100,000 timeouts of 125 ms are scheduled at a tick of 200 ms. None may run
 * early. The first test moves the clock by 1 ms at a time, so each timeout may be late by at most a
 * tick.
 */
struct timed {
	struct tw_engine *engine;
	int64_t scheduled_ns;
	int64_t delay_ns;
	int runs;
};

static void on_timed(struct tw_handle self, void *arg)
{
	struct timed *timed = arg;

	(void)self;
	timed->delay_ns = tw_engine_now(timed->engine) - timed->scheduled_ns;
	timed->runs++;
}

static const struct tw_kind timed_kind = TW_KIND(on_timed, NULL);

enum { TIMED = 100000, TIMED_PER_MS = 100 };

static void schedule_timed(struct fixture *fixture, struct timed *timed)
{
	timed->engine = fixture->engine;
	timed->scheduled_ns = fixture->now_ns;
	must_schedule(fixture->engine, 125 * NS_PER_MS, &timed_kind, timed);
}

Test(netty, timeouts_run_at_most_a_tick_late)
{
	struct tw_options options = netty_options(200 * NS_PER_MS, 512);
	struct timed *all = calloc(TIMED, sizeof(*all));
	struct fixture fixture;
	int i;

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	for (i = 0; i < TIMED; i++) {
		if (i % TIMED_PER_MS == 0)
			fixture_advance(&fixture, NS_PER_MS);
		schedule_timed(&fixture, &all[i]);
	}
	for (i = 0; i < 400; i++)
		fixture_advance(&fixture, NS_PER_MS);
	for (i = 0; i < TIMED; i++) {
		check_int(all[i].runs, 1);
		check_at_least(all[i].delay_ns, 125 * NS_PER_MS);
		check_at_most(all[i].delay_ns, 325 * NS_PER_MS);
	}
	fixture_close(&fixture);
	free(all);
}

/*
 * Repeats the test as Netty's authors do: the clock moves in large steps, and each timeout must run
 * less than 650 ms after it was scheduled.
 */
Test(netty, execution_on_time_in_steps_of_a_tick)
{
	struct tw_options options = netty_options(200 * NS_PER_MS, 512);
	struct timed *all = calloc(TIMED, sizeof(*all));
	struct fixture fixture;
	int i;

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	for (i = 0; i < TIMED; i++) {
		if (i % 10000 == 0)
			fixture_advance(&fixture, 70 * NS_PER_MS);
		schedule_timed(&fixture, &all[i]);
	}
	for (i = 0; i < 4; i++)
		fixture_advance(&fixture, 200 * NS_PER_MS);
	for (i = 0; i < TIMED; i++) {
		check_int(all[i].runs, 1);
		check_at_least(all[i].delay_ns, 125 * NS_PER_MS);
		check_at_most(all[i].delay_ns, 650 * NS_PER_MS - 1);
	}
	fixture_close(&fixture);
	free(all);
}

static atomic_int hook_calls;

static size_t executor_hook(void *context, const struct tw_due *due, size_t count)
{
	size_t i;

	(void)context;
	atomic_fetch_add(&hook_calls, 1);
	for (i = 0; i < count; i++)
		tw_due_run(&due[i]);
	return count;
}

Test(netty, executor_is_used)
{
	struct tw_options options = netty_options(100 * NS_PER_MS, 512);
	struct fixture fixture;
	struct probe probe;

	options.dispatch = executor_hook;
	fixture_open(&fixture, &options);
	probe_schedule(&fixture, &probe, NS_PER_MS);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(hook_calls, 1);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

static void open_limit_of_two(struct fixture *fixture)
{
	struct tw_options options = netty_options(100 * NS_PER_MS, 32);

	options.pending_limit = 2;
	fixture_open(fixture, &options);
}

Test(netty, reject_third_of_limit_two)
{
	struct fixture fixture;
	atomic_int runs = 0;

	open_limit_of_two(&fixture);
	must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	check_int(tw_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs, NULL), -EAGAIN);
	fixture_close(&fixture);
}

Test(netty, cancel_frees_a_place)
{
	struct fixture fixture;
	struct tw_handle handle;
	atomic_int runs = 0;

	open_limit_of_two(&fixture);
	handle = must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	check_int(tw_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs, NULL), -EAGAIN);
	fixture_close(&fixture);
}

Test(netty, expiry_frees_a_place)
{
	struct fixture fixture;
	atomic_int runs = 0;

	open_limit_of_two(&fixture);
	must_schedule(fixture.engine, 5 * NS_PER_S, &count_kind, &runs);
	must_schedule(fixture.engine, 90 * NS_PER_MS, &count_kind, &runs);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(runs, 1);
	must_schedule(fixture.engine, 90 * NS_PER_MS, &count_kind, &runs);
	fixture_close(&fixture);
}

Test(netty, pending_falls_with_cancel_and_expiry)
{
	const int64_t hundred_minutes_ns = 6000 * NS_PER_S;
	struct fixture fixture;
	struct tw_handle far[2];
	atomic_int runs = 0;

	open_defaults(&fixture);
	far[0] = must_schedule(fixture.engine, hundred_minutes_ns, &count_kind, &runs);
	far[1] = must_schedule(fixture.engine, hundred_minutes_ns, &count_kind, &runs);
	must_schedule(fixture.engine, 90 * NS_PER_MS, &count_kind, &runs);
	check_int(tw_engine_pending(fixture.engine), 3);
	check_int(tw_cancel(far[0]), TW_CANCEL_DONE);
	check_int(tw_cancel(far[1]), TW_CANCEL_DONE);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(runs, 1);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
}

/* A test of defect B15: a deadline overflows, so that the largest delay fires at once. */
Test(netty, b15_largest_delay_does_not_fire)
{
	struct fixture fixture;
	atomic_int runs = 0;

	open_defaults(&fixture);
	fixture_advance(&fixture, NS_PER_S);
	must_schedule(fixture.engine, INT64_MAX, &count_kind, &runs);
	must_schedule(fixture.engine, INT64_MAX - 1, &count_kind, &runs);
	fixture_advance(&fixture, 1000 * NS_PER_S);
	check_int(runs, 0);
	check_int(tw_engine_pending(fixture.engine), 2);
	fixture_close(&fixture);
}

/*
 * In the next test, eleven timeouts are due in one tick. The first one blocks the worker, and
 * meanwhile the test cancels the ten others.
 */
struct crowd {
	sem_t entered;
	sem_t leave;
	atomic_int runs;
	struct tw_handle blocker;
};

static void on_crowd(struct tw_handle self, void *arg)
{
	struct crowd *crowd = arg;

	if (atomic_fetch_add(&crowd->runs, 1) > 0)
		return;
	crowd->blocker = self;
	sem_post(&crowd->entered);
	while (sem_wait(&crowd->leave) != 0)
		;
}

static const struct tw_kind crowd_kind = TW_KIND(on_crowd, NULL);

Test(netty, pending_is_zero_after_cancels_in_a_blocked_tick)
{
	struct crowd crowd = {.runs = 0};
	struct fixture fixture;
	struct tw_handle handles[11];
	int cancelled = 0;
	int i;

	open_defaults(&fixture);
	sem_init(&crowd.entered, 0, 0);
	sem_init(&crowd.leave, 0, 0);
	for (i = 0; i < 11; i++)
		handles[i] = must_schedule(fixture.engine, NS_PER_MS, &crowd_kind, &crowd);
	check_int(tw_clock_set(fixture.clock, 100 * NS_PER_MS), 0);
	sem_wait(&crowd.entered);
	for (i = 0; i < 11; i++)
		if (!same_handle(handles[i], crowd.blocker))
			cancelled += tw_cancel(handles[i]) == TW_CANCEL_DONE;
	check_int(cancelled, 10);
	check_int(tw_engine_pending(fixture.engine), 0);
	sem_post(&crowd.leave);
	fixture_flush(&fixture);
	check_int(crowd.runs, 1);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
}
