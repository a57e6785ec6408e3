/* SPDX-License-Identifier: MIT */
/*
 * The dispatch hook runs on the worker. The tests make calls from the hook, and end the worker's
 * thread in the hook or after it. Calls from the hook used to wait for their own thread. When the
 * thread ended, the rest of the batch was lost.
 *
 * Seen to fail with these defects: calls do not notice that the worker is in the hook;
 * twi_worker_finish() forgets the rest of a rejected batch, so the test hangs.
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

enum { DUE = 5 };

struct hook {
	struct tw_engine *engine;
	struct tw_handle due;
	int stop, flush, detach, cancel_wait;
	atomic_int calls;
};

static size_t asking_hook(void *context, const struct tw_due *due, size_t count)
{
	struct hook *hook = context;

	(void)count;
	hook->stop = tw_engine_stop(hook->engine, NULL, NULL, TW_NEVER);
	hook->flush = tw_engine_flush(hook->engine, TW_NEVER);
	hook->detach = tw_thread_detach();
	hook->cancel_wait = tw_cancel_wait(due[0].handle, TW_NEVER);
	atomic_fetch_add(&hook->calls, 1);
	return 0;
}

/* Each of these calls would wait for its own thread, so it must return at once. */
Test(hook, does_not_wait_for_itself)
{
	struct tw_options options = fixture_options();
	struct hook hook = {.stop = 0};
	struct fixture fixture;
	atomic_int runs = 0;

	options.dispatch = asking_hook;
	options.dispatch_context = &hook;
	fixture_open(&fixture, &options);
	hook.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, fixture.tick_ns);
	check_int(hook.calls, 1);
	check_int(runs, 1);
	check_int(hook.stop, -EDEADLK);
	check_int(hook.flush, -EDEADLK);
	check_int(hook.detach, -EBUSY);
	check_int(hook.cancel_wait, TW_CANCEL_RUNNING);
	fixture_close(&fixture);
}

static atomic_int exit_runs, exit_releases;

static void exiting_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	if (atomic_fetch_add(&exit_runs, 1) == 0)
		pthread_exit(NULL);
}

static void counting_release(void *arg, enum tw_end end)
{
	(void)arg;
	if (end == TW_END_EXPIRED)
		atomic_fetch_add(&exit_releases, 1);
}

static const struct tw_kind exiting_kind = TW_KIND(exiting_callback, counting_release);

static size_t rejecting_hook(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	return 0;
}

static size_t exiting_hook(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	atomic_store(&exit_runs, 1);
	pthread_exit(NULL);
}

static size_t boasting_hook(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		(void)tw_due_run(&due[i]);
	return count + 1000;
}

/* Checks that every expired timeout has run and was finalised, at the latest when stop returns. */
static void check_all_run(tw_dispatch_hook *hook, int runs_before)
{
	struct tw_options options;
	struct tw_engine *engine;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.dispatch = hook;
	atomic_store(&exit_runs, 0);
	atomic_store(&exit_releases, 0);
	check_int(tw_engine_create(&options, &engine), 0);
	for (int i = 0; i < DUE; i++)
		must_schedule(engine, 100 * NS_PER_MS, &exiting_kind, NULL);
	check_true(wait_until_at_least(&exit_runs, 1));
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(stats_of(engine).expired + stats_of(engine).unexpired, DUE);
	check_int(exit_releases, stats_of(engine).expired);
	check_int(exit_runs, (int)stats_of(engine).expired + runs_before);
	check_int(tw_engine_destroy(engine), 0);
}

Test(hook, rejects_and_a_callback_ends_the_thread)
{
	check_all_run(rejecting_hook, 0);
}

Test(hook, ends_the_thread)
{
	check_all_run(exiting_hook, 1);
}

Test(hook, accepts_more_than_there_is)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;

	options.dispatch = boasting_hook;
	fixture_open(&fixture, &options);
	for (int i = 0; i < DUE; i++)
		must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, fixture.tick_ns);
	check_int(runs, DUE);
	fixture_close(&fixture);
}
