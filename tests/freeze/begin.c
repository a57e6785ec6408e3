/* SPDX-License-Identifier: MIT */
/*
 * A stop comes before the worker's first step, or between its first two steps. Then a hand-back
 * ends the worker's thread. The stop can finish the engine only if the worker has made the right
 * step of the engine's state. Otherwise the stop does not notice that the engine needs another
 * worker.
 *
 * Seen to fail with these defects:
 * - twi_worker_run() does not step from STOPPING_STARTING to STOPPING (test `before`);
 * - twi_worker_run() makes its two steps in the other order (test `between`);
 * - twi_worker_died() does not wake the stop, or does not step to ORPHAN (both tests).
 */
#include "race.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

enum { PATIENCE_MS = 20000, TIMEOUTS = 10 };

static struct tw_engine *engine;
static struct stand stand;
static void *(*worker_body)(void *);
static _Atomic uint32_t unexpired, threads;

static const char before_it[] = "worker:never";
static const char between[] = "worker:running";

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/*
 * The main function of the first worker's thread. In one test it stops at a point before it becomes
 * a worker.
 */
static void *first_main(void *arg)
{
	if (stand.point == before_it) {
		atomic_store(&stand.stands, true);
		while (!atomic_load(&stand.released))
			nap();
	} else {
		stand_arm(&stand);
	}
	return worker_body(arg);
}

static int thread_hook(void *context, void *(*body)(void *), void *arg)
{
	pthread_t thread;

	(void)context;
	worker_body = body;
	RACE_CHECK(pthread_create(&thread, NULL,
				  atomic_fetch_add(&threads, 1) == 0 ? first_main : body,
				  arg) == 0);
	return pthread_detach(thread);
}

static void on_unexpired(void *context, struct tw_handle self, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)self;
	(void)its_kind;
	(void)arg;
	(void)remaining_ns;
	if (atomic_fetch_add(&unexpired, 1) == 0)
		pthread_exit(NULL);
}

static void stop_at(const char *point)
{
	struct tw_options options;

	unexpired = threads = 0;
	stand = (struct stand){.point = point};
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.thread = thread_hook;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < TIMEOUTS; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * INT64_C(1000000)) == 0);
	RACE_CHECK(unexpired == TIMEOUTS && threads == 2);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	printf("stop at %s: handed back %u, by two workers\n", point, (unsigned)unexpired);
}

int main(void)
{
	race_watchdog(100);
	stop_at(before_it);
	stop_at(between);
	return 0;
}
