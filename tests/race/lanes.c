/* SPDX-License-Identifier: MIT */
/*
 * Busy lanes, whose pushes have no fence (turn/sleep.c). usage: race_lanes [seconds] [seed]
 * [threads]. Each of the two parts gets half of the time.
 *
 * Part `wakes`. One thread makes its lane busy. It gives the worker one timeout after the other,
 * each due at once, by a schedule or a reschedule, and waits for each to run. The worker has
 * nothing else to do and falls asleep each time. No other thread would ever wake it, so a lost
 * wake-up is a hang, which the program reports. Before each timeout the thread makes pairs of
 * schedule and cancel. These pairs make the race likely, because then both threads have the race's
 * two fields in their caches: the worker has just read the tail, and the thread has just read
 * wake_before_ns.
 *
 * Part `bursts`. Several threads push more than a thousand timeouts at a time, which are due at
 * once, soon, or never. Each thread cancels its own timeouts and those of others, before and after
 * the transfer, then sleeps for a moment. Each timeout ends exactly once, by its callback, or by
 * the cancel that returned "done".
 *
 * Seen to fail with these defects: barrier_make() makes no barrier before a sleep (`wakes` hangs:
 * in each of six runs of 2 s with test points, in one of six without); node_transfer() is a load
 * and a store (both parts).
 */
#include "race.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <tickwheel.h>
#include <time.h>

enum {
	THREADS_MAX = 16,
	ITEMS = 2000,
	TICK_NS = 1000,
	PAIRS_MOST = 24,
	SPINS_MOST = 256,
};

enum { EMPTY, READY, TAKEN };

struct item {
	struct tw_handle handle;
	/* a thread that changes READY to TAKEN may cancel the timeout; then it sets EMPTY */
	_Atomic int state;
	_Atomic uint32_t ends;
};

static struct tw_engine *engine;
static struct item items[THREADS_MAX][ITEMS];
static uint64_t threads;
static int64_t until_ns;
static _Atomic uint64_t fired, accepted, cancelled;

static void on_wake(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_store((_Atomic bool *)arg, true);
}

static const struct tw_kind wake_kind = TW_KIND(on_wake, NULL);

static void on_expire(struct tw_handle self, void *arg)
{
	struct item *item = arg;

	(void)self;
	RACE_CHECK(atomic_fetch_add(&item->ends, 1) == 0);
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void engine_open(void)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_engine_start(engine) == 0);
}

static void engine_close(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.pending == 0 && stats.unexpired == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

/* Makes the lane busy by enough pushes at once, and removes the timeouts again. */
static void lane_busy_make(void)
{
	static struct tw_handle handles[ITEMS];

	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	for (int i = 0; i < ITEMS; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handles[i]) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	for (int i = 0; i < ITEMS; i++)
		RACE_CHECK(tw_cancel(handles[i]) == TW_CANCEL_DONE);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

static void pairs_make(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct tw_handle handle;

		RACE_CHECK(tw_schedule(engine, TW_NEVER, &wake_kind, NULL, &handle) == 0);
		RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	}
}

/*
 * Spins, and reads the cache line with wake_before_ns, to which the sleeper writes. Then the push
 * reads this line fast.
 */
static void spin(uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		RACE_CHECK(tw_engine_state(engine) == TW_ENGINE_RUNNING);
}

static void wake_round(uint64_t *random)
{
	_Atomic bool woken = false;
	bool later = race_random(random) % 8 == 0;
	struct tw_handle handle;

	if (later)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &wake_kind, &woken, &handle) == 0);
	if (race_random(random) % 4 == 0)
		pairs_make(race_random(random) % PAIRS_MOST);
	spin(race_random(random) % SPINS_MOST);
	if (later)
		RACE_CHECK(tw_reschedule(handle, 0) == TW_RESCHEDULE_DONE);
	else
		RACE_CHECK(tw_schedule(engine, 0, &wake_kind, &woken, NULL) == 0);
	/* Yields now and then, so that the worker can run on a machine with one processor. */
	for (uint64_t i = 1; !atomic_load(&woken); i++)
		if (i % 100000 == 0)
			(void)sched_yield();
}

static void wakes_run(uint64_t seed, int64_t end_ns)
{
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	uint64_t rounds = 0;

	engine_open();
	lane_busy_make();
	for (; race_now_ns() < end_ns; rounds++)
		wake_round(&random);
	printf("wakes: %" PRIu64 " rounds, none lost\n", rounds);
	engine_close();
}

static int64_t some_delay_ns(uint64_t *random)
{
	switch (race_random(random) % 4) {
	case 0:
		return 0;
	case 1:
		return (int64_t)(race_random(random) % 1000000);
	default:
		return TW_NEVER;
	}
}

/* Cancels the item, unless another thread has claimed it. */
static void item_cancel(struct item *item)
{
	int ready = READY;

	if (!atomic_compare_exchange_strong(&item->state, &ready, TAKEN))
		return;
	if (tw_cancel(item->handle) == TW_CANCEL_DONE) {
		RACE_CHECK(atomic_fetch_add(&item->ends, 1) == 0);
		atomic_fetch_add(&cancelled, 1);
	}
	atomic_store(&item->state, EMPTY);
}

static void burst_schedule(struct item *own, uint64_t *random)
{
	uint64_t pairs = race_random(random) % 4;

	for (int i = 0; i < ITEMS; i++) {
		atomic_store(&own[i].ends, 0);
		RACE_CHECK(tw_schedule(engine, some_delay_ns(random), &kind, &own[i],
				       &own[i].handle) == 0);
		atomic_store(&own[i].state, READY);
		/*
		 * Cancels some at once, so that their blocks are reused while old entries still
		 * name them.
		 */
		if (race_random(random) % 4 < pairs)
			item_cancel(&own[i]);
	}
	atomic_fetch_add(&accepted, ITEMS);
}

static void others_cancel(uint64_t *random)
{
	struct item *theirs = items[race_random(random) % threads];

	for (int i = 0; i < ITEMS / 4; i++)
		item_cancel(&theirs[race_random(random) % ITEMS]);
}

/* Waits until the item has ended and no thread is about to cancel it. */
static void item_end(struct item *item)
{
	item_cancel(item);
	for (uint64_t i = 1; atomic_load(&item->ends) == 0 || atomic_load(&item->state) != EMPTY;
	     i++)
		if (i % 1000 == 0)
			(void)sched_yield();
}

static void *burst_main(void *argument)
{
	uint64_t random = ((uint64_t)(uintptr_t)argument + 1) * UINT64_C(0x9e3779b97f4a7c15);
	struct item *own = items[(uintptr_t)argument];

	while (race_now_ns() < until_ns) {
		burst_schedule(own, &random);
		if (race_random(&random) % 2 == 0)
			(void)tw_engine_flush(engine, TW_NEVER);
		others_cancel(&random);
		for (int i = 0; i < ITEMS; i++)
			item_end(&own[i]);
		(void)nanosleep(
			&(struct timespec){.tv_nsec = (long)(race_random(&random) % 300000)}, NULL);
	}
	return NULL;
}

static void bursts_run(int64_t end_ns)
{
	pthread_t thread[THREADS_MAX];

	until_ns = end_ns;
	engine_open();
	for (uintptr_t i = 0; i < threads; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, burst_main, (void *)i) == 0);
	for (uint64_t i = 0; i < threads; i++)
		RACE_CHECK(pthread_join(thread[i], NULL) == 0);
	printf("bursts: %" PRIu64 " accepted = %" PRIu64 " fired + %" PRIu64 " cancelled\n",
	       accepted, fired, cancelled);
	RACE_CHECK(accepted > 0 && accepted == fired + cancelled);
	engine_close();
}

int main(int argc, char **argv)
{
	int64_t half_ns = (int64_t)race_argument(argc, argv, 1, 2) * INT64_C(500000000);
	int64_t begin_ns = race_now_ns();

	threads = race_argument(argc, argv, 3, 4);
	RACE_CHECK(threads >= 1 && threads <= THREADS_MAX);
	race_watchdog((unsigned)(half_ns / 500000000) + 60);
	wakes_run(race_argument(argc, argv, 2, 1), begin_ns + half_ns);
	bursts_run(begin_ns + 2 * half_ns);
	return 0;
}
