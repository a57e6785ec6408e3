/* SPDX-License-Identifier: MIT */
/*
 * The worker's thread of the default engine must be joined, even if a destructor of thread data on
 * that very thread calls stop before any other stop has returned 0.
 *
 * Seen to fail with this defect: a stop on the worker's own thread claims the join of that thread.
 */
#include "engine/engine.h"
#include "fixture.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_key_t at_end;
static atomic_int runs, ended;

static void stop(int expected, int64_t timeout_ns)
{
	check_int(tw_engine_stop(tw_default_engine(), NULL, NULL, timeout_ns), expected);
}

static void end_with_a_stop(void *unused)
{
	(void)unused;
	stop(0, TW_NEVER);
	atomic_store(&ended, 1);
}

static void on_worker(struct tw_handle self, void *arg)
{
	(void)self;
	check_int(pthread_setspecific(at_end, arg), 0);
	atomic_fetch_add(&runs, 1);
	/* Lets the callback run until the test's stop has timed out. So the destructor's stop is
	 * the first that returns 0. */
	while (atomic_load(&runs) < 2)
		;
}

static const struct tw_kind on_worker_kind = TW_KIND(on_worker, NULL);

Test(default_join, the_thread_is_joined_by_a_stop_of_another_thread)
{
	check_int(pthread_key_create(&at_end, end_with_a_stop), 0);
	check_int(tw_schedule(tw_default_engine(), 0, &on_worker_kind, &runs, NULL), 0);
	check_true(wait_until_at_least(&runs, 1));
	stop(-ETIMEDOUT, 0);
	atomic_fetch_add(&runs, 1);
	check_true(wait_until_at_least(&ended, 1));
	check_true(tw_default_engine()->thread_made);
	stop(0, TW_NEVER);
	check_true(!tw_default_engine()->thread_made);
}
