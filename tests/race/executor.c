/* SPDX-License-Identifier: MIT */
/*
 * Races executors that reject timeouts against cancel, reschedule and stop. usage: race_executor
 * [operations] [seed] [policy: 0 run, 1 requeue, 2 drop] [seconds]. Ends after this many operations
 * or seconds (0: no bound).
 *
 * In each round an engine gets timeouts of a few ticks. Some of them run only on the worker, and
 * some rounds have a chain of a few runs. Two threads cancel the timeouts, wait for them and
 * reschedule them. Two executors accept only a random part of the timeouts that the worker offers,
 * and run it. Meanwhile the engine is stopped, without a time limit or in several short steps. The
 * engine has a worker thread, or is a loop. A loop is stopped by its owner, or by another thread
 * after the owner has left the loop. Some runs take longer than the threshold for slow runs, and a
 * thread watches for them.
 *
 * Allowed outcomes: each accepted timeout ends exactly once, and its finaliser runs once, with the
 * end that was reported. A dropped timeout did not run. If a cancel reported that it ended a
 * timeout, that timeout never runs afterwards. Each run that measured itself as slow was reported
 * once, with its own timeout.
 *
 * Seen to fail with these defects:
 * - rejected timeouts are forgotten, so they never end and stop waits for ever;
 * - `in_flight` is counted down twice for a rejected timeout;
 * - word_again() makes a timeout pending again by a load and a store;
 * - a rejected timeout runs, and is also pending again;
 * - two threads report the same slow run;
 * - a stop of a loop sets the state STOPPED although its time is up and callbacks are still in
 *   executors (found in about one round of some hundred).
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	LIVES = 4096,
	AHEAD = 256,
	TICK_NS = 10000,
	EXECUTORS = 2,
	SLOW_NS = 200000,
	/* This duration is certainly slow, even if the clock lags behind. */
	LONG_NS = 2 * SLOW_NS,
	RUNS = 3,
};

/* A timeout, from its schedule to its end. Each round uses new ones. */
struct life {
	struct tw_handle handle;
	_Atomic bool ready; /* whether the handle is written and the timeout was accepted */
	_Atomic bool running;
	_Atomic bool done; /* whether a cancel reported done before a run could begin */
	_Atomic uint32_t runs;
	_Atomic uint32_t told; /* how many cancels reported that they ended it */
	_Atomic uint32_t dropped, unexpired, finalised, end;
	_Atomic uint32_t slow_runs; /* how many runs were certainly slow */
	_Atomic uint32_t slow_told;
	bool chain;
};

static struct tw_engine *engine;
static struct life lives[LIVES];
static _Atomic uint32_t lives_begun, lives_ended;
static _Atomic bool round_over;
static _Atomic uint64_t operations, slow_told;
static uint64_t accepted, expired, cancelled, dropped, unexpired, slow_seen, rejected;
static uint64_t stops_out_of_time;
static uint64_t policy;

static void operation(void)
{
	atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static void stand(int64_t ns)
{
	int64_t until_ns = race_now_ns() + ns;

	while (race_now_ns() < until_ns)
		;
}

static void on_run(struct tw_handle self, void *arg)
{
	struct life *life = arg;

	operation();
	RACE_CHECK(!atomic_exchange(&life->running, true));
	RACE_CHECK(atomic_load(&life->finalised) == 0 && !atomic_load(&life->done));
	atomic_fetch_add(&life->runs, 1);
	if (race_chance() % 4096 == 0) {
		stand(LONG_NS);
		atomic_fetch_add(&life->slow_runs, 1);
	}
	if (race_chance() % 256 == 0)
		RACE_CHECK(tw_cancel(self) >= 0);
	atomic_store(&life->running, false);
}

static void on_end(void *arg, enum tw_end end)
{
	struct life *life = arg;

	RACE_CHECK(!atomic_load(&life->running));
	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->finalised, 1) == 0);
	atomic_fetch_add(&lives_ended, 1);
}

static const struct tw_kind kind = TW_KIND(on_run, on_end);
static const struct tw_kind inline_kind = TW_KIND_INLINE(on_run, on_end);

static void on_slow(void *context, const struct tw_slow *slow)
{
	struct life *life = slow->arg;

	(void)context;
	RACE_CHECK(life >= lives && life < lives + LIVES && slow->callback == on_run);
	/* If the schedule has returned, the handle in the report must be the timeout's. */
	if (atomic_load(&life->ready))
		RACE_CHECK(slow->handle.node == life->handle.node &&
			   slow->handle.generation == life->handle.generation);
	RACE_CHECK(slow->run_ns > SLOW_NS);
	atomic_fetch_add(&life->slow_told, 1);
	atomic_fetch_add(&slow_told, 1);
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *its_kind, void *arg)
{
	struct life *life = arg;

	(void)context;
	(void)self;
	operation();
	RACE_CHECK(its_kind == &kind && !atomic_load(&life->done));
	RACE_CHECK(!atomic_load(&life->running) && atomic_load(&life->finalised) == 0);
	atomic_fetch_add(&life->dropped, 1);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	struct life *life = arg;

	(void)context;
	(void)handle;
	(void)its_kind;
	(void)remaining_ns;
	RACE_CHECK(!atomic_load(&life->running));
	atomic_fetch_add(&life->unexpired, 1);
}

static size_t dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = race_chance() % 4 == 0 ? (size_t)(race_chance() % (count + 1)) : count;

	(void)context;
	operation();
	accept = dues_put(due, accept);
	/*
	 * Sometimes cancels inside the hook. A timeout that the worker has offered counts as
	 * running.
	 */
	if (race_chance() % 64 == 0 && accept < count) {
		int outcome = tw_cancel(due[accept].handle);

		RACE_CHECK(outcome == TW_CANCEL_RUNNING || outcome == TW_CANCEL_STOPPED);
		if (outcome == TW_CANCEL_STOPPED)
			atomic_fetch_add(&((struct life *)due[accept].arg)->told, 1);
	}
	return accept;
}

static int any_schedule(struct life *life)
{
	struct tw_period period = TW_PERIOD_RATE(3 * TICK_NS);
	uint64_t random = race_chance();

	life->chain = random % 16 == 0;
	period.first_ns = (int64_t)(random >> 16 & 0xffff);
	period.runs = RUNS;
	if (life->chain)
		return tw_schedule_periodic(engine, &period, &kind, life, &life->handle);
	return tw_schedule(engine, period.first_ns, random % 16 == 1 ? &inline_kind : &kind, life,
			   &life->handle);
}

static void *scheduler_main(void *argument)
{
	(void)argument;
	while (!atomic_load(&round_over)) {
		uint32_t at = atomic_load(&lives_begun);
		int result;

		if (at == LIVES || at > atomic_load(&lives_ended) + AHEAD) {
			(void)sched_yield();
			continue;
		}
		result = any_schedule(&lives[at]);
		RACE_CHECK(result == 0 || result == -ESHUTDOWN);
		if (result != 0)
			break;
		accepted++;
		operation();
		atomic_store(&lives[at].ready, true);
		atomic_store(&lives_begun, at + 1);
	}
	return NULL;
}

static void one_cancel(struct life *life)
{
	bool waits = race_chance() % 4 == 0;
	int outcome =
		waits ? tw_cancel_wait(life->handle, race_chance() % 2 == 0 ? TW_NEVER : TICK_NS)
		      : tw_cancel(life->handle);

	operation();
	RACE_CHECK(outcome >= 0 || (waits && outcome == -ETIMEDOUT));
	if (outcome == TW_CANCEL_STOPPED)
		RACE_CHECK(life->chain && !waits);
	if (outcome != TW_CANCEL_DONE && outcome != TW_CANCEL_STOPPED)
		return;
	atomic_fetch_add(&life->told, 1);
	if (outcome == TW_CANCEL_DONE) {
		atomic_store(&life->done, true);
		RACE_CHECK(atomic_load(&life->finalised) == 1 && !atomic_load(&life->running));
	}
}

static void one_move(struct life *life)
{
	int outcome = tw_reschedule(life->handle, (int64_t)(race_chance() % 50000));

	operation();
	RACE_CHECK(outcome >= 0 || outcome == -ESTALE);
}

static void *canceller_main(void *argument)
{
	(void)argument;
	while (!atomic_load(&round_over)) {
		uint32_t begun = atomic_load(&lives_begun);
		struct life *life;

		if (begun == 0)
			continue;
		/* Mostly takes one of the latest timeouts. */
		life = &lives[begun - 1 - race_chance() % (begun < AHEAD ? begun : AHEAD)];
		if (race_chance() % 8 == 0)
			one_move(life);
		else if (race_chance() % 4 == 0)
			one_cancel(life);
		else
			(void)sched_yield();
	}
	return NULL;
}

static void *watcher_main(void *argument)
{
	struct tw_stats stats = {.size = sizeof stats};

	(void)argument;
	while (!atomic_load(&round_over)) {
		RACE_CHECK(tw_engine_watch(engine) >= 0);
		RACE_CHECK(tw_stats_get(engine, &stats) == 0);
		(void)sched_yield();
	}
	return NULL;
}

/*
 * Counts how the timeout ended. If a cancel of a chain waited and its wait timed out, the cancel is
 * not counted. So `told` may be 0 for a cancelled chain.
 */
static void life_account(struct life *life)
{
	uint32_t told = atomic_load(&life->told);
	uint32_t end = atomic_load(&life->end);
	uint32_t runs = atomic_load(&life->runs) + atomic_load(&life->dropped);

	RACE_CHECK(atomic_load(&life->finalised) == 1);
	RACE_CHECK(atomic_load(&life->unexpired) == (end == TW_END_UNEXPIRED));
	RACE_CHECK(atomic_load(&life->slow_told) >= atomic_load(&life->slow_runs));
	RACE_CHECK(atomic_load(&life->slow_told) <= atomic_load(&life->runs));
	RACE_CHECK(told <= 1);
	slow_seen += atomic_load(&life->slow_runs);
	switch (end) {
	case TW_END_CANCELLED:
		RACE_CHECK(life->chain || (told == 1 && runs == 0));
		cancelled++;
		break;
	case TW_END_UNEXPIRED:
		RACE_CHECK(told == 0 && runs < (life->chain ? RUNS : 1));
		unexpired++;
		break;
	default:
		RACE_CHECK(told == 0 && runs == (life->chain ? RUNS : 1));
		if (end == TW_END_DROPPED)
			RACE_CHECK(atomic_load(&life->dropped) > 0);
		if (!life->chain)
			RACE_CHECK(atomic_load(&life->dropped) == (end == TW_END_DROPPED));
		dropped += end == TW_END_DROPPED;
		expired += end == TW_END_EXPIRED;
	}
}

static void engine_make(bool loop)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.wheel = race_chance() % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_FULL;
	options.dispatch = dispatch;
	options.rejection = (uint32_t)policy;
	options.on_drop = policy == TW_REJECTION_DROP ? on_drop : NULL;
	options.flags = loop ? TW_ENGINE_LOOP : 0;
	options.slow_ns = SLOW_NS;
	options.on_slow = on_slow;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

struct books {
	uint64_t accepted, ended, cancelled, unexpired, slow_told;
};

static struct books books_now(void)
{
	return (struct books){accepted, expired + dropped, cancelled, unexpired,
			      atomic_load(&slow_told)};
}

static void books_check(const struct books *before)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct books now = books_now();

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.scheduled == now.accepted - before->accepted);
	RACE_CHECK(stats.expired == now.ended - before->ended);
	RACE_CHECK(stats.cancelled == now.cancelled - before->cancelled);
	RACE_CHECK(stats.unexpired == now.unexpired - before->unexpired);
	RACE_CHECK(stats.slow == now.slow_told - before->slow_told);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	rejected += stats.executor_rejected;
}

/* Waits. If the engine is a loop, its owner polls meanwhile. */
static void wait_for(uint64_t until, bool loop)
{
	while (atomic_load(&operations) < until && atomic_load(&lives_begun) < LIVES) {
		if (loop)
			RACE_CHECK(tw_engine_poll(engine, race_chance() % 16) >= 0);
		(void)sched_yield();
	}
}

/* Stops at once, or in steps that may time out while executors have callbacks. */
static void engine_stop(bool loop)
{
	int64_t timeout_ns =
		race_chance() % 2 == 0 ? TW_NEVER : (int64_t)(race_chance() % 3) * TICK_NS;
	int result;

	if (loop && race_chance() % 2 == 0)
		RACE_CHECK(tw_loop_exit(engine) == 0);
	while ((result = tw_engine_stop(engine, on_unexpired, NULL, timeout_ns)) == -ETIMEDOUT) {
		RACE_CHECK(timeout_ns != TW_NEVER);
		stops_out_of_time += loop;
	}
	RACE_CHECK(result == 0);
}

static void round_run(uint64_t *random)
{
	static void *(*const mains[])(void *) = {scheduler_main, canceller_main, canceller_main,
						 watcher_main,   dues_main,      dues_main};
	enum { THREADS = sizeof mains / sizeof mains[0] };
	bool loop = race_random(random) % 3 == 0;
	uint64_t until = atomic_load(&operations) + 500 + race_random(random) % 30000;
	struct books before = books_now();
	pthread_t thread[THREADS];
	uint32_t begun;

	memset(lives, 0, sizeof lives);
	atomic_store(&lives_begun, 0);
	atomic_store(&lives_ended, 0);
	atomic_store(&round_over, false);
	dues_open();
	engine_make(loop);
	if (loop)
		RACE_CHECK(tw_loop_enter(engine) == 0);
	race_start(thread, mains, THREADS, random);
	wait_for(until, loop);
	engine_stop(loop);
	atomic_store(&round_over, true);
	dues_close();
	race_join(thread, THREADS);
	begun = atomic_load(&lives_begun);
	for (uint32_t at = 0; at < begun; at++)
		life_account(&lives[at]);
	books_check(&before);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static bool all_seen(void)
{
	return rejected > 0 && expired > 0 && cancelled > 0 && unexpired > 0 &&
	       (dropped > 0 || policy != TW_REJECTION_DROP);
}

int main(int argc, char **argv)
{
	uint64_t rounds;

	policy = race_argument(argc, argv, 3, 0);
	RACE_CHECK(policy <= TW_REJECTION_DROP);
	rounds = race_rounds(argc, argv, 4, &operations, round_run, all_seen);
	printf("operations %" PRIu64 ", rounds %" PRIu64 "; rejected %" PRIu64 "; accepted %" PRIu64
	       " = expired %" PRIu64 " + dropped %" PRIu64 " + cancelled %" PRIu64
	       " + handed back %" PRIu64 ", lost %" PRIu64 "; slow %" PRIu64 ", surely %" PRIu64
	       "; stops of loops out of time %" PRIu64 "\n",
	       atomic_load(&operations), rounds, rejected, accepted, expired, dropped, cancelled,
	       unexpired, accepted - expired - dropped - cancelled - unexpired,
	       atomic_load(&slow_told), slow_seen, stops_out_of_time);
	RACE_CHECK(accepted == expired + dropped + cancelled + unexpired);
	RACE_CHECK(dropped == 0 || policy == TW_REJECTION_DROP);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
