/* SPDX-License-Identifier: MIT */
/*
 * Races cancels of periodic timeouts (chains) against their runs, and against stop. usage:
 * race_periodic [operations] [seed] [executors] [wheel: 0 hashed, 1 hierarchical] [seconds]. Ends
 * after this many operations or seconds (0: no bound).
 *
 * In each round an engine gets chains with periods of a few ticks and of any rule. Two threads
 * cancel them, wait for them and reschedule them, and sometimes a chain cancels itself in its
 * callback. The chains run on the worker or on `executors` threads, which reject some.
 * Meanwhile the engine is stopped. The two threads also have one-shot timeouts. So the same block
 * is a node at one time and a chain's extra block at another, and stale entries of the rings name
 * both.
 *
 * Allowed outcomes: each accepted chain ends exactly once. Its finaliser runs once, with the end
 * that was reported: CANCELLED if one cancel returned "done" or "stopped", UNEXPIRED if stop's
 * hook got it, EXPIRED if it has run as often as asked. No two runs of a chain overlap. No run
 * begins after the finaliser, nor after a cancel that returned "done". When a wait returns, the
 * finaliser has run.
 *
 * Seen to fail with these defects:
 * - the end of a run overlooks a cancel;
 * - again_here() ends a run by a load and a store, which loses a cancel;
 * - twi_worker_finish() does not empty the queues again after the wait for executors, so that
 *   chains never end;
 * - again_far() pushes a chain without the queued bit, so that it is freed twice.
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { LIVES = 2048, AHEAD = 128, TICK_NS = 10000, EXECUTORS_MAX = 4 };

/* A chain, from its schedule to its end. Each round uses new ones. */
struct life {
	struct tw_handle handle;
	_Atomic bool ready; /* whether the handle is written and the chain was accepted */
	_Atomic bool running;
	_Atomic uint32_t runs;
	_Atomic uint32_t told; /* how many cancels reported that they ended it */
	_Atomic bool done;     /* whether a cancel reported done before a run could begin */
	_Atomic uint32_t unexpired;
	_Atomic uint32_t finalised;
	_Atomic uint32_t end;
	uint64_t most; /* how many runs it may have; 0: no limit */
};

static struct tw_engine *engine;
static struct life lives[LIVES];
static _Atomic uint32_t lives_begun;
static _Atomic bool round_over;
static _Atomic uint64_t operations;
/* Counts of one-shot timeouts. */
static _Atomic uint64_t once_accepted, once_cancelled, once_ran, once_back;
static uint64_t accepted, told_done, told_stopped, expired, unexpired, runs_begun;
static uint64_t executor_count, wheel;

static void operation(void)
{
	atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static void told(struct life *life, int outcome, bool waited)
{
	operation();
	switch (outcome) {
	case TW_CANCEL_DONE:
		atomic_fetch_add(&life->told, 1);
		atomic_store(&life->done, true);
		RACE_CHECK(atomic_load(&life->finalised) == 1 && !atomic_load(&life->running));
		break;
	case TW_CANCEL_STOPPED:
		RACE_CHECK(!waited);
		atomic_fetch_add(&life->told, 1);
		break;
	case -ETIMEDOUT:
		/*
		 * This cancel or an earlier one has stopped the chain. The result does not say
		 * which of them, so this cancel is not counted; life_account() permits that.
		 */
		break;
	default:
		RACE_CHECK(outcome == TW_CANCEL_CANCELLED || outcome == TW_CANCEL_EXPIRED ||
			   outcome == TW_CANCEL_STALE || (outcome == TW_CANCEL_RUNNING && !waited));
	}
}

static void on_run(struct tw_handle self, void *arg)
{
	struct life *life = arg;
	uint64_t random = race_chance();

	operation();
	RACE_CHECK(!atomic_exchange(&life->running, true));
	RACE_CHECK(atomic_load(&life->finalised) == 0 && !atomic_load(&life->done));
	atomic_fetch_add(&life->runs, 1);
	if (random % 16 == 0)
		RACE_CHECK(tw_period_next(self, (int64_t)(random >> 20 & 0x7fff)) == 0);
	if (random % 64 == 1) {
		int outcome = tw_cancel_wait(self, TW_NEVER);

		RACE_CHECK(outcome == TW_CANCEL_STOPPED || outcome == TW_CANCEL_RUNNING);
		if (outcome == TW_CANCEL_STOPPED)
			atomic_fetch_add(&life->told, 1);
	}
	atomic_store(&life->running, false);
}

static void on_end(void *arg, enum tw_end end)
{
	struct life *life = arg;

	RACE_CHECK(!atomic_load(&life->running));
	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->finalised, 1) == 0);
}

static const struct tw_kind kind = TW_KIND(on_run, on_end);

static void on_once(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((_Atomic uint64_t *)arg, 1);
}

static const struct tw_kind once_kind = TW_KIND(on_once, NULL);

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	struct life *life = arg;

	(void)context;
	(void)handle;
	(void)remaining_ns;
	if (its_kind == &once_kind) {
		RACE_CHECK(arg == &once_ran);
		atomic_fetch_add(&once_back, 1);
		return;
	}
	RACE_CHECK(its_kind == &kind && !atomic_load(&life->running));
	atomic_fetch_add(&life->unexpired, 1);
}

static struct tw_period any_period(void)
{
	uint64_t random = race_chance();
	struct tw_period period = TW_PERIOD_RATE((int64_t)(random % 40000) + 1);

	period.first_ns = (int64_t)(random >> 16 & 0x7fff);
	period.mode = random >> 32 & 1;
	period.missed = (uint32_t)(random >> 33 & 0xff) % 3;
	period.jitter_ppm = (random >> 41 & 3) == 0 ? 500000 : 0;
	period.runs = (random >> 43 & 7) == 0 ? 1 + (random >> 46 & 3) : 0;
	return period;
}

/* Returns false if the engine is closed, or the round has enough chains. */
static bool life_begin(void)
{
	uint32_t at = atomic_load(&lives_begun);
	struct tw_period period = any_period();
	struct life *life;
	int result;

	if (at == LIVES)
		return false;
	life = &lives[at];
	life->most = period.runs;
	result = tw_schedule_periodic(engine, &period, &kind, life, &life->handle);
	RACE_CHECK(result == 0 || result == -ESHUTDOWN);
	if (result != 0)
		return false;
	accepted++;
	operation();
	atomic_store(&life->ready, true);
	atomic_store(&lives_begun, at + 1);
	return true;
}

/* Schedules chains. Waits in between, so that this thread does not run far ahead of the cancels. */
static void *scheduler_main(void *argument)
{
	_Atomic uint32_t *ended = argument;

	while (!atomic_load(&round_over)) {
		if (atomic_load(&lives_begun) > atomic_load(ended) + AHEAD)
			(void)sched_yield();
		else if (!life_begin())
			break;
	}
	return NULL;
}

static void one_cancel(struct life *life)
{
	bool waits = race_chance() % 4 == 0;
	int outcome = waits ? tw_cancel_wait(life->handle, race_chance() % 2 == 0 ? TW_NEVER : 0)
			    : tw_cancel(life->handle);

	told(life, outcome, waits);
}

/*
 * Cancels the old timeout unless it has ended, and schedules another one, at once or some calls
 * later.
 */
static void one_shot(struct tw_handle *handle)
{
	int result = handle->node != NULL ? tw_cancel(*handle) : TW_CANCEL_STALE;

	operation();
	RACE_CHECK(result >= 0);
	if (result == TW_CANCEL_DONE)
		atomic_fetch_add(&once_cancelled, 1);
	handle->node = NULL;
	result = tw_schedule(engine, (int64_t)(race_chance() % 100000), &once_kind, &once_ran,
			     handle);
	RACE_CHECK(result == 0 || result == -ESHUTDOWN);
	if (result == 0)
		atomic_fetch_add(&once_accepted, 1);
}

static void *canceller_main(void *argument)
{
	_Atomic uint32_t *ended = argument;
	struct tw_handle once[8] = {{0}};

	while (!atomic_load(&round_over)) {
		uint32_t begun = atomic_load(&lives_begun);
		struct life *life;

		if (begun == 0)
			continue;
		/* Mostly takes a recent chain. */
		life = &lives[begun - 1 - race_chance() % (begun < 2 * AHEAD ? begun : 2 * AHEAD)];
		if (race_chance() % 8 == 0) {
			int moved = tw_reschedule(life->handle, (int64_t)(race_chance() % 50000));

			operation();
			RACE_CHECK(moved >= 0 || moved == -ESTALE);
		} else if (race_chance() % 2 == 0) {
			uint64_t pairs = 1 + race_chance() % 4;
			uint64_t at = race_chance() % 8;

			while (pairs-- > 0)
				one_shot(&once[at]);
		} else if (race_chance() % 4 == 0) {
			one_cancel(life);
			atomic_fetch_add(ended, 1);
		} else {
			(void)sched_yield();
		}
	}
	return NULL;
}

static size_t dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = race_chance() % 8 == 0 ? count / 2 : count;

	(void)context;
	accept = dues_put(due, accept);
	return accept;
}

static void life_account(struct life *life)
{
	uint32_t ends_told = atomic_load(&life->told);
	uint32_t back = atomic_load(&life->unexpired);
	uint32_t end = atomic_load(&life->end);

	RACE_CHECK(atomic_load(&life->finalised) == 1);
	RACE_CHECK(back == (end == TW_END_UNEXPIRED));
	runs_begun += atomic_load(&life->runs);
	switch (end) {
	case TW_END_CANCELLED:
		RACE_CHECK(ends_told <= 1);
		/* A cancel whose wait timed out has stopped the chain, but is not in `told`. */
		told_stopped += 1 - ends_told;
		told_done += ends_told;
		break;
	case TW_END_UNEXPIRED:
		RACE_CHECK(ends_told == 0);
		unexpired++;
		break;
	default:
		RACE_CHECK(ends_told == 0 && life->most == atomic_load(&life->runs));
		expired++;
	}
}

static void engine_make(void)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.wheel = wheel == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_FULL;
	options.dispatch = executor_count > 0 ? dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

/* The sums up to now, of chains and one-shot timeouts together. */
struct books {
	uint64_t accepted, cancelled, expired, unexpired;
};

static struct books books_now(void)
{
	return (struct books){
		.accepted = accepted + atomic_load(&once_accepted),
		.cancelled = told_done + told_stopped + atomic_load(&once_cancelled),
		.expired = expired + atomic_load(&once_ran),
		.unexpired = unexpired + atomic_load(&once_back),
	};
}

static uint64_t books_lost(const struct books *books)
{
	return books->accepted - books->expired - books->cancelled - books->unexpired;
}

static void books_check(const struct books *before)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct books now = books_now();

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.scheduled == now.accepted - before->accepted);
	RACE_CHECK(stats.cancelled == now.cancelled - before->cancelled);
	RACE_CHECK(stats.expired == now.expired - before->expired);
	RACE_CHECK(stats.unexpired == now.unexpired - before->unexpired);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	RACE_CHECK(books_lost(&now) == 0);
}

static void round_run(uint64_t *random)
{
	struct books before = books_now();
	pthread_t thread[3], executor[EXECUTORS_MAX];
	_Atomic uint32_t ended = 0;
	uint64_t until = atomic_load(&operations) + 500 + race_random(random) % 20000;
	uint32_t begun;

	memset(lives, 0, sizeof lives);
	atomic_store(&lives_begun, 0);
	atomic_store(&round_over, false);
	dues_open();
	engine_make();
	for (uint64_t i = 0; i < executor_count; i++)
		RACE_CHECK(pthread_create(&executor[i], NULL, dues_main, NULL) == 0);
	for (int i = 0; i < 3; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL,
					  i == 0 ? scheduler_main : canceller_main, &ended) == 0);
	while (atomic_load(&operations) < until && atomic_load(&lives_begun) < LIVES)
		(void)sched_yield();
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	atomic_store(&round_over, true);
	dues_close();
	race_join(thread, 3);
	race_join(executor, executor_count);
	begun = atomic_load(&lives_begun);
	for (uint32_t at = 0; at < begun; at++)
		life_account(&lives[at]);
	books_check(&before);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static bool all_seen(void)
{
	return once_cancelled > 0 && once_ran > 0 && once_back > 0 && expired > 0 &&
	       told_done > 0 && unexpired > 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds;
	struct books books;

	executor_count = race_argument(argc, argv, 3, 0);
	RACE_CHECK(executor_count <= EXECUTORS_MAX);
	wheel = race_argument(argc, argv, 4, 0);
	rounds = race_rounds(argc, argv, 5, &operations, round_run, all_seen);
	books = books_now();
	printf("operations %" PRIu64 ", rounds %" PRIu64 ", runs %" PRIu64 "; chains %" PRIu64
	       " = expired %" PRIu64 " + cancelled %" PRIu64
	       " + stopped by a wait that ended %" PRIu64 " + handed back %" PRIu64
	       "; one-shot timeouts %" PRIu64 "; lost %" PRIu64 "\n",
	       atomic_load(&operations), rounds, runs_begun, accepted, expired, told_done,
	       told_stopped, unexpired, atomic_load(&once_accepted), books_lost(&books));
	RACE_CHECK(books_lost(&books) == 0);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
