/* SPDX-License-Identifier: MIT */
/*
 * Timeouts at dates that a forked child keeps. They keep their dates, and the child must notice
 * steps of the wall clock by itself. A run that the parent has begun, or that its executor holds,
 * must not happen in the child.
 *
 * Seen to fail with these defects: the child has no list and no watch of its own; it keeps the
 * deadline that the parent's engine has computed; it runs a timeout that the parent's executor
 * holds, or reports it as cancelled; a rescheduled timeout follows its date again.
 */
#include "heir.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>

#define HOUR_NS (INT64_C(3600) * NS_PER_S)

static struct fixture fixture;
static struct probe one, two;
static struct tw_handle handle, other;
static struct tw_engine *real;

static void open_dates(void)
{
	fixture_open(&fixture, NULL);
	check_int(tw_clock_set_wall(fixture.clock, 100 * HOUR_NS), 0);
	probe_init(&one, fixture.engine);
	probe_init(&two, fixture.engine);
	check_int(tw_schedule_wall(fixture.engine, 101 * HOUR_NS, &probe_final_kind, &one, &handle),
		  0);
	check_int(tw_schedule_wall(fixture.engine, 105 * HOUR_NS, &probe_final_kind, &two, &other),
		  0);
	fixture_flush(&fixture);
}

static void child_follows_the_wall_clock(void)
{
	/* Steps the wall clock before the take-over, and again after it. */
	child_need(tw_clock_set_wall(fixture.clock, 99 * HOUR_NS), 0);
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	heir_advance(&fixture, HOUR_NS + fixture.tick_ns);
	child_need(one.runs, 0);
	heir_advance(&fixture, HOUR_NS);
	child_need(one.runs, 1);
	child_need(two.runs, 0);
	child_need(tw_clock_set_wall(fixture.clock, 105 * HOUR_NS), 0);
	heir_advance(&fixture, 0);
	child_need(two.runs, 1);
	child_need(two.end, TW_END_EXPIRED);
	heir_close(&fixture);
}

Test(reinit_wall, child_keeps_dates)
{
	open_dates();
	in_child(child_follows_the_wall_clock);
	check_int(one.runs, 0);
	check_int(tw_clock_set_wall(fixture.clock, 101 * HOUR_NS), 0);
	fixture_flush(&fixture);
	check_int(one.runs, 1);
	fixture_close(&fixture);
}

static void child_drops(void)
{
	heir_take(&fixture, TW_REINIT_FINALISE);
	child_need(one.end, TW_END_UNEXPIRED);
	child_need(two.finalised, 1);
	child_need(tw_timeout_state(handle), -ESTALE);
	child_need(tw_schedule_wall(fixture.engine, 1, &probe_final_kind, &one, NULL), 0);
	heir_advance(&fixture, 0);
	child_need(one.runs, 1);
	heir_close(&fixture);
}

Test(reinit_wall, child_drops_dates)
{
	open_dates();
	in_child(child_drops);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

/* An executor that keeps the timeouts that it gets. */
static struct tw_due accepted[3];
static atomic_int accepted_count;

static size_t accept_all(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		accepted[atomic_fetch_add(&accepted_count, 1)] = due[i];
	return count;
}

/* The executor has one timeout at a date, and one that was rescheduled. A third one, at a date,
 * is pending. */
static struct tw_handle moved;
static struct probe three;

static void open_due_dates(void)
{
	struct tw_options options = fixture_options();

	options.dispatch = accept_all;
	fixture_open(&fixture, &options);
	check_int(tw_clock_set_wall(fixture.clock, 100 * HOUR_NS), 0);
	probe_init(&one, fixture.engine);
	probe_init(&two, fixture.engine);
	probe_init(&three, fixture.engine);
	check_int(tw_schedule_wall(fixture.engine, 101 * HOUR_NS, &probe_final_kind, &one, &handle),
		  0);
	check_int(tw_schedule_wall(fixture.engine, 300 * HOUR_NS, &probe_final_kind, &two, &moved),
		  0);
	check_int(
		tw_schedule_wall(fixture.engine, 102 * HOUR_NS, &probe_final_kind, &three, &other),
		0);
	check_int(tw_reschedule_at(moved, HOUR_NS), TW_RESCHEDULE_DONE);
	fixture_advance(&fixture, HOUR_NS + fixture.tick_ns);
	check_int(accepted_count, 2);
}

static void child_leaves_due_dates(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_EXPIRED);
	child_need(tw_timeout_state(moved), TW_STATE_EXPIRED);
	child_need(tw_cancel(handle), TW_CANCEL_EXPIRED);
	child_need(tw_engine_pending(fixture.engine), 1);
	heir_advance(&fixture, HOUR_NS);
	child_need(accepted_count, 3);
	child_need(tw_due_run(&accepted[0]), -ESTALE);
	child_need(tw_due_run(&accepted[2]), 0);
	child_need(three.runs, 1);
	child_need(one.runs + one.finalised + two.runs + two.finalised, 0);
	heir_close(&fixture);
}

Test(reinit_wall, dates_with_an_executor_are_the_parents)
{
	open_due_dates();
	in_child(child_leaves_due_dates);
	for (int i = 0; i < 2; i++)
		check_int(tw_due_run(&accepted[i]), 0);
	check_int(one.runs + two.runs, 2);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

static void child_ends_a_cancelled_one(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_CANCELLED);
	child_need(one.finalised, 0);
	child_need(tw_cancel(other), TW_CANCEL_DONE);
	heir_close(&fixture);
}

/* A cancel is in time as long as the executor has not begun the run. */
Test(reinit_wall, a_date_that_was_cancelled_with_an_executor_stays_cancelled)
{
	open_due_dates();
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	in_child(child_ends_a_cancelled_one);
	for (int i = 0; i < 2; i++)
		check_int(tw_due_run(&accepted[i]), 0);
	check_int(one.runs, 0);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

static struct gate gate;

static void child_leaves_the_run(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_timeout_state(handle), TW_STATE_EXPIRED);
	child_need(tw_engine_pending(fixture.engine), 0);
	heir_close(&fixture);
}

Test(reinit_wall, a_run_of_the_parents_is_left_out)
{
	fixture_open(&fixture, NULL);
	gate_init(&gate);
	check_int(tw_clock_set_wall(fixture.clock, 100 * HOUR_NS), 0);
	check_int(tw_schedule_wall(fixture.engine, 100 * HOUR_NS, &gate_kind, &gate, &handle), 0);
	gate_await(&gate);
	in_child(child_leaves_the_run);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	fixture_close(&fixture);
}

/*
 * Checks that a timeout at a date that was rescheduled keeps its new deadline. Steps of the wall
 * clock no longer move it.
 */
static void child_keeps_the_deadline(void)
{
	child_need(tw_clock_set_wall(fixture.clock, 200 * HOUR_NS), 0);
	heir_take(&fixture, TW_REINIT_KEEP);
	heir_advance(&fixture, HOUR_NS);
	child_need(one.runs, 0);
	child_need(two.runs, 1);
	heir_advance(&fixture, HOUR_NS + fixture.tick_ns);
	child_need(one.runs, 1);
	heir_close(&fixture);
}

Test(reinit_wall, child_keeps_a_rescheduled_date)
{
	open_dates();
	check_int(tw_reschedule_at(handle, 2 * HOUR_NS), TW_RESCHEDULE_DONE);
	in_child(child_keeps_the_deadline);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

static int threads_alive(void)
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static int64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void open_real(void)
{
	real = real_engine_open(NULL);
	probe_init(&one, real);
	check_int(tw_schedule_wall(real, wall_ns() + HOUR_NS, &probe_final_kind, &one, &handle), 0);
	check_int(tw_engine_flush(real, TW_NEVER), 0);
}

static void child_has_its_own_watch(void)
{
	int before = threads_alive();

	heir_threads_begin();
	child_need(tw_fork_reinit(real, TW_REINIT_KEEP), 0);
	/* Two new threads: the worker and the watch. */
	child_need(threads_alive(), before + 2);
	child_need(tw_schedule_wall(real, wall_ns(), &probe_final_kind, &two, NULL), 0);
	child_need(wait_until_at_least(&two.runs, 1), true);
	child_need(tw_cancel(handle), TW_CANCEL_DONE);
	child_need(tw_engine_stop(real, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(real), 0);
}

Test(reinit_wall, child_watches_the_wall_clock)
{
	open_real();
	probe_init(&two, real);
	in_child(child_has_its_own_watch);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	real_engine_close(real);
}

static void child_lacks_descriptors(void)
{
	struct rlimit limit, none;

	heir_threads_begin();
	child_need(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	child_need(setrlimit(RLIMIT_NOFILE, &none), 0);
	child_need(tw_fork_reinit(real, TW_REINIT_KEEP), -ENOMEM);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(tw_schedule_wall(real, 1, &probe_final_kind, &one, NULL), -ECHILD);
	child_need(setrlimit(RLIMIT_NOFILE, &limit), 0);
	child_has_its_own_watch();
}

Test(reinit_wall, without_a_descriptor_the_child_may_try_again)
{
	open_real();
	probe_init(&two, real);
	in_child(child_lacks_descriptors);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	real_engine_close(real);
}

static void child_only_destroys(void)
{
	child_need(tw_engine_destroy(real), 0);
}

Test(reinit_wall, child_destroys_the_parents_engine)
{
	open_real();
	in_child(child_only_destroys);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	real_engine_close(real);
}
