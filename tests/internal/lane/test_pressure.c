/* SPDX-License-Identifier: MIT */
/*
 * Producers must slow down when many cancelled timeouts wait for the worker. A timeout that another
 * thread cancels must count too, whether that thread cancels singly or in batches, and whether it
 * has a near lane or a far one.
 *
 * Seen to fail with these defects: cancels count only when the thread that made them schedules (for
 * tw_cancel, and for tw_cancel_many); the pause does not depend on the number of threads.
 */
#include "fixture.h"

#include "engine/engine.h"
#include "ingress/pressure.h"
#include "thread/rcu.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * A little more than the number of cancelled timeouts that makes a producer yield
 * (ingress/pressure.c).
 */
enum { MANY = (1 << 18) + 4096 };

static struct fixture fixture;
static struct tw_handle *handles;
static pthread_barrier_t line;

static void wait_twice(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	(void)pthread_barrier_wait(&line);
	(void)pthread_barrier_wait(&line);
}

static void never(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind wait_kind = TW_KIND(wait_twice, NULL);
static const struct tw_kind never_kind = TW_KIND(never, NULL);

static void *cancel_each(void *argument)
{
	for (int i = 0; i < MANY; i++)
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	return argument;
}

static void *cancel_all(void *argument)
{
	check_int(tw_cancel_many(handles, MANY, NULL), MANY);
	return argument;
}

/* Gives this thread a far number, for which the engine has no lane yet. */
static void *cancel_far(void *argument)
{
	struct twi_thread *thread = twi_thread();

	thread->far = TWI_LANES;
	thread->lane = TWI_LANE_SHARED;
	thread->presence = NULL;
	thread->pin = NULL;
	return cancel_each(argument);
}

static unsigned level(void)
{
	unsigned result;

	twi_rcu_enter();
	result = twi_throttle_level(&fixture.engine->worker, twi_thread());
	twi_rcu_leave();
	return result;
}

/* Cancels with `cancel` while a callback keeps the worker from reclaiming. */
static void check_with(void *(*cancel)(void *argument))
{
	pthread_t thread;

	handles = calloc(MANY, sizeof *handles);
	check_int(pthread_barrier_init(&line, NULL, 2), 0);
	fixture_open(&fixture, NULL);
	for (int i = 0; i < MANY; i++)
		check_int(tw_schedule(fixture.engine, TW_NEVER, &never_kind, NULL, &handles[i]), 0);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	check_int(level(), TWI_THROTTLE_FREE);
	check_int(tw_schedule(fixture.engine, 0, &wait_kind, NULL, NULL), 0);
	(void)pthread_barrier_wait(&line);
	check_int(pthread_create(&thread, NULL, cancel, NULL), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(level(), TWI_THROTTLE_YIELD);
	(void)pthread_barrier_wait(&line);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	check_int(level(), TWI_THROTTLE_FREE);
	fixture_close(&fixture);
	check_int(pthread_barrier_destroy(&line), 0);
	free(handles);
}

Test(pressure, another_threads_cancels_count, .timeout = 100)
{
	check_with(cancel_each);
}

Test(pressure, another_threads_batches_count, .timeout = 100)
{
	check_with(cancel_all);
}

Test(pressure, cancels_in_a_far_lane_count, .timeout = 100)
{
	check_with(cancel_far);
}

/* The pause must grow with the number of threads, so that all of them together schedule less
 * than the worker reclaims. */
Test(pressure, the_pause_grows_with_the_number_of_threads)
{
	static const struct {
		uint32_t lanes;
		uint64_t left;
		unsigned sleep_ms;
	} rows[] = {
		{1, (1 << 20) - 1, 0}, {1, 1 << 20, 1},        {1, 5 << 20, 5},
		{1, 99 << 20, 10},     {9, 1 << 20, 1},        {10, 1 << 20, 2},
		{200, 1 << 20, 40},    {200, 2 << 20, 80},     {1000, 1 << 20, 200},
		{1000, 9 << 20, 1000}, {65535, 1 << 20, 1000},
	};
	struct twi_worker *worker;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	worker = &fixture.engine->worker;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		twi_store_relaxed(&worker->lanes_seen, rows[i].lanes);
		twi_store_relaxed(&worker->cancelled_sum, rows[i].left);
		check_int(level(), TWI_THROTTLE_YIELD + rows[i].sleep_ms);
	}
	twi_store_relaxed(&worker->cancelled_sum, 0);
	fixture_close(&fixture);
}

/*
 * A thread must not end by pthread_cancel while it waits in a schedule, because no code would learn
 * of the accepted timeout. So the wait disables such cancels, and must leave the cancel state as it
 * was.
 */
Test(pressure, a_pause_lasts_at_least_as_long_as_it_says)
{
	int64_t begin_ns = monotonic_ns();
	int state;

	twi_throttle_wait(TWI_THROTTLE_YIELD);
	twi_throttle_wait(TWI_THROTTLE_YIELD + 3);
	check_at_least(monotonic_ns() - begin_ns, 3 * NS_PER_MS);
	check_int(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state), 0);
	check_int(state, PTHREAD_CANCEL_ENABLE);
}
