/* SPDX-License-Identifier: MIT */
/*
 * The bug: if a thread was cancelled (pthread_cancel) inside tw_engine_destroy, it ended there, in
 * one of two places. The first was a poll in liburcu, while the thread waited for another thread's
 * call. Then liburcu's lock stayed locked, and every later stop hung. The second was pthread_join
 * of the worker. Then the engine was half destroyed. A worker's thread with a pending cancel ended
 * in the same poll of liburcu while it finished its engine. Now no call of the library is a
 * cancellation point.
 */
#include "race.h"

#include "base/test_point.h"

#include <pthread.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

static _Thread_local bool stands;
static atomic_bool standing;
static atomic_int destroyed;

static void nap_ms(int ms)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

void twi_test_point(const char *name)
{
	if (!stands || strcmp(name, "schedule:open") != 0)
		return;
	stands = false;
	atomic_store(&standing, true);
	while (atomic_load(&standing))
		nap_ms(1);
}

static void linger(void *arg)
{
	(void)arg;
	nap_ms(300);
}

/* Leaves a thread-specific value whose destructor sleeps, so that the worker's thread takes time
 * to end. */
static void on_expire(struct tw_handle self, void *arg)
{
	pthread_key_t key;

	(void)self;
	RACE_CHECK(pthread_key_create(&key, linger) == 0);
	RACE_CHECK(pthread_setspecific(key, arg) == 0);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* Stays in tw_schedule, inside its critical section, until the test clears `standing`. */
static void *reader_body(void *engine)
{
	stands = true;
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	return NULL;
}

static void *destroyer_body(void *engine)
{
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	atomic_fetch_add(&destroyed, 1);
	pthread_testcancel();
	return NULL;
}

/* Destroys the engine with a pthread_cancel already pending. */
static void *marked_body(void *engine)
{
	int before;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	(void)pthread_cancel(pthread_self());
	(void)pthread_setcancelstate(before, NULL);
	return destroyer_body(engine);
}

static struct tw_engine *engine_with_clock(struct tw_clock **ret_clock)
{
	struct tw_engine *engine = NULL;
	struct tw_options options;

	RACE_CHECK(tw_clock_create_virtual(0, ret_clock) == 0);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.clock = *ret_clock;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	return engine;
}

static void join_cancelled(pthread_t thread)
{
	void *result = NULL;

	RACE_CHECK(pthread_join(thread, &result) == 0);
	RACE_CHECK(result == PTHREAD_CANCELED);
}

static void cancelled_in_grace_period(struct tw_engine *busy)
{
	struct tw_clock *clock = NULL;
	struct tw_engine *idle = engine_with_clock(&clock);
	pthread_t reader, destroyer;

	RACE_CHECK(pthread_create(&reader, NULL, reader_body, busy) == 0);
	while (!standing)
		nap_ms(1);
	RACE_CHECK(pthread_create(&destroyer, NULL, destroyer_body, idle) == 0);
	nap_ms(50);
	RACE_CHECK(destroyed == 0);
	RACE_CHECK(pthread_cancel(destroyer) == 0);
	nap_ms(50);
	atomic_store(&standing, false);
	RACE_CHECK(pthread_join(reader, NULL) == 0);
	join_cancelled(destroyer);
	RACE_CHECK(destroyed == 1);
	RACE_CHECK(tw_clock_destroy(clock) == 0);
}

static void cancelled_in_join(struct tw_engine *stopped)
{
	pthread_t destroyer;

	RACE_CHECK(pthread_create(&destroyer, NULL, marked_body, stopped) == 0);
	join_cancelled(destroyer);
	RACE_CHECK(destroyed == 2);
}

int main(void)
{
	struct tw_clock *clock = NULL;
	struct tw_engine *engine = engine_with_clock(&clock);

	race_watchdog(30);
	RACE_CHECK(tw_schedule(engine, 1, &kind, clock, NULL) == 0);
	RACE_CHECK(tw_clock_set(clock, 5000000) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	cancelled_in_grace_period(engine);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	cancelled_in_join(engine);
	return tw_clock_destroy(clock);
}
