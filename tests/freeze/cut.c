/* SPDX-License-Identifier: MIT */
/*
 * A thread of a shared lane stops between the exchange and the link of its push. This cuts the
 * queue: the worker cannot reach what other threads push to the lane after that. Such pushes are
 * hidden. (Threads beyond the near numbers share a lane if there is no memory for lanes of their
 * own.) Meanwhile timeouts in the wheel must fire on time, and threads with a lane of their own
 * must be served. Flush must not report success before the worker has seen the hidden pushes, and
 * the worker must not spin. When the thread continues, the hidden pushes must appear by themselves,
 * in virtual time too. If a loop's descriptor is created during a cut, it must be readable at once,
 * so that its owner polls.
 *
 * Seen to fail with these defects:
 * - the worker serves a flush although a lane is cut;
 * - ticket_waits() keeps the worker awake during a cut, so that it spins;
 * - the worker does not look at a cut lane again, so the hidden pushes are never seen;
 * - a queue counts as empty as soon as its consumer's end is at the stub, so the loop's descriptor
 *   does not become readable.
 */
#include "no_lanes.h"
#include "race.h"
#include "stand.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

#define NS_PER_MS INT64_C(1000000)

enum {
	/* More threads than there are exclusive lanes. */
	LANES = 70,
	PATIENCE_MS = 20000,
	LOOK_MS = 100,
	/*
	 * The worker should make a turn once a millisecond. If it spins, it makes a hundred
	 * thousand turns.
	 */
	TURNS_MOST = 1000,
	HIDDEN = 100,
};

static struct tw_engine *engine;
static struct tw_clock *virtual_clock;
static struct stand stand = {.point = "mpsc_push:exchanged"};
static struct stand loop_stand = {.point = "mpsc_push:exchanged"};
static pthread_barrier_t attached, over;
static _Atomic uint32_t fired;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/*
 * The main function of a thread that only occupies a lane, so that later threads share the last
 * lane.
 */
static void *keeper_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_thread_attach() == 0);
	(void)pthread_barrier_wait(&attached);
	(void)pthread_barrier_wait(&over);
	return NULL;
}

static void *cutter_main(void *its_stand)
{
	stand_arm(its_stand);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	return NULL;
}

/* The main function of a thread that pushes to the same lane, after the cut. */
static void *hidden_main(void *argument)
{
	(void)argument;
	for (int i = 0; i < HIDDEN; i++)
		RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, LOOK_MS * NS_PER_MS) == -ETIMEDOUT);
	return NULL;
}

static void thread_run(void *(*body)(void *))
{
	pthread_t thread;

	RACE_CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
	RACE_CHECK(pthread_join(thread, NULL) == 0);
}

static void engine_open(void)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	RACE_CHECK(tw_clock_create_virtual(0, &virtual_clock) == 0);
	options.clock = virtual_clock;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_schedule(engine, 5 * NS_PER_MS, &kind, NULL, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

static struct tw_stats stats(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	return stats;
}

/* Waits in real time until this many timeouts have fired. */
static void fired_await(uint32_t count)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;

	while (atomic_load(&fired) < count) {
		RACE_CHECK(now_ms() < until_ms);
		nap();
	}
}

static void while_cut(void)
{
	uint64_t before;

	/* The main thread has a lane of its own. */
	RACE_CHECK(tw_clock_set(virtual_clock, 6 * NS_PER_MS) == 0);
	fired_await(1);
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	RACE_CHECK(tw_clock_set(virtual_clock, 8 * NS_PER_MS) == 0);
	fired_await(2);
	before = stats().turns;
	thread_run(hidden_main);
	RACE_CHECK(stats().turns - before < TURNS_MOST);
	RACE_CHECK(tw_clock_set(virtual_clock, 20 * NS_PER_MS) == 0);
	for (int64_t until_ms = now_ms() + LOOK_MS / 2; now_ms() < until_ms;)
		RACE_CHECK(atomic_load(&fired) == 2);
	printf("cut for %d ms: the wheel fires, %u looks\n", LOOK_MS,
	       (unsigned)(stats().turns - before));
}

static void cut_and_heal(void)
{
	pthread_t cutter;

	engine_open();
	RACE_CHECK(pthread_create(&cutter, NULL, cutter_main, &stand) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	while_cut();
	stand_release(&stand);
	RACE_CHECK(pthread_join(cutter, NULL) == 0);
	/* No thread makes a call, so the worker must look again by itself. */
	fired_await(2 + HIDDEN);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(stats().transferred == 3 + HIDDEN && stats().pending == 1);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0 && tw_clock_destroy(virtual_clock) == 0);
	printf("the push goes on: what it hid has fired\n");
}

/*
 * Pushes after the cut, but before the loop publishes that it sleeps. So the push wakes no thread.
 */
static void *unheard_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	return NULL;
}

static bool readable(int fd, int patience_ms)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, patience_ms) == 1;
}

static void loop_open(void)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.flags = TW_ENGINE_LOOP;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_loop_enter(engine) == 0);
	atomic_store(&fired, 0);
}

static void descriptor_while_cut(void)
{
	pthread_t cutter;
	int fd;

	loop_open();
	RACE_CHECK(pthread_create(&cutter, NULL, cutter_main, &loop_stand) == 0);
	RACE_CHECK(stand_await(&loop_stand, PATIENCE_MS));
	thread_run(unheard_main);
	fd = tw_engine_fd(engine);
	RACE_CHECK(fd >= 0 && readable(fd, 0));
	RACE_CHECK(tw_engine_poll(engine, 0) == 0 && atomic_load(&fired) == 0);
	stand_release(&loop_stand);
	RACE_CHECK(pthread_join(cutter, NULL) == 0);
	while (atomic_load(&fired) < 1)
		RACE_CHECK(readable(fd, PATIENCE_MS) && tw_engine_poll(engine, 0) >= 0);
	RACE_CHECK(stats().pending == 1);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	printf("a loop's descriptor made while there is a cut is readable\n");
}

int main(void)
{
	pthread_t keeper[LANES];

	race_watchdog(100);
	no_lanes_set();
	RACE_CHECK(tw_thread_attach() == 0);
	RACE_CHECK(pthread_barrier_init(&attached, NULL, LANES + 1) == 0);
	RACE_CHECK(pthread_barrier_init(&over, NULL, LANES + 1) == 0);
	for (int i = 0; i < LANES; i++)
		RACE_CHECK(pthread_create(&keeper[i], NULL, keeper_main, NULL) == 0);
	(void)pthread_barrier_wait(&attached);
	cut_and_heal();
	descriptor_while_cut();
	(void)pthread_barrier_wait(&over);
	for (int i = 0; i < LANES; i++)
		RACE_CHECK(pthread_join(keeper[i], NULL) == 0);
	return 0;
}
