/* SPDX-License-Identifier: MIT */
/*
 * In virtual time, the worker stops between two steps of going to sleep, or of serving flush. Then
 * another thread gives the worker a reason to continue. No other event would ever wake the worker.
 * So if it misses the reason it hangs, which the program reports.
 *
 * Seen to fail with these defects (in parentheses: the tests):
 * - stay_awake() does not check one of its four reasons (the test of that reason);
 * - the worker reads the flush ticket after the turn (flush_means_a_turn_from_its_begin);
 * - the worker sets the count of unseen pushes to 0 after the transfer (pushes_after_the_transfer);
 * - the worker notifies flushers before it stores that the ticket is served
 *   (flush_is_told_after_it_was_served);
 * - the worker does not take back that it sleeps (who_is_awake_is_not_woken).
 */
#include "race.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

#define NS_PER_MS INT64_C(1000000)

enum {
	PATIENCE_MS = 20000,
	SETTLES_MS = 20,
	/* More pushes than the worker leaves unseen. */
	FLOOD = 70000,
};

static struct tw_engine *engine;
static struct tw_clock *virtual_clock;
static struct stand worker_stand, flush_stand;
static _Atomic uint32_t fired;
static _Atomic bool armed, let_go;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* Runs on the worker, which will stop when it next reaches the point. */
static void on_arm(struct tw_handle self, void *arg)
{
	(void)self;
	stand_arm(arg);
	atomic_store(&armed, true);
}

static const struct tw_kind arm = TW_KIND(on_arm, NULL);

static struct tw_stats stats(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	return stats;
}

/* Opens an engine with one timeout that is due at 5 ms. At 2 ms, stops its worker at the point. */
static void open_at(const char *point, bool next_turn)
{
	struct tw_options options;

	fired = 0;
	armed = false;
	worker_stand = (struct stand){.point = point};
	flush_stand = (struct stand){.point = "flush:waiting"};
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	RACE_CHECK(tw_clock_create_virtual(0, &virtual_clock) == 0);
	options.clock = virtual_clock;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_schedule(engine, 5 * NS_PER_MS, &kind, NULL, NULL) == 0);
	RACE_CHECK(tw_schedule(engine, 1, &arm, &worker_stand, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(tw_clock_set(virtual_clock, 2 * NS_PER_MS) == 0);
	while (!atomic_load(&armed))
		nap();
	/* With next_turn, takes a ticket that the next turn serves, and not the current one. */
	if (next_turn)
		(void)tw_engine_flush(engine, 0);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
}

static void close_it(const char *what)
{
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(virtual_clock) == 0);
	printf("%s\n", what);
}

/* Waits until the value has reached `target`. Returns false after PATIENCE_MS. */
static bool comes(uint64_t (*value)(void), uint64_t target)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;

	while (value() < target) {
		if (now_ms() > until_ms)
			return false;
		nap();
	}
	return true;
}

static uint64_t turns(void)
{
	return stats().turns;
}

static uint64_t transferred(void)
{
	return stats().transferred;
}

static uint64_t fired_count(void)
{
	return atomic_load(&fired);
}

static void flush_before_sleep(void)
{
	uint64_t before;

	open_at("park:preparing", false);
	before = turns();
	/* Takes a ticket without waiting for it. */
	RACE_CHECK(tw_engine_flush(engine, 0) == -ETIMEDOUT);
	stand_release(&worker_stand);
	RACE_CHECK(comes(turns, before + 1));
	close_it("flush, before the worker says that it sleeps");
}

static void clock_before_sleep(void)
{
	open_at("park:preparing", false);
	RACE_CHECK(tw_clock_set(virtual_clock, 7 * NS_PER_MS) == 0);
	stand_release(&worker_stand);
	RACE_CHECK(comes(fired_count, 1));
	close_it("the clock moved, before the worker says that it sleeps");
}

static void stop_before_sleep(void)
{
	open_at("park:preparing", false);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, 0) == -ETIMEDOUT);
	stand_release(&worker_stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	close_it("stop, before the worker says that it sleeps");
}

static void flood(void)
{
	for (int i = 0; i < FLOOD; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
}

static void pushes_before_sleep(void)
{
	uint64_t before;

	open_at("park:preparing", false);
	before = transferred();
	flood();
	stand_release(&worker_stand);
	RACE_CHECK(comes(transferred, before + FLOOD));
	close_it("pushes without bound, before the worker says that it sleeps");
}

/* Pushes when the turn has already read ingress, so these pushes are for the next turn. */
static void pushes_after_the_transfer(void)
{
	uint64_t before;

	open_at("turn:transferred", true);
	before = transferred();
	flood();
	stand_release(&worker_stand);
	RACE_CHECK(comes(transferred, before + FLOOD));
	close_it("pushes without bound, after the transfer");
}

static void *flush_main(void *argument)
{
	stand_arm(argument);
	RACE_CHECK(tw_engine_flush(engine, PATIENCE_MS * NS_PER_MS) == 0);
	stand_disarm();
	return NULL;
}

static void flush_means_a_turn_from_its_begin(void)
{
	pthread_t flusher;
	uint64_t before;

	open_at("turn:transferred", true);
	before = transferred();
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	RACE_CHECK(pthread_create(&flusher, NULL, flush_main, &flush_stand) == 0);
	RACE_CHECK(stand_await(&flush_stand, PATIENCE_MS));
	stand_release(&worker_stand);
	stand_release(&flush_stand);
	RACE_CHECK(pthread_join(flusher, NULL) == 0);
	RACE_CHECK(transferred() == before + 1);
	close_it("flush waits for a turn that began after it");
}

/* Stops the worker after it has marked the ticket as served, and before it wakes the flusher. */
static void flush_is_told_after_it_was_served(void)
{
	pthread_t flusher;

	open_at("flush:served", true);
	RACE_CHECK(pthread_create(&flusher, NULL, flush_main, NULL) == 0);
	for (int64_t until_ms = now_ms() + SETTLES_MS; now_ms() < until_ms;)
		nap();
	stand_release(&worker_stand);
	RACE_CHECK(pthread_join(flusher, NULL) == 0);
	close_it("flush is told after it was served");
}

/* Keeps the worker in this callback until the test lets it continue. */
static void on_hold(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_store(&armed, true);
	while (!atomic_load(&let_go))
		nap();
}

static const struct tw_kind hold = TW_KIND(on_hold, NULL);

/*
 * Opens an engine in real time. Its worker has slept until the first deadline, and is in that
 * timeout's callback.
 */
static void open_woken_by_time(void)
{
	armed = false;
	let_go = false;
	RACE_CHECK(tw_engine_create(NULL, &engine) == 0);
	RACE_CHECK(tw_schedule(engine, 5 * NS_PER_MS, &hold, NULL, NULL) == 0);
	while (!atomic_load(&armed))
		nap();
}

static void *waker_main(void *argument)
{
	stand_arm(argument);
	RACE_CHECK(tw_engine_flush(engine, 0) == -ETIMEDOUT);
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	stand_disarm();
	atomic_store(&let_go, true);
	return NULL;
}

/*
 * Tries once. Returns false if the machine was so busy that the worker did not sleep before its
 * deadline.
 */
static bool awake_try(void)
{
	struct stand wake_stand = {.point = "park:waking"};
	pthread_t waker;
	bool slept;

	open_woken_by_time();
	slept = stats().woken_by_deadline == 1;
	RACE_CHECK(pthread_create(&waker, NULL, waker_main, &wake_stand) == 0);
	while (!atomic_load(&let_go)) {
		RACE_CHECK(!atomic_load(&wake_stand.stands));
		nap();
	}
	RACE_CHECK(pthread_join(waker, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	return slept;
}

static void who_is_awake_is_not_woken(void)
{
	while (!awake_try())
		;
	printf("a worker that is awake is not woken\n");
}

int main(void)
{
	race_watchdog(100);
	flush_before_sleep();
	clock_before_sleep();
	stop_before_sleep();
	pushes_before_sleep();
	pushes_after_the_transfer();
	flush_means_a_turn_from_its_begin();
	flush_is_told_after_it_was_served();
	who_is_awake_is_not_woken();
	return 0;
}
