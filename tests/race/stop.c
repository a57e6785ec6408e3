/* SPDX-License-Identifier: MIT */
/*
 * Races of stop, with one engine per round. usage: race_stop
 * [schedule|first|start|cancel|schedule_many|cancel_many] [threads] [seconds] [seed] [rounds]. Ends
 * after this many seconds (0: no bound) or rounds (0: no bound).
 *
 *   schedule  threads schedule at full speed while another stops (defect B1: lost timeouts)
 *   first     the schedules that start the engine race with stop (B2: callers hang)
 *   start     stop meets start, and the thread hook fails or is slow (B3: callbacks after stop)
 *   cancel    threads cancel timeouts in the wheel while another stops, and destroys
 *   *_many    schedule and cancel, in batches
 * B1 to B3 are defects of the list in docs/internals/testing.md.
 *
 * Allowed outcomes, per round: a schedule returned 0, and its timeout has expired or been handed
 * back exactly once when stop returns. Or the schedule returned -ESHUTDOWN (or -ENOMEM if the
 * thread hook failed), and the timeout never ends. No callback begins after stop has returned.
 * Arguments are cells (cell.h), which are poisoned at their end and used again in later rounds. If
 * a round hangs, the watchdog ends the program.
 *
 * Seen to fail with these defects:
 * - twi_worker_finish() does not wait for its first grace period, or schedule loads the engine's
 *   state outside its critical section (schedule, first and start lose timeouts);
 * - the first schedule waits until the worker runs (first hangs);
 * - a batch is outside a critical section (schedule_many loses timeouts);
 * - stop changes STARTING to STOPPED (start loses timeouts);
 * - the worker's first step of the state is a load and a store (start hangs).
 *
 * If cancels push while the engine is swept, this program fails only sometimes; freeze/grace fails
 * each time.
 */
#include "cell.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

enum {
	SCHEDULES = 256,
	TIMEOUTS = 8192,
	BATCH = 64,
	/* If time and rounds have no bound, this ends a round that hangs. */
	WATCHDOG_S = 600,
};

enum mode { MODE_SCHEDULE, MODE_FIRST, MODE_START, MODE_CANCEL };

struct producer {
	pthread_t thread;
	uint64_t random;
	struct cells cells;
	/* the accepted timeouts of this round */
	struct cell *taken[TIMEOUTS];
	struct tw_handle handle[TIMEOUTS];
	uint32_t taken_count;
	uint32_t cancelled_count;
	uint32_t rejected_count;
	int64_t end_ns;
};

static struct {
	enum mode mode;
	bool many;       /* whether the calls are batches */
	uint64_t rounds; /* the most rounds; 0: no bound */
	int64_t until_ns;
	uint64_t threads;
	struct producer *producer;
	struct race_line line;
	_Atomic uint64_t off; /* the last round that a producer has begun */
	_Atomic bool over;
	struct tw_engine *engine;
	int64_t stop_ns;       /* the time at which stop began */
	int met;               /* the engine's state when stop began */
	struct tw_stats stats; /* the counters after stop returned */
	/* how long the stopper spins before it stops, so that stop meets the producers */
	int64_t wait;
	_Atomic bool stop_returned;
	_Atomic uint64_t after_stop;
	uint64_t played, hits, accepted, rejected, expired, cancelled, unexpired;
	uint64_t ended; /* how many cells have ended, as counted by their owners */
} test;

static void timeout_end(void *arg, enum tw_end how)
{
	if (atomic_load_explicit(&test.stop_returned, memory_order_acquire))
		atomic_fetch_add_explicit(&test.after_stop, 1, memory_order_relaxed);
	cell_end(arg, how);
}

static void on_expire(struct tw_handle handle, void *arg)
{
	(void)handle;
	timeout_end(arg, TW_END_EXPIRED);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	timeout_end(arg, TW_END_UNEXPIRED);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* Creates a thread for the library. Sometimes fails, and sometimes delays the thread. */
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

static int schedule_one(struct producer *producer, int64_t delay_ns)
{
	struct cell *cell = cell_take(&producer->cells, false);
	int result;

	RACE_CHECK(cell != NULL);
	result = tw_schedule(test.engine, delay_ns, &kind, cell,
			     &producer->handle[producer->taken_count]);
	if (result == 0) {
		producer->taken[producer->taken_count++] = cell;
		return 0;
	}
	RACE_CHECK(result == -ESHUTDOWN || result == -ENOMEM);
	cell_give_back(cell);
	producer->rejected_count++;
	return result;
}

/*
 * Sometimes yields. If the machine is busy, or has one CPU, this lets the other threads run in
 * between.
 */
static void yield_sometimes(struct producer *producer, uint64_t in)
{
	if (race_random(&producer->random) % in == 0)
		sched_yield();
}

/* Schedules one batch of `count` timeouts. */
static void schedule_batch(struct producer *producer, uint32_t count)
{
	struct tw_handle *handles = &producer->handle[producer->taken_count];
	struct cell **cells = &producer->taken[producer->taken_count];
	struct tw_item items[BATCH];
	int errors[BATCH];
	uint32_t accepted = 0;

	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct tw_item){(int64_t)(race_random(&producer->random) % 20000),
					    &kind, cell_take(&producer->cells, false)};
	RACE_CHECK(tw_schedule_many(test.engine, items, count, handles, errors) >= 0);
	/* If one item is rejected, all items after it must be rejected too. */
	while (accepted < count && errors[accepted] == 0) {
		cells[accepted] = items[accepted].arg;
		accepted++;
	}
	for (uint32_t i = accepted; i < count; i++) {
		RACE_CHECK(errors[i] == -ESHUTDOWN);
		cell_give_back(items[i].arg);
	}
	producer->taken_count += accepted;
	producer->rejected_count += count - accepted;
}

static void produce_many(struct producer *producer)
{
	for (uint32_t left = SCHEDULES; left > 0;) {
		uint32_t count = 1 + (uint32_t)(race_random(&producer->random) % BATCH);

		if (count > left)
			count = left;
		yield_sometimes(producer, 8);
		schedule_batch(producer, count);
		left -= count;
	}
}

/* Fills the wheel. In MODE_CANCEL the timeouts must be in the wheel when the round begins. */
static void wheel_fill(void)
{
	for (uint64_t i = 0; i < TIMEOUTS; i++)
		RACE_CHECK(schedule_one(&test.producer[i % test.threads], TW_NEVER) == 0);
	RACE_CHECK(tw_engine_flush(test.engine, TW_NEVER) == 0);
}

static void cancelled(struct producer *producer, uint32_t number, int outcome)
{
	RACE_CHECK(outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_CANCELLED ||
		   outcome == TW_CANCEL_STALE);
	if (outcome != TW_CANCEL_DONE)
		return;
	cell_end(producer->taken[number], TW_END_CANCELLED);
	producer->cancelled_count++;
}

static void cancel_all(struct producer *producer)
{
	for (uint32_t i = 0; i < producer->taken_count; i++) {
		int outcome = tw_cancel(producer->handle[i]);

		yield_sometimes(producer, 1024);
		cancelled(producer, i, outcome);
	}
}

static void cancel_all_many(struct producer *producer)
{
	int outcomes[BATCH];

	for (uint32_t at = 0; at < producer->taken_count;) {
		uint32_t left = producer->taken_count - at;
		uint32_t count = 1 + (uint32_t)(race_random(&producer->random) % BATCH);

		if (count > left)
			count = left;
		yield_sometimes(producer, 1024 / BATCH);
		RACE_CHECK(tw_cancel_many(&producer->handle[at], count, outcomes) >= 0);
		for (uint32_t i = 0; i < count; i++)
			cancelled(producer, at + i, outcomes[i]);
		at += count;
	}
}

static void produce(struct producer *producer)
{
	uint32_t count = test.mode == MODE_SCHEDULE ? SCHEDULES : 1 + test.mode;

	if (test.mode == MODE_START)
		(void)tw_engine_start(test.engine);
	for (uint32_t i = 0; i < count; i++) {
		yield_sometimes(producer, 8);
		(void)schedule_one(producer, (int64_t)(race_random(&producer->random) % 20000));
	}
}

static void produce_or_cancel(struct producer *producer)
{
	if (test.mode == MODE_CANCEL && test.many)
		cancel_all_many(producer);
	else if (test.mode == MODE_CANCEL)
		cancel_all(producer);
	else if (test.many)
		produce_many(producer);
	else
		produce(producer);
}

static void *producer_main(void *argument)
{
	struct producer *producer = argument;

	for (uint64_t round = 1;; round++) {
		race_line_wait(&test.line, 2 * round - 1);
		if (atomic_load_explicit(&test.over, memory_order_relaxed))
			return NULL;
		atomic_store_explicit(&test.off, round, memory_order_release);
		produce_or_cancel(producer);
		producer->end_ns = race_now_ns();
		race_line_wait(&test.line, 2 * round);
	}
}

static void engine_run(void)
{
	RACE_CHECK(tw_engine_start(test.engine) == 0);
	while (tw_engine_state(test.engine) != TW_ENGINE_RUNNING)
		sched_yield();
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
	for (uint64_t i = 0; i < test.threads; i++) {
		test.producer[i].taken_count = 0;
		test.producer[i].cancelled_count = 0;
		test.producer[i].rejected_count = 0;
	}
	atomic_store_explicit(&test.stop_returned, false, memory_order_release);
	if (test.mode == MODE_CANCEL)
		wheel_fill();
	/* In MODE_SCHEDULE, starts every second engine now. The first schedule starts the others. */
	if (test.mode == MODE_SCHEDULE && test.played % 2 == 0)
		engine_run();
}

/*
 * Stops the engine. Before that, spins for as long as was needed in earlier rounds to meet the
 * producers.
 */
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
	test.stop_ns = race_now_ns();
	test.met = tw_engine_state(test.engine);
	RACE_CHECK(tw_engine_stop(test.engine, on_unexpired, NULL, TW_NEVER) == 0);
	atomic_store_explicit(&test.stop_returned, true, memory_order_release);
	/*
	 * The counters must be read before destroy. Handles stay safe after it: in MODE_CANCEL the
	 * other threads still use theirs.
	 */
	test.stats = (struct tw_stats){.size = sizeof test.stats};
	RACE_CHECK(tw_stats_get(test.engine, &test.stats) == 0);
	if (test.mode == MODE_CANCEL)
		RACE_CHECK(tw_engine_destroy(test.engine) == 0);
}

/* Checks the cells: each accepted timeout has ended. Checks that the engine's counts agree. */
static void round_account(void)
{
	const struct tw_stats *stats = &test.stats;
	uint64_t accepted = 0, cancelled = 0;

	for (uint64_t i = 0; i < test.threads; i++) {
		struct producer *producer = &test.producer[i];

		for (uint32_t k = 0; k < producer->taken_count; k++)
			RACE_CHECK(producer->taken[k]->free);
		accepted += producer->taken_count;
		cancelled += producer->cancelled_count;
		test.rejected += producer->rejected_count;
	}
	RACE_CHECK(stats->scheduled == accepted && stats->cancelled == cancelled);
	RACE_CHECK(stats->scheduled == stats->expired + stats->cancelled + stats->unexpired);
	RACE_CHECK(stats->pending == 0);
	test.accepted += accepted;
	test.expired += stats->expired;
	test.cancelled += stats->cancelled;
	test.unexpired += stats->unexpired;
	if (test.mode != MODE_CANCEL)
		RACE_CHECK(tw_engine_destroy(test.engine) == 0);
}

/* Returns whether the producers' calls and stop overlapped. */
static bool overlapped(void)
{
	for (uint64_t i = 0; i < test.threads; i++) {
		if (test.producer[i].end_ns > test.stop_ns)
			return true;
	}
	return false;
}

/* Whether stop came before, during, or after the producers' calls. */
enum meeting { TOO_EARLY, HIT, TOO_LATE };

static enum meeting meeting_of_round(void)
{
	const struct tw_stats *stats = &test.stats;

	switch (test.mode) {
	case MODE_CANCEL:
		if (stats->cancelled == 0)
			return TOO_EARLY;
		return stats->unexpired > 0 ? HIT : TOO_LATE;
	case MODE_SCHEDULE:
		if (stats->scheduled == 0)
			return TOO_EARLY;
		return overlapped() ? HIT : TOO_LATE;
	default:
		/*
		 * The stop has met the start if it came while the engine's thread was being created
		 * or had not begun.
		 */
		if (test.met == TW_ENGINE_NEW)
			return TOO_EARLY;
		return test.met == TW_ENGINE_STARTING ? HIT : TOO_LATE;
	}
}

/* Adjusts how long the stopper spins by the outcome of this round. */
static void hit_account(void)
{
	enum meeting meeting = meeting_of_round();

	test.hits += meeting == HIT;
	if (meeting == TOO_EARLY)
		test.wait += 128;
	else
		test.wait -= 64;
	if (test.wait < 0 || test.wait > 10000000)
		test.wait = 0;
}

static bool more_rounds(void)
{
	return (test.rounds == 0 || test.played < test.rounds) &&
	       (test.until_ns == 0 || race_now_ns() < test.until_ns);
}

static void rounds_run(uint64_t seed)
{
	uint64_t random = seed * 2 + 3;
	uint64_t round;

	while (more_rounds()) {
		round = ++test.played;
		engine_make();
		race_line_wait(&test.line, 2 * round - 1);
		stop_now(round, &random);
		race_line_wait(&test.line, 2 * round);
		round_account();
		hit_account();
	}
	atomic_store_explicit(&test.over, true, memory_order_relaxed);
	race_line_wait(&test.line, 2 * test.played + 1);
}

static enum mode mode_of(const char *name)
{
	if (strncmp(name, "cancel", strlen("cancel")) == 0)
		return MODE_CANCEL;
	if (strcmp(name, "first") == 0)
		return MODE_FIRST;
	return strcmp(name, "start") == 0 ? MODE_START : MODE_SCHEDULE;
}

static void producers_start(uint64_t seed)
{
	test.producer = calloc(test.threads, sizeof *test.producer);
	RACE_CHECK(test.producer != NULL);
	for (uint64_t i = 0; i < test.threads; i++) {
		struct producer *producer = &test.producer[i];

		producer->random = (seed + i) * 2 + 1;
		cells_init(&producer->cells, test.mode == MODE_CANCEL ? TIMEOUTS : SCHEDULES);
		RACE_CHECK(pthread_create(&producer->thread, NULL, producer_main, producer) == 0);
	}
}

static void producers_end(void)
{
	for (uint64_t i = 0; i < test.threads; i++) {
		RACE_CHECK(pthread_join(test.producer[i].thread, NULL) == 0);
		test.ended += test.producer[i].cells.ended;
		cells_check(&test.producer[i].cells, test.producer[i].cells.ended);
		cells_release(&test.producer[i].cells);
	}
	free(test.producer);
}

static void result_print(void)
{
	printf("operations %" PRIu64 "; rounds %" PRIu64 ", the race window was hit in %" PRIu64
	       "; accepted %" PRIu64 " = expired %" PRIu64 " + cancelled %" PRIu64
	       " + handed back %" PRIu64 "; rejected %" PRIu64 "; callbacks after stop %" PRIu64
	       "; lost %" PRId64 "\n",
	       test.accepted + test.cancelled + test.rejected + 2 * test.played, test.played,
	       test.hits, test.accepted, test.expired, test.cancelled, test.unexpired,
	       test.rejected, test.after_stop, (int64_t)(test.accepted - test.ended));
}

int main(int argc, char **argv)
{
	uint64_t seconds = race_argument(argc, argv, 3, 1);
	uint64_t seed = race_argument(argc, argv, 4, 1);

	test.mode = mode_of(argc > 1 ? argv[1] : "schedule");
	test.many = argc > 1 && strstr(argv[1], "_many") != NULL;
	test.threads = race_argument(argc, argv, 2, 1);
	test.rounds = race_argument(argc, argv, 5, 0);
	test.until_ns = seconds > 0 ? race_now_ns() + (int64_t)seconds * 1000000000 : 0;
	test.line.threads = test.threads + 1;
	race_watchdog(WATCHDOG_S + (unsigned)(seconds + test.rounds / 100));
	producers_start(seed);
	rounds_run(seed);
	producers_end();
	result_print();
	RACE_CHECK(test.after_stop == 0);
	RACE_CHECK(test.accepted == test.ended);
	RACE_CHECK(test.accepted == test.expired + test.cancelled + test.unexpired);
	/*
	 * A short run may end before the stopper has found the right wait, and on a busy machine
	 * the right wait changes. So this requires few hits.
	 */
	RACE_CHECK(test.played < 1000 || test.hits >= test.played / 1000);
	return 0;
}
