/* SPDX-License-Identifier: MIT */
/*
 * Tests a start with the system's pthread_create, which this program can make fail, and a worker
 * whose thread ends in a callback.
 *
 * Seen to fail with these defects: an engine stays STARTING when the thread cannot be made (b04);
 * the death of a worker is not logged, or its engine still counts as running (b10). These numbers
 * are those of the defects in docs/internals/testing.md.
 */
#include "asleep.h"
#include "probe.h"
#include "thread_fault.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

Test(start_system, b04_no_resources_for_the_thread)
{
	struct fixture fixture;
	struct probe probe;
	int i;

	fixture_open(&fixture, NULL);
	probe_init(&probe, fixture.engine);
	atomic_store(&create_error, EAGAIN);
	check_int(tw_engine_start(fixture.engine), -ENOMEM);
	for (i = 0; i < 10; i++)
		check_int(tw_schedule(fixture.engine, 1, &probe_final_kind, &probe, NULL), -ENOMEM);
	check_int(tw_engine_pending(fixture.engine), 0);
	atomic_store(&create_error, 0);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

Test(start_system, no_right_to_the_thread)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	atomic_store(&create_error, EPERM);
	check_int(tw_engine_start(fixture.engine), -EPERM);
	atomic_store(&create_error, EINVAL);
	check_int(tw_engine_start(fixture.engine), -EINVAL);
	atomic_store(&create_error, 0);
	check_int(tw_engine_start(fixture.engine), 0);
	fixture_close(&fixture);
}

static void on_exit_thread(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
	pthread_exit(NULL);
}

static const struct tw_kind exit_kind = TW_KIND(on_exit_thread, NULL);

static atomic_int log_lines;

static void on_log(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)text;
	if (level == TW_LOG_ERROR || level == TW_LOG_WARNING)
		atomic_fetch_add(&log_lines, 1);
}

static const struct tw_log log_to_count = {on_log, NULL};

/* Defect B10: when the worker has died, later calls that need it must return an error. */
Test(start_system, b10_calls_after_the_workers_end_return_an_error)
{
	struct fixture fixture;
	struct probe probes[3];
	atomic_int exits = 0;
	int i;

	check_int(tw_log_set(&log_to_count), 0);
	fixture_open(&fixture, NULL);
	for (i = 0; i < 3; i++)
		probe_schedule(&fixture, &probes[i], NS_PER_S);
	must_schedule(fixture.engine, 1, &exit_kind, &exits);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &exits, NULL), -ESHUTDOWN);
	check_int(tw_engine_start(fixture.engine), -ESHUTDOWN);
	check_int(tw_engine_flush(fixture.engine, NS_PER_S), -ESHUTDOWN);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	check_int(tw_engine_pending(fixture.engine), 3);
	/* The library logs after it has changed the state, so the line may not be there yet. */
	check_true(wait_until_at_least(&log_lines, 1));
	fixture_stop(&fixture);
	check_int(fixture.back.count, 3);
	check_int(exits, 1);
	for (i = 0; i < 3; i++)
		check_int(probes[i].end, TW_END_UNEXPIRED);
	check_int(stats_of(fixture.engine).expired, 1);
	fixture_close(&fixture);
}

/* When a callback ends the thread, the other timeouts of the same tick must not be lost. */
Test(start_system, b10_workers_end_loses_no_timeout_of_the_tick)
{
	struct fixture fixture;
	atomic_int exits = 0;
	atomic_int runs = 0;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 300; i++)
		must_schedule(fixture.engine, 1, i == 150 ? &exit_kind : &count_kind,
			      i == 150 ? &exits : &runs);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	fixture_stop(&fixture);
	check_int(exits, 1);
	check_int(runs + fixture.back.count, 299);
	fixture_close(&fixture);
}

static atomic_int finalised_count;

static void on_finalised(void *arg, enum tw_end end)
{
	(void)arg;
	if (end == TW_END_EXPIRED)
		atomic_fetch_add(&finalised_count, 1);
}

static const struct tw_kind exit_final_kind = TW_KIND(on_exit_thread, on_finalised);

Test(start_system, finaliser_runs_once_although_the_callback_ended_the_thread)
{
	struct fixture fixture;
	atomic_int exits = 0;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, 1, &exit_final_kind, &exits);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	fixture_stop(&fixture);
	check_int(finalised_count, 1);
	check_true(tw_cancel_wait(handle, PATIENCE_NS) != TW_CANCEL_DONE);
	fixture_close(&fixture);
}
