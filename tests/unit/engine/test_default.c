/* SPDX-License-Identifier: MIT */
/*
 * The default engine is made once, with the options that were set before, and exists until the
 * process exits. Each test has a process of its own.
 *
 * Seen to fail with these defects: options are accepted after the engine exists; a destroy is
 * accepted; a stop does not join the worker's thread; a stop does not end the watch for dates.
 * ThreadSanitizer reports the last two as well.
 */
#include "asleep.h"
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

static atomic_int runs;

static void stop(void)
{
	check_int(tw_engine_stop(tw_default_engine(), NULL, NULL, TW_NEVER), 0);
}

Test(default_engine, every_call_returns_the_same_one)
{
	struct tw_engine *engine = tw_default_engine();

	check_true(engine != NULL && tw_default_engine() == engine);
	check_int(tw_engine_state(engine), TW_ENGINE_NEW);
	check_int(tw_schedule(engine, 0, &count_kind, &runs, NULL), 0);
	check_true(wait_until_at_least(&runs, 1));
	check_int(tw_engine_destroy(engine), -EBUSY);
	stop();
	check_true(tw_default_engine() == engine);
	check_int(tw_engine_destroy(engine), -EBUSY);
	check_int(tw_schedule(engine, 0, &count_kind, &runs, NULL), -ESHUTDOWN);
}

Test(default_engine, the_last_options_count_until_the_first_call)
{
	struct tw_options options;
	struct tw_clock *clock;

	check_int(tw_clock_create_virtual(77, &clock), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_default_options_set(&options), 0);
	options.flags = 0;
	options.clock = clock;
	check_int(tw_default_options_set(&options), 0);
	check_int(tw_engine_now(tw_default_engine()), 77);
	check_int(tw_engine_poll(tw_default_engine(), 0), -EINVAL);
	check_int(tw_default_options_set(&options), -EBUSY);
	stop();
}

Test(default_engine, bad_options_change_nothing)
{
	struct tw_options options;

	check_int(tw_default_options_set(NULL), -EINVAL);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.tick_ns = 0;
	check_int(tw_default_options_set(&options), -EINVAL);
	check_true(tw_default_engine() != NULL);
	check_int(tw_default_options_set(&options), -EINVAL);
	stop();
}

/* The creation fails because the clock already belongs to another engine. When the clock is
 * free, the next call must try again. */
Test(default_engine, a_creation_that_fails_is_tried_again)
{
	struct tw_options options;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.clock = fixture.clock;
	check_int(tw_default_options_set(&options), 0);
	check_true(tw_default_engine() == NULL);
	check_int(tw_default_options_set(&options), -EBUSY);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(fixture.engine), 0);
	check_true(tw_default_engine() != NULL);
	stop();
}

/*
 * The key of a destructor, which runs at the very end of the worker's thread. The destructor
 * returns only when the caller of stop sleeps, so a stop that does not wait for the thread returns
 * first.
 */
static pthread_key_t slow_end;
static asleep_thread stopping;
static atomic_int ended;

static void end_slowly(void *unused)
{
	(void)unused;
	atomic_store(&ended, asleep_await(&stopping));
}

static void on_worker(struct tw_handle self, void *arg)
{
	(void)self;
	check_int(pthread_setspecific(slow_end, arg), 0);
	atomic_fetch_add(&runs, 1);
}

static const struct tw_kind on_worker_kind = TW_KIND(on_worker, NULL);

Test(default_engine, a_stop_waits_for_the_end_of_the_thread)
{
	check_int(pthread_key_create(&slow_end, end_slowly), 0);
	check_int(tw_schedule(tw_default_engine(), 0, &on_worker_kind, &runs, NULL), 0);
	check_true(wait_until_at_least(&runs, 1));
	asleep_announce(&stopping);
	stop();
	check_int(ended, 1);
	stop();
}

/* Calls stop in a destructor on the worker's own thread. Stop must not wait for that thread. */
static void end_with_a_stop(void *unused)
{
	(void)unused;
	stop();
	atomic_store(&ended, 1);
}

Test(default_engine, the_thread_itself_may_call_stop_at_its_end)
{
	check_int(pthread_key_create(&slow_end, end_with_a_stop), 0);
	check_int(tw_schedule(tw_default_engine(), 0, &on_worker_kind, &runs, NULL), 0);
	check_true(wait_until_at_least(&runs, 1));
	stop();
	check_true(wait_until_at_least(&ended, 1));
}

static void *stop_body(void *unused)
{
	stop();
	return unused;
}

Test(default_engine, two_threads_may_stop_it_at_once)
{
	pthread_t other;

	check_int(tw_schedule(tw_default_engine(), 0, &count_kind, &runs, NULL), 0);
	check_int(pthread_create(&other, NULL, stop_body, NULL), 0);
	stop();
	check_int(pthread_join(other, NULL), 0);
}

/* Returns the number of entries for this process's threads in /proc. */
static int threads_alive(void)
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	check_true(folder != NULL);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

/*
 * Waits until the number of threads has fallen to `count`. For a moment after a join, the system
 * may still list the thread.
 */
static bool threads_come_down_to(int count)
{
	for (int64_t begin_ns = monotonic_ns(); threads_alive() > count; sleep_ns(NS_PER_MS))
		if (monotonic_ns() - begin_ns > PATIENCE_NS)
			return false;
	return true;
}

static void *nothing(void *unused)
{
	return unused;
}

/* Makes a first thread before counting, because ThreadSanitizer then makes one of its own, too. */
static int threads_before(void)
{
	pthread_t first;

	check_int(pthread_create(&first, NULL, nothing, NULL), 0);
	check_int(pthread_join(first, NULL), 0);
	return threads_alive();
}

Test(default_engine, a_stop_ends_the_watch_for_dates)
{
	int before = threads_before();
	struct tw_handle handle;

	check_int(tw_schedule_wall(tw_default_engine(), TW_NEVER, &count_kind, &runs, &handle), 0);
	check_int(tw_engine_flush(tw_default_engine(), TW_NEVER), 0);
	check_at_least(threads_alive(), before + 1);
	stop();
	check_true(threads_come_down_to(before));
	check_int(tw_timeout_state(handle), TW_STATE_CANCELLED);
}
