/* SPDX-License-Identifier: MIT */
/*
 * The tests of JRaft's suite for its repeated timer, with the numbers of that suite, in virtual
 * time. The timer waits 50 ms from the end of a run, unless the callback sets another wait
 * ("adjusted"). Each reset begins the wait again.
 *
 * Seen to fail with these defects: a chain continues after a cancel in its run; a reschedule does
 * not move the next run, or does not move the grid (reset_before...); the wait counts from the start
 * of a run (reset_before...); a wait that the callback has set is ignored (adjust); a finaliser runs
 * twice (cancel_destroys...).
 */
#include "../unit/periodic/periodic_scene.h"

#define TIMEOUT_NS (50 * NS_PER_MS)

struct timer {
	struct tw_handle handle;
	atomic_int count, destroyed;
	int64_t adjusted_ns; /* the wait that the callback sets; 0: none */
	bool stops;          /* whether the timer stops in its next run */
	int stopped;         /* the result of that stop */
};

static void on_trigger(struct tw_handle self, void *arg)
{
	struct timer *timer = arg;

	atomic_fetch_add(&timer->count, 1);
	if (timer->adjusted_ns != 0)
		(void)tw_period_next(self, timer->adjusted_ns);
	if (timer->stops)
		timer->stopped = tw_cancel(self);
}

static void on_destroy(void *arg, enum tw_end end)
{
	struct timer *timer = arg;

	if (end == TW_END_CANCELLED)
		atomic_fetch_add(&timer->destroyed, 1);
}

static const struct tw_kind timer_kind = TW_KIND(on_trigger, on_destroy);

static void timer_start(struct fixture *fixture, struct timer *timer)
{
	struct tw_period period = TW_PERIOD_DELAY(TIMEOUT_NS);

	if (timer->adjusted_ns != 0)
		period.first_ns = timer->adjusted_ns;
	timer->handle = must_chain(fixture, &period, &timer_kind, timer);
}

static void check_about(int count, int expected, int tolerance)
{
	check_at_least(count, expected - tolerance);
	check_at_most(count, expected + tolerance);
}

Test(jraft, timer_runs_twenty_times_a_second)
{
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 1000);
	check_about(timer.count, 20, 3);
	/* The exact count: a wait of 50 ms ends with the next tick, at 51 ms, and the next wait
	 * begins then. */
	check_int(timer.count, 1000 / 51);
	fixture_close(&fixture);
}

Test(jraft, twenty_a_second_by_a_grid)
{
	static const struct tw_period period = TW_PERIOD_RATE(TIMEOUT_NS);
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer.handle = must_chain(&fixture, &period, &timer_kind, &timer);
	step_to(&fixture, 1001);
	check_int(timer.count, 20);
	step_to(&fixture, 5 * 1000 + 1);
	check_int(timer.count, 5 * 20);
	fixture_close(&fixture);
}

Test(jraft, stop_holds_the_count_and_start_goes_on)
{
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 1000);
	check_about(timer.count, 20, 3);
	check_int(tw_cancel(timer.handle), TW_CANCEL_DONE);
	step_to(&fixture, 2000);
	check_int(timer.count, 1000 / 51);
	timer_start(&fixture, &timer);
	step_to(&fixture, 3000);
	check_about(timer.count, 40, 5);
	fixture_close(&fixture);
}

Test(jraft, run_once_now_begins_the_wait_anew)
{
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 20);
	check_int(tw_reschedule(timer.handle, 0), TW_RESCHEDULE_DONE);
	/* Without this flush the worker might run the timeout only after the next step. */
	fixture_flush(&fixture);
	check_int(timer.count, 1);
	step_to(&fixture, 20 + 50);
	check_int(timer.count, 1);
	step_to(&fixture, 20 + 51);
	check_int(timer.count, 2);
	step_to(&fixture, 1000);
	check_about(timer.count, 20, 3);
	fixture_close(&fixture);
}

Test(jraft, adjusted_to_ten_a_second)
{
	struct timer timer = {.adjusted_ns = 2 * TIMEOUT_NS};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 1000);
	check_about(timer.count, 10, 3);
	check_int(timer.count, 1000 / 101);
	fixture_close(&fixture);
}

Test(jraft, cancel_destroys_the_timer_once)
{
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 100);
	check_int(timer.destroyed, 0);
	check_int(tw_cancel(timer.handle), TW_CANCEL_DONE);
	check_int(timer.destroyed, 1);
	check_int(tw_cancel(timer.handle), TW_CANCEL_CANCELLED);
	fixture_flush(&fixture);
	check_int(timer.destroyed, 1);
	fixture_close(&fixture);
	check_int(timer.destroyed, 1);
}

Test(jraft, destroy_in_its_trigger_is_the_last_run)
{
	struct timer timer = {.stops = true, .stopped = -1};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	step_to(&fixture, 1000);
	check_int(timer.count, 1);
	check_int(timer.stopped, TW_CANCEL_STOPPED);
	check_int(timer.destroyed, 1);
	fixture_close(&fixture);
}

enum { RESETS = 10 };

static void resets(struct fixture *fixture, const struct timer *timer, int64_t timeout_ns)
{
	for (int i = 0; i < RESETS; i++) {
		step_to(fixture, fixture->now_ns / NS_PER_MS + 80);
		check_int(tw_reschedule(timer->handle, timeout_ns), TW_RESCHEDULE_DONE);
	}
}

Test(jraft, reset_before_the_run_defers_it)
{
	struct timer timer = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	timer_start(&fixture, &timer);
	resets(&fixture, &timer, TIMEOUT_NS);
	check_about(timer.count, RESETS, 3);
	check_int(timer.count, RESETS);
	/* Makes the timeout 100 ms. From now on each reset comes before the next run. */
	check_int(tw_reschedule(timer.handle, 2 * TIMEOUT_NS), TW_RESCHEDULE_DONE);
	timer.adjusted_ns = 2 * TIMEOUT_NS;
	resets(&fixture, &timer, 2 * TIMEOUT_NS);
	check_int(timer.count, RESETS);
	/* After the last reset the timer must run every 100 ms. */
	step_to(&fixture, fixture.now_ns / NS_PER_MS + 1000);
	check_int(timer.count, RESETS + 1000 / 101);
	fixture_close(&fixture);
}

Test(jraft, reset_keeps_postponing_by_a_grid)
{
	static const struct tw_period period = TW_PERIOD_RATE(100 * NS_PER_MS);
	struct fixture fixture;
	struct timer timer = {0};
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	timer.handle = must_repeat(&fixture, &period, &log);
	resets(&fixture, &timer, 100 * NS_PER_MS);
	check_int(log.count, 0);
	/* The last reset was at 800 ms, so the grid is now 900, 1000, ... */
	step_to(&fixture, 1201);
	check_int(log.count, 4);
	for (int run = 0; run < 4; run++)
		check_due_ms(&log, run, 900 + run * 100);
	fixture_close(&fixture);
}
