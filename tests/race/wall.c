/* SPDX-License-Identifier: MIT */
/*
 * Races schedule, cancel and reschedule of timeouts with a date against steps of the wall clock,
 * against the check of the wall clock before a run, and against stop. usage: race_wall [operations]
 * [seed] [executors] [wheel: 0 hashed, 1 hierarchical] [seconds]. Ends after this many operations
 * or seconds (0: no bound).
 *
 * In each round two threads schedule dates on an engine with a virtual clock. They begin together,
 * so that both race to schedule the first date. They also cancel and reschedule each other's
 * timeouts. A third thread moves the clock, and steps its wall clock forward and back. In every
 * second round the engine is stopped meanwhile. In the other rounds the wall clock is set beyond
 * all dates at the end, and each timeout must run.
 *
 * Allowed outcomes: each accepted timeout ends exactly once, by a run, a cancel or a hand-back, and
 * its finaliser runs once, with that end. No timeout runs if the wall clock has never reached its
 * date. After the last step none is pending.
 *
 * Seen to fail with these defects: the worker does not check the wall clock before a run; a due
 * timeout is taken out of the wheel and does not run (the program hangs).
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

enum { LIVES = 4096, TICK_NS = 10000, EXECUTORS_MAX = 4, SCHEDULERS = 2 };

#define BASE_NS INT64_C(1000000000000000)
#define SPREAD_NS INT64_C(2000000)
#define FAR_NS INT64_C(1000000000000)

struct life {
	struct tw_handle handle;
	_Atomic bool ready; /* whether the handle is written and the timeout was accepted */
	int64_t date_ns;
	_Atomic bool rescheduled;
	_Atomic uint32_t runs, told, unexpired, finalised, end;
};

static struct tw_engine *engine;
static struct tw_clock *virtual_clock;
static struct life lives[LIVES];
static _Atomic uint32_t lives_begun;
static _Atomic bool round_over;
static _Atomic uint64_t operations;
static _Atomic int64_t highest_ns; /* the latest time that the wall clock has shown */
static _Atomic int64_t time_ns;
static uint64_t accepted, cancelled, expired, unexpired;
static uint64_t executor_count, wheel, round_number;
static struct race_line line = {.threads = SCHEDULERS};

static void on_date(struct tw_handle self, void *arg)
{
	struct life *life = arg;

	(void)self;
	RACE_CHECK(atomic_load(&life->rescheduled) || life->date_ns <= atomic_load(&highest_ns));
	RACE_CHECK(atomic_load(&life->finalised) == 0);
	RACE_CHECK(atomic_fetch_add(&life->runs, 1) == 0);
}

static void on_end(void *arg, enum tw_end end)
{
	struct life *life = arg;

	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->finalised, 1) == 0);
}

static const struct tw_kind kind = TW_KIND(on_date, on_end);

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	struct life *life = arg;

	(void)context;
	(void)handle;
	(void)remaining_ns;
	RACE_CHECK(its_kind == &kind);
	atomic_fetch_add(&life->unexpired, 1);
}

/* Returns false if the engine is closed, or the round has enough timeouts. */
static bool life_begin(void)
{
	uint32_t at = atomic_fetch_add(&lives_begun, 1);
	struct life *life;
	int result;

	if (at >= LIVES)
		return false;
	life = &lives[at];
	life->date_ns = BASE_NS + (int64_t)(race_chance() % SPREAD_NS) * 2 - SPREAD_NS / 2;
	result = tw_schedule_wall(engine, life->date_ns, &kind, life, &life->handle);
	RACE_CHECK(result == 0 || result == -ESHUTDOWN);
	if (result != 0)
		return false;
	atomic_store(&life->ready, true);
	return true;
}

static struct life *any_life(void)
{
	uint32_t begun = atomic_load(&lives_begun);
	struct life *life = &lives[race_chance() % (begun < LIVES ? begun : LIVES)];

	return atomic_load(&life->ready) ? life : NULL;
}

static void life_cancel(struct life *life)
{
	bool waits = race_chance() % 4 == 0;
	int outcome = waits ? tw_cancel_wait(life->handle, TW_NEVER) : tw_cancel(life->handle);

	switch (outcome) {
	case TW_CANCEL_DONE:
		atomic_fetch_add(&life->told, 1);
		RACE_CHECK(atomic_load(&life->finalised) == 1);
		break;
	case TW_CANCEL_STOPPED:
		atomic_fetch_add(&life->told, 1);
		break;
	default:
		RACE_CHECK(outcome == TW_CANCEL_CANCELLED || outcome == TW_CANCEL_EXPIRED ||
			   outcome == TW_CANCEL_STALE || (outcome == TW_CANCEL_RUNNING && !waits));
	}
}

static void life_reschedule(struct life *life)
{
	/* This is set before the call, because the callback may run at once. */
	atomic_store(&life->rescheduled, true);
	RACE_CHECK(tw_reschedule(life->handle, (int64_t)(race_chance() % SPREAD_NS)) >= -ESTALE);
}

static void life_look(struct life *life)
{
	struct tw_timeout seen = {.size = sizeof seen};
	int result = tw_timeout_get(life->handle, &seen);

	RACE_CHECK(result == 0 || result == -ESTALE);
	if (result == 0)
		RACE_CHECK(seen.arg == life || seen.state != TW_STATE_INIT);
}

static void *scheduler_main(void *argument)
{
	(void)argument;
	race_line_wait(&line, round_number);
	while (!atomic_load(&round_over) && life_begin()) {
		struct life *life = any_life();
		uint64_t chance = race_chance() % 16;

		atomic_fetch_add(&operations, 1);
		if (life == NULL)
			continue;
		if (chance < 6)
			life_cancel(life);
		else if (chance == 6)
			life_reschedule(life);
		else if (chance == 7)
			life_look(life);
		else if (chance == 8)
			(void)sched_yield();
	}
	return NULL;
}

static void wall_set(int64_t wall_ns)
{
	/*
	 * A load and a store are enough, because one thread at a time moves the clock: the stepper
	 * or, after its end, the main thread.
	 */
	if (wall_ns > atomic_load(&highest_ns))
		atomic_store(&highest_ns, wall_ns);
	RACE_CHECK(tw_clock_set_wall(virtual_clock, wall_ns) == 0);
}

static void time_pass(int64_t passed_ns, int64_t wall_ns)
{
	/* tw_clock_set advances the wall clock, too, so `highest_ns` is raised before. */
	if (wall_ns + passed_ns > atomic_load(&highest_ns))
		atomic_store(&highest_ns, wall_ns + passed_ns);
	atomic_store(&time_ns, atomic_load(&time_ns) + passed_ns);
	RACE_CHECK(tw_clock_set(virtual_clock, atomic_load(&time_ns)) == 0);
}

static void *stepper_main(void *argument)
{
	int64_t wall_ns = BASE_NS - SPREAD_NS;

	(void)argument;
	while (!atomic_load(&round_over)) {
		uint64_t chance = race_chance();

		atomic_fetch_add(&operations, 1);
		if (chance % 4 == 0) {
			int64_t passed_ns = (int64_t)(chance >> 8 & 0x3fff);

			time_pass(passed_ns, wall_ns);
			wall_ns += passed_ns;
		} else {
			wall_ns = BASE_NS - SPREAD_NS + (int64_t)(chance >> 8) % (2 * SPREAD_NS);
			wall_set(wall_ns);
		}
		if (chance >> 60 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static size_t dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = race_chance() % 8 == 0 ? count / 2 : count;

	(void)context;
	return dues_put(due, accept);
}

static void engine_make(void)
{
	struct tw_options options;

	RACE_CHECK(tw_clock_create_virtual(TICK_NS, &virtual_clock) == 0);
	atomic_store(&time_ns, TICK_NS);
	atomic_store(&highest_ns, 0);
	wall_set(BASE_NS - SPREAD_NS);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.clock = virtual_clock;
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.wheel = wheel == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_FULL;
	options.dispatch = executor_count > 0 ? dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

static void life_account(const struct life *life)
{
	uint32_t end = atomic_load(&life->end);

	if (!atomic_load(&life->ready))
		return;
	accepted++;
	RACE_CHECK(atomic_load(&life->finalised) == 1);
	RACE_CHECK(atomic_load(&life->unexpired) == (end == TW_END_UNEXPIRED));
	RACE_CHECK(atomic_load(&life->told) == (end == TW_END_CANCELLED));
	RACE_CHECK(atomic_load(&life->runs) == (end == TW_END_EXPIRED));
	cancelled += end == TW_END_CANCELLED;
	unexpired += end == TW_END_UNEXPIRED;
	expired += end == TW_END_EXPIRED;
}

/*
 * Sets the wall clock beyond all dates, and moves the clock so that rescheduled timeouts become
 * due.
 */
static void all_run(void)
{
	wall_set(BASE_NS + FAR_NS);
	time_pass(FAR_NS, BASE_NS + FAR_NS);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	while (tw_engine_pending(engine) != 0)
		(void)sched_yield();
}

static void round_run(uint64_t *random)
{
	pthread_t thread[SCHEDULERS + 1], executor[EXECUTORS_MAX];
	uint64_t until = atomic_load(&operations) + 500 + race_random(random) % 20000;
	bool stops = race_random(random) % 2 == 0;

	memset(lives, 0, sizeof lives);
	atomic_store(&lives_begun, 0);
	atomic_store(&round_over, false);
	round_number++;
	dues_open();
	engine_make();
	for (uint64_t i = 0; i < executor_count; i++)
		RACE_CHECK(pthread_create(&executor[i], NULL, dues_main, NULL) == 0);
	for (int i = 0; i <= SCHEDULERS; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL,
					  i < SCHEDULERS ? scheduler_main : stepper_main,
					  NULL) == 0);
	while (atomic_load(&operations) < until && atomic_load(&lives_begun) < LIVES)
		(void)sched_yield();
	if (stops)
		RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	atomic_store(&round_over, true);
	race_join(thread, SCHEDULERS + 1);
	if (!stops) {
		all_run();
		RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	}
	dues_close();
	race_join(executor, executor_count);
	for (uint32_t at = 0; at < LIVES; at++)
		life_account(&lives[at]);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(virtual_clock) == 0);
}

static bool all_seen(void)
{
	return expired > 0 && cancelled > 0 && unexpired > 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds;

	executor_count = race_argument(argc, argv, 3, 0);
	RACE_CHECK(executor_count <= EXECUTORS_MAX);
	wheel = race_argument(argc, argv, 4, 0);
	rounds = race_rounds(argc, argv, 5, &operations, round_run, all_seen);
	printf("operations %" PRIu64 ", rounds %" PRIu64 "; accepted %" PRIu64 " = expired %" PRIu64
	       " + cancelled %" PRIu64 " + handed back %" PRIu64 "\n",
	       atomic_load(&operations), rounds, accepted, expired, cancelled, unexpired);
	RACE_CHECK(accepted == expired + cancelled + unexpired);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
