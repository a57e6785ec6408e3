/* SPDX-License-Identifier: MIT */
/*
 * usage: race_scaled [operations] [seed] [seconds]
 *
 * Timeouts of two scaled kinds. Threads and callbacks schedule, touch and cancel them, while
 * another thread changes the factor. Some rounds stop a kind or the engine. Callbacks run on the
 * worker or in two executors.
 *
 * Allowed outcomes: a schedule returns 0, and then its timeout ends exactly once, as its finaliser
 * and the outcomes of cancel and touch say. Or the schedule returns -ESHUTDOWN, and the timeout
 * never ends. No callback runs before the least delay after the start or the last touch. If nothing
 * is stopped, all pending timeouts run by themselves after the factor is set to 0 for the last
 * time.
 *
 * Seen to fail with this defect: a kind uses 0 instead of its least delay.
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

enum {
	KINDS = 2,
	LIVES = 6000,
	LATEST = 256, /* how many of the latest timeouts a thread chooses from */
	TICK_NS = 10000,
	EXECUTORS = 2,
};

static const int64_t least_ns[KINDS] = {30000, 200000};
static const int64_t most_ns[KINDS] = {50000000, 400000};

struct life {
	struct tw_handle handle;
	uint64_t written;         /* ordinary memory that its callback writes */
	_Atomic int64_t start_ns; /* a time that is not later than the last start */
	int kind;
	_Atomic bool ready, rejected, cancelled, touching;
	_Atomic uint32_t runs, finalised, end;
};

enum stops { STOPS_NOTHING, STOPS_KIND, STOPS_ENGINE, STOPS };

static struct tw_engine *engine;
static struct tw_scaled *scaled[KINDS];
static struct life lives[LIVES];
static _Atomic uint32_t begun;
static _Atomic bool round_over;
static _Atomic uint64_t operations;
static bool dispatches;
static enum stops stops;
static uint64_t accepted, rejected, expired, cancelled, unexpired, touched, changes;
static _Atomic uint64_t touches;

static void operation(void)
{
	atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static void one_schedule(void);

static void on_run(struct tw_handle self, void *arg)
{
	struct life *life = arg;

	(void)self;
	RACE_CHECK(tw_engine_now(engine) - atomic_load(&life->start_ns) >= least_ns[life->kind]);
	RACE_CHECK(atomic_fetch_add(&life->runs, 1) == 0);
	RACE_CHECK(atomic_load(&life->finalised) == 0);
	life->written++;
	if (race_chance() % 4 == 0)
		one_schedule();
	operation();
}

static void on_end(void *arg, enum tw_end end)
{
	struct life *life = arg;

	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->finalised, 1) == 0);
	RACE_CHECK(atomic_load(&life->runs) == (end == TW_END_EXPIRED));
	RACE_CHECK(life->written == (end == TW_END_EXPIRED));
}

static const struct tw_kind kind = TW_KIND(on_run, on_end);

static void one_schedule(void)
{
	uint32_t at = atomic_fetch_add(&begun, 1);
	struct life *life = &lives[at];
	int result;

	if (at >= LIVES) {
		atomic_fetch_sub(&begun, 1);
		return;
	}
	life->kind = (int)(race_chance() % KINDS);
	atomic_store(&life->start_ns, tw_engine_now(engine));
	result = tw_scaled_schedule(scaled[life->kind], &kind, life, &life->handle);
	operation();
	RACE_CHECK(result == 0 || (result == -ESHUTDOWN && stops != STOPS_NOTHING));
	atomic_store(result == 0 ? &life->ready : &life->rejected, true);
}

/*
 * Touches a timeout, unless another thread does so. If two threads touched it at once, the last
 * swap could have the earlier start. Then start_ns could be later than the start in effect.
 */
static void life_touch(struct life *life)
{
	int64_t now_ns;
	int outcome;

	if (atomic_exchange(&life->touching, true))
		return;
	now_ns = tw_engine_now(engine);
	outcome = tw_scaled_touch(scaled[life->kind], life->handle);
	RACE_CHECK(outcome >= 0 || outcome == -ESTALE);
	if (outcome == TW_RESCHEDULE_DONE) {
		atomic_store(&life->start_ns, now_ns);
		atomic_fetch_add_explicit(&touches, 1, memory_order_relaxed);
	}
	atomic_store(&life->touching, false);
}

static void life_cancel(struct life *life)
{
	if (tw_cancel(life->handle) != TW_CANCEL_DONE)
		return;
	RACE_CHECK(!atomic_exchange(&life->cancelled, true));
	RACE_CHECK(atomic_load(&life->end) == TW_END_CANCELLED);
}

/* Chooses one of the latest timeouts, most of which are pending. */
static struct life *life_choose(void)
{
	uint32_t count = atomic_load(&begun);
	uint32_t back = (uint32_t)(race_chance() % LATEST);
	struct life *life;

	if (count > LIVES || back >= count)
		return NULL;
	life = &lives[count - 1 - back];
	return atomic_load(&life->ready) ? life : NULL;
}

static void *user_main(void *argument)
{
	while (atomic_load(&begun) < LIVES) {
		uint64_t choice = race_chance() % 8;
		struct life *life = choice < 2 ? NULL : life_choose();

		if (life == NULL) {
			one_schedule();
			continue;
		}
		if (choice < 7)
			life_touch(life);
		else
			life_cancel(life);
		operation();
	}
	return argument;
}

static void *changer_main(void *argument)
{
	while (!atomic_load(&round_over)) {
		RACE_CHECK(tw_scaled_factor_set(engine, (double)(race_chance() % 5) / 4) == 0);
		operation();
		changes++;
		for (uint64_t i = race_chance() % 16; i > 0; i--)
			(void)sched_yield();
	}
	return argument;
}

static void *stopper_main(void *argument)
{
	uint32_t at = (uint32_t)(race_chance() % LIVES);

	while (stops != STOPS_NOTHING && atomic_load(&begun) < at)
		(void)sched_yield();
	if (stops == STOPS_KIND)
		RACE_CHECK(tw_scaled_stop(scaled[0], NULL, NULL, TW_NEVER) == 0);
	if (stops == STOPS_ENGINE)
		RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	return argument;
}

static void round_begin(uint64_t *random)
{
	struct tw_options options;

	dispatches = race_random(random) % 2 == 0;
	stops = (enum stops)(race_random(random) % STOPS);
	memset(lives, 0, sizeof lives);
	atomic_store(&begun, 0);
	atomic_store(&round_over, false);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.check = race_random(random) % 4 == 0 ? TW_CHECK_FULL : TW_CHECK_NONE;
	options.dispatch = dispatches ? dues_dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < KINDS; i++)
		RACE_CHECK(tw_scaled_create(engine, least_ns[i], most_ns[i], &scaled[i]) == 0);
	dues_open();
}

static void life_account(const struct life *life)
{
	uint32_t end = atomic_load(&life->end);

	if (atomic_load(&life->rejected)) {
		RACE_CHECK(atomic_load(&life->finalised) == 0);
		rejected++;
		return;
	}
	RACE_CHECK(atomic_load(&life->ready) && atomic_load(&life->finalised) == 1);
	RACE_CHECK(atomic_load(&life->cancelled) == (end == TW_END_CANCELLED));
	accepted++;
	expired += end == TW_END_EXPIRED;
	cancelled += end == TW_END_CANCELLED;
	unexpired += end == TW_END_UNEXPIRED;
}

/*
 * Waits until all pending timeouts have run, which they must do without another call. If they do
 * not, the watchdog ends the wait.
 */
static void await_all(void)
{
	RACE_CHECK(tw_scaled_factor_set(engine, 0) == 0);
	for (int i = 0; i < KINDS; i++)
		while (stops == STOPS_NOTHING && tw_scaled_pending(scaled[i]) > 0)
			(void)sched_yield();
}

static void round_end(void)
{
	for (int i = 0; i < KINDS; i++)
		RACE_CHECK(tw_scaled_stop(scaled[i], NULL, NULL, TW_NEVER) == 0);
	for (int i = 0; i < KINDS; i++)
		RACE_CHECK(tw_scaled_destroy(scaled[i]) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	dues_close();
}

static void round_account(void)
{
	for (uint32_t at = 0; at < LIVES && at < atomic_load(&begun); at++)
		life_account(&lives[at]);
	touched = atomic_load(&touches);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static void round_run(uint64_t *random)
{
	static void *(*const mains[])(void *) = {user_main, user_main, user_main, stopper_main,
						 changer_main};
	static void *(*const runners[])(void *) = {dues_main, dues_main};
	enum { THREADS = sizeof mains / sizeof mains[0], ENDERS = 4 };
	pthread_t thread[THREADS], runner[EXECUTORS];

	round_begin(random);
	race_start(runner, runners, EXECUTORS, random);
	race_start(thread, mains, THREADS, random);
	race_join(thread, ENDERS);
	atomic_store(&round_over, true);
	race_join(thread + ENDERS, THREADS - ENDERS);
	await_all();
	round_end();
	race_join(runner, EXECUTORS);
	round_account();
}

static bool all_seen(void)
{
	return expired > 0 && cancelled > 0 && unexpired > 0 && rejected > 0 && touched > 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_rounds(argc, argv, 3, &operations, round_run, all_seen);

	printf("operations %" PRIu64 ", rounds %" PRIu64 "; accepted %" PRIu64 " = expired %" PRIu64
	       " + cancelled %" PRIu64 " + handed back %" PRIu64 ", lost %" PRIu64
	       "; rejected %" PRIu64 "; touched %" PRIu64 "; changes of the factor %" PRIu64 "\n",
	       atomic_load(&operations), rounds, accepted, expired, cancelled, unexpired,
	       accepted - expired - cancelled - unexpired, rejected, touched, changes);
	RACE_CHECK(accepted == expired + cancelled + unexpired);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
