/* SPDX-License-Identifier: MIT */
/*
 * Races of stop, one engine per round: [schedule|first|start|cancel] [rounds] [seed].
 *
 *   schedule  one thread schedules flat out while another stops (B1: lost timeouts)
 *   first     the schedule that starts the engine races stop (B2: hung callers)
 *   start     stop meets start, whose thread hook fails or dawdles (B3: callbacks after stop)
 *   cancel    one thread cancels what is in the wheel while another stops, and destroys
 *
 * Allowed outcomes, per round: each schedule returned 0, and its timeout has expired or been handed
 * back exactly once when stop returns; or -ESHUTDOWN (or -ENOMEM where the thread hook failed), and
 * it never does. No callback begins after stop has returned. A hang ends the program by its
 * watchdog.
 *
 * Seen to fail: without the first grace period in finish, and with schedule's look at the engine's
 * life outside its section (schedule, first and start lose timeouts); with a first schedule that
 * waits until the worker runs (first hangs); with a stop that makes STOPPED of STARTING (start loses
 * timeouts); with cancels that push while the engine is swept (cancel crashes).
 */
#include "race.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

enum { SCHEDULES = 256, TIMEOUTS = 8192 };

enum mode { MODE_SCHEDULE, MODE_FIRST, MODE_START, MODE_CANCEL };

struct timeout {
	_Atomic uint32_t ends;
	bool accepted;
	struct tw_handle handle;
};

struct span {
	int64_t begin_ns;
	int64_t end_ns;
};

static struct {
	enum mode mode;
	uint64_t rounds;
	uint64_t seed;
	struct race_line line;
	_Atomic uint64_t off; /* the round that the producer has begun */
	struct tw_engine *engine;
	struct timeout timeout[TIMEOUTS];
	uint32_t timeout_count;
	uint32_t round_cancelled; /* by the thread that runs against stop */
	struct span producer, stopper;
	struct tw_stats stats; /* when stop had returned */
	int64_t wait;          /* spins of the stopper, which keep the two at once */
	_Atomic bool stop_returned;
	_Atomic uint64_t after_stop;
	uint64_t hits, accepted, refused, expired, cancelled, handed_back;
} test;

static void timeout_end(void *arg)
{
	struct timeout *timeout = arg;

	atomic_fetch_add_explicit(&timeout->ends, 1, memory_order_relaxed);
	if (atomic_load_explicit(&test.stop_returned, memory_order_acquire))
		atomic_fetch_add_explicit(&test.after_stop, 1, memory_order_relaxed);
}

static void on_expire(struct tw_handle handle, void *arg)
{
	(void)handle;
	timeout_end(arg);
}

static void on_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	timeout_end(arg);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* Now and then a thread cannot be made; now and then it takes its time. */
static int thread_hook(void *context, void *(*body)(void *), void *arg)
{
	static _Thread_local uint64_t random = 88172645463325252u;
	pthread_t thread;
	int error;

	(void)context;
	if (race_random(&random) % 8 == 0)
		return EAGAIN;
	for (uint64_t yields = race_random(&random) % 4; yields > 0; yields--)
		sched_yield();
	error = pthread_create(&thread, NULL, body, arg);
	return error != 0 ? error : pthread_detach(thread);
}

/* In MODE_CANCEL the round's timeouts are in the wheel when it begins. */
static void wheel_fill(void)
{
	test.timeout_count = TIMEOUTS;
	for (uint32_t i = 0; i < TIMEOUTS; i++) {
		struct timeout *timeout = &test.timeout[i];

		RACE_CHECK(tw_schedule(test.engine, TW_NEVER, &kind, timeout, &timeout->handle) ==
			   0);
		timeout->accepted = true;
	}
	RACE_CHECK(tw_engine_settle(test.engine, TW_NEVER) == 0);
}

static void cancel_all(void)
{
	for (uint32_t i = 0; i < TIMEOUTS; i++) {
		int outcome = tw_cancel(test.timeout[i].handle);

		RACE_CHECK(outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_CANCELLED ||
			   outcome == TW_CANCEL_STALE);
		if (outcome != TW_CANCEL_DONE)
			continue;
		atomic_fetch_add_explicit(&test.timeout[i].ends, 1, memory_order_relaxed);
		test.round_cancelled++;
	}
}

static void produce(uint64_t *random)
{
	uint32_t count = test.mode == MODE_SCHEDULE ? SCHEDULES : 1 + test.mode;

	test.timeout_count = count;
	for (uint32_t i = 0; i < count; i++) {
		int64_t delay_ns = (int64_t)(race_random(random) % 20000);
		int result;

		if (test.mode == MODE_START && i == 0)
			result = tw_engine_start(test.engine);
		result = tw_schedule(test.engine, delay_ns, &kind, &test.timeout[i], NULL);
		RACE_CHECK(result == 0 || result == -ESHUTDOWN || result == -ENOMEM);
		test.timeout[i].accepted = result == 0;
	}
}

static void *producer_main(void *argument)
{
	uint64_t random = test.seed * 2 + 1;

	(void)argument;
	for (uint64_t round = 1; round <= test.rounds; round++) {
		race_line_wait(&test.line, 2 * round - 1);
		atomic_store_explicit(&test.off, round, memory_order_release);
		test.producer.begin_ns = race_now_ns();
		if (test.mode == MODE_CANCEL)
			cancel_all();
		else
			produce(&random);
		test.producer.end_ns = race_now_ns();
		race_line_wait(&test.line, 2 * round);
	}
	return NULL;
}

static void engine_make(void)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = 1000;
	options.slots = 16;
	options.transfer_batch = 64;
	if (test.mode == MODE_START)
		options.thread = thread_hook;
	RACE_CHECK(tw_engine_create(&options, &test.engine) == 0);
	memset(test.timeout, 0, test.timeout_count * sizeof test.timeout[0]);
	test.round_cancelled = 0;
	atomic_store_explicit(&test.stop_returned, false, memory_order_release);
	if (test.mode == MODE_CANCEL)
		wheel_fill();
}

/* Spins around the wait that the rounds before have shown to meet the producer. */
static void stop_now(uint64_t round, uint64_t *random)
{
	uint32_t polls = 0;
	int64_t spins = test.wait + (int64_t)(race_random(random) % 512) - 256;

	while (atomic_load_explicit(&test.off, memory_order_acquire) < round) {
		if (++polls % 1024 == 0)
			sched_yield();
	}
	for (volatile int64_t left = spins; left > 0; left--)
		;
	test.stopper.begin_ns = race_now_ns();
	RACE_CHECK(tw_engine_stop(test.engine, on_hand_back, NULL, TW_NEVER) == 0);
	atomic_store_explicit(&test.stop_returned, true, memory_order_release);
	test.stopper.end_ns = race_now_ns();
	/* Handles stay safe: in MODE_CANCEL the other thread still uses its own. */
	test.stats = (struct tw_stats){.size = sizeof test.stats};
	RACE_CHECK(tw_stats_get(test.engine, &test.stats) == 0);
	if (test.mode == MODE_CANCEL)
		RACE_CHECK(tw_engine_destroy(test.engine) == 0);
}

static void round_account(void)
{
	const struct tw_stats *stats = &test.stats;

	for (uint32_t i = 0; i < test.timeout_count; i++) {
		RACE_CHECK(atomic_load_explicit(&test.timeout[i].ends, memory_order_relaxed) ==
			   test.timeout[i].accepted);
		test.accepted += test.timeout[i].accepted;
		test.refused += !test.timeout[i].accepted;
	}
	RACE_CHECK(stats->cancelled == test.round_cancelled);
	RACE_CHECK(stats->scheduled == stats->expired + stats->cancelled + stats->handed_back);
	RACE_CHECK(stats->pending == 0);
	test.expired += stats->expired;
	test.cancelled += stats->cancelled;
	test.handed_back += stats->handed_back;
	if (test.mode != MODE_CANCEL)
		RACE_CHECK(tw_engine_destroy(test.engine) == 0);
}

/*
 * A hit: both at once, and stop met what the mode is about, an engine that had begun, or a cancel in
 * the middle of many. The rounds before say whether the stopper should wait longer, or less.
 */
static void hit_account(void)
{
	const struct tw_stats *stats = &test.stats;
	bool too_early = test.mode == MODE_CANCEL ? stats->cancelled == 0 : stats->scheduled == 0;
	bool too_late = test.mode == MODE_CANCEL ? stats->handed_back == 0
						 : test.producer.end_ns <= test.stopper.begin_ns;

	test.hits += !too_early && !too_late;
	if (too_early)
		test.wait += 128;
	else
		test.wait -= 64;
	if (test.wait < 0 || test.wait > 10000000)
		test.wait = 0;
}

static void rounds_run(void)
{
	uint64_t random = test.seed * 2 + 3;

	for (uint64_t round = 1; round <= test.rounds; round++) {
		engine_make();
		race_line_wait(&test.line, 2 * round - 1);
		stop_now(round, &random);
		race_line_wait(&test.line, 2 * round);
		round_account();
		hit_account();
	}
}

static enum mode mode_of(const char *name)
{
	if (strcmp(name, "cancel") == 0)
		return MODE_CANCEL;
	if (strcmp(name, "first") == 0)
		return MODE_FIRST;
	return strcmp(name, "start") == 0 ? MODE_START : MODE_SCHEDULE;
}

int main(int argc, char **argv)
{
	pthread_t producer;

	test.mode = mode_of(argc > 1 ? argv[1] : "schedule");
	test.rounds = race_size(argc, argv, 2, 2000);
	test.seed = race_argument(argc, argv, 3, 1);
	test.line.threads = 2;
	race_watchdog(30 + (unsigned)(test.rounds / 100));
	RACE_CHECK(pthread_create(&producer, NULL, producer_main, NULL) == 0);
	rounds_run();
	RACE_CHECK(pthread_join(producer, NULL) == 0);
	printf("%lu rounds, the race window was hit in %lu; accepted %lu = expired %lu + cancelled "
	       "%lu + "
	       "handed back %lu; refused %lu; lost 0, hung 0, callbacks after stop %lu\n",
	       (unsigned long)test.rounds, (unsigned long)test.hits, (unsigned long)test.accepted,
	       (unsigned long)test.expired, (unsigned long)test.cancelled,
	       (unsigned long)test.handed_back, (unsigned long)test.refused,
	       (unsigned long)test.after_stop);
	RACE_CHECK(test.after_stop == 0);
	RACE_CHECK(test.accepted == test.expired + test.cancelled + test.handed_back);
	/* Short runs may end before the stopper has found its time. */
	RACE_CHECK(test.rounds < 1000 || test.hits >= test.rounds / 100);
	return 0;
}
