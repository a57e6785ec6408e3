/* SPDX-License-Identifier: MIT */
/*
 * usage: race_scope [operations] [seed] [seconds]
 *
 * Threads and callbacks schedule into scopes, cancel members, and end the scopes. Some rounds stop
 * the engine meanwhile. Callbacks run on the worker or in two executors.
 *
 * Allowed outcomes: a schedule returns 0, and then its timeout ends exactly once, with the end
 * reported to its finaliser. Or the schedule returns -ESHUTDOWN, and the timeout never ends. A
 * schedule that begins after an end has returned gets -ESHUTDOWN. When an end that waits has
 * returned on a thread that is not the worker, no callback of the scope begins or runs. The ends
 * and cancels report no more cancels than there are cancelled timeouts. The other cancelled
 * timeouts were cancelled by their own schedule. Afterwards no scope has a member, and each can be
 * destroyed.
 *
 * A callback writes ordinary memory. A thread that has ended the scope and waited reads this
 * memory. So ThreadSanitizer checks the order between them too.
 *
 * Seen to fail with these defects: when scope_schedule() leaves the scope, it ignores that the
 * scope was ended (in the build with delays only); tw_scope_end_wait does not wait for callbacks; a
 * slot stays claimed after a rejected schedule.
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
	SCOPES = 32,
	LIVES = 192, /* how many timeouts a scope gets */
	OPEN = 6,    /* how many scopes are in use at once */
	TICK_NS = 10000,
	EXECUTORS = 2,
};

/* A timeout of a scope. */
struct life {
	struct tw_handle handle;
	struct set *set;
	uint64_t written;      /* ordinary memory that its callback writes */
	_Atomic bool ready;    /* whether the handle is written and the timeout was accepted */
	_Atomic bool rejected; /* whether the schedule was rejected */
	_Atomic uint32_t runs, finalised, end;
};

struct set {
	struct tw_scope *scope;
	struct life life[LIVES];
	_Atomic uint32_t begun;
	_Atomic bool ended; /* whether an end has returned */
	/* whether an end that waits has returned, on a thread that runs no callbacks */
	_Atomic bool waited;
};

static struct tw_engine *engine;
static struct set sets[SCOPES];
static _Atomic uint32_t first_open, ends;
static _Atomic bool stopping, round_over;
static _Atomic uint64_t operations, told;
static bool dispatches, stops;
static uint64_t accepted, rejected, expired, cancelled, unexpired;

static _Thread_local bool inside; /* whether this thread is inside a callback */

static void operation(void)
{
	atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

static void set_schedule(struct set *set);
static void set_end(struct set *set, bool waits);

static void on_run(struct tw_handle self, void *arg)
{
	struct life *life = arg;
	struct set *set = life->set;

	RACE_CHECK(!atomic_load(&set->waited));
	(void)self;
	inside = true;
	operation();
	RACE_CHECK(atomic_fetch_add(&life->runs, 1) == 0);
	RACE_CHECK(atomic_load(&life->finalised) == 0);
	life->written++;
	if (race_chance() % 4 == 0)
		set_schedule(set);
	if (race_chance() % 64 == 0)
		set_end(set, !dispatches && race_chance() % 2 == 0);
	life->written++;
	RACE_CHECK(!atomic_load(&set->waited));
	inside = false;
}

static void on_end(void *arg, enum tw_end end)
{
	struct life *life = arg;

	atomic_store(&life->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&life->finalised, 1) == 0);
	RACE_CHECK(atomic_load(&life->runs) == (end == TW_END_EXPIRED));
}

static const struct tw_kind kind = TW_KIND(on_run, on_end);

static int64_t delay_choose(void)
{
	uint64_t random = race_chance();

	if (random % 4 == 0)
		return random % 8 == 0 ? TW_NEVER : TW_HOURS(1);
	return (int64_t)(random >> 8 & 0x1ffff);
}

static void set_schedule(struct set *set)
{
	bool was_ended = atomic_load(&set->ended);
	uint32_t at = atomic_fetch_add(&set->begun, 1);
	struct life *life;
	int result;

	if (at >= LIVES) {
		atomic_fetch_sub(&set->begun, 1);
		return;
	}
	life = &set->life[at];
	life->set = set;
	result = tw_scope_schedule(set->scope, delay_choose(), &kind, life, &life->handle);
	operation();
	RACE_CHECK(result == 0 || result == -ESHUTDOWN);
	RACE_CHECK(result != 0 || !was_ended);
	atomic_store(result == 0 ? &life->ready : &life->rejected, true);
}

/*
 * Reads the memory of a scope's callbacks. After an end with a wait, the thread must see everything
 * that the callbacks wrote.
 */
static void set_read(struct set *set)
{
	for (uint32_t at = 0; at < LIVES; at++) {
		struct life *life = &set->life[at];

		if (atomic_load_explicit(&life->runs, memory_order_relaxed) != 0)
			RACE_CHECK(life->written == 2);
	}
}

static void set_end(struct set *set, bool waits)
{
	int64_t count = 0;

	if (waits && !inside && race_chance() % 2 == 0)
		count = tw_scope_end(set->scope);
	if (waits)
		RACE_CHECK(tw_scope_end_wait(set->scope, TW_NEVER) == 0);
	else
		count = tw_scope_end(set->scope);
	operation();
	RACE_CHECK(count >= 0);
	atomic_fetch_add(&told, (uint64_t)count);
	atomic_fetch_add(&ends, 1);
	if (waits && !inside) {
		atomic_store(&set->waited, true);
		set_read(set);
	}
	atomic_store(&set->ended, true);
}

static struct set *set_choose(void)
{
	uint32_t first = atomic_load(&first_open);
	uint32_t at = first + (uint32_t)(race_chance() % OPEN);

	return at < SCOPES ? &sets[at] : NULL;
}

static void *scheduler_main(void *argument)
{
	while (!atomic_load(&round_over)) {
		struct set *set = set_choose();

		if (set != NULL)
			set_schedule(set);
		else
			(void)sched_yield();
	}
	return argument;
}

static void life_cancel(struct life *life)
{
	int outcome = race_chance() % 8 == 0 ? tw_reschedule(life->handle, delay_choose())
					     : tw_cancel(life->handle);

	RACE_CHECK(outcome >= 0 || outcome == -ESTALE);
	operation();
}

static void *canceller_main(void *argument)
{
	while (!atomic_load(&round_over)) {
		struct set *set = set_choose();
		uint32_t begun = set != NULL ? atomic_load(&set->begun) : 0;
		struct life *life;

		if (begun == 0 || begun > LIVES) {
			(void)sched_yield();
			continue;
		}
		life = &set->life[race_chance() % begun];
		if (atomic_load(&life->ready))
			life_cancel(life);
	}
	return argument;
}

/* Ends scopes in a loop: the oldest one when it has some timeouts, or a random one. */
static void *ender_main(void *argument)
{
	uint32_t first;

	while ((first = atomic_load(&first_open)) < SCOPES) {
		struct set *set = &sets[first];
		uint32_t wanted = (uint32_t)(race_chance() % LIVES);

		for (int tries = 0; tries < 200 && atomic_load(&set->begun) < wanted; tries++)
			(void)sched_yield();
		set_end(set, race_chance() % 2 == 0);
		if (atomic_compare_exchange_strong(&first_open, &first, first + 1))
			continue;
		set = set_choose();
		if (set != NULL && race_chance() % 8 == 0)
			set_end(set, race_chance() % 2 == 0);
	}
	return argument;
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)remaining_ns;
	RACE_CHECK(its_kind == &kind && atomic_load(&((struct life *)arg)->runs) == 0);
}

static void *stopper_main(void *argument)
{
	uint32_t at = (uint32_t)(race_chance() % SCOPES);

	while (stops && atomic_load(&first_open) < at)
		(void)sched_yield();
	if (stops) {
		atomic_store(&stopping, true);
		RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	}
	return argument;
}

static void round_begin(uint64_t *random)
{
	struct tw_options options;

	dispatches = race_random(random) % 2 == 0;
	stops = race_random(random) % 3 == 0;
	memset(sets, 0, sizeof sets);
	atomic_store(&first_open, 0);
	atomic_store(&stopping, false);
	atomic_store(&round_over, false);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.wheel = race_random(random) % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_FULL;
	options.dispatch = dispatches ? dues_dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < SCOPES; i++)
		RACE_CHECK(tw_scope_create(engine, NULL, &sets[i].scope) == 0);
	dues_open();
}

static void life_account(struct life *life)
{
	uint32_t end = atomic_load(&life->end);

	if (atomic_load(&life->rejected)) {
		RACE_CHECK(atomic_load(&life->runs) + atomic_load(&life->finalised) == 0);
		rejected++;
		return;
	}
	RACE_CHECK(atomic_load(&life->ready) && atomic_load(&life->finalised) == 1);
	accepted++;
	expired += end == TW_END_EXPIRED;
	cancelled += end == TW_END_CANCELLED;
	unexpired += end == TW_END_UNEXPIRED;
}

static void round_account(void)
{
	for (int i = 0; i < SCOPES; i++) {
		RACE_CHECK(tw_scope_end(sets[i].scope) == 0);
		RACE_CHECK(tw_scope_count(sets[i].scope) == 0);
		RACE_CHECK(tw_scope_destroy(sets[i].scope) == 0);
		for (uint32_t at = 0; at < LIVES && at < atomic_load(&sets[i].begun); at++)
			life_account(&sets[i].life[at]);
	}
}

static void round_run(uint64_t *random)
{
	static void *(*const mains[])(void *) = {ender_main,     ender_main,     stopper_main,
						 scheduler_main, scheduler_main, scheduler_main,
						 canceller_main};
	static void *(*const runners[])(void *) = {dues_main, dues_main};
	enum { THREADS = sizeof mains / sizeof mains[0], ENDERS = 3 };
	pthread_t thread[THREADS], runner[EXECUTORS];

	round_begin(random);
	race_start(runner, runners, EXECUTORS, random);
	race_start(thread, mains, THREADS, random);
	race_join(thread, ENDERS);
	atomic_store(&round_over, true);
	race_join(thread + ENDERS, THREADS - ENDERS);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	dues_close();
	race_join(runner, EXECUTORS);
	round_account();
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static bool all_seen(void)
{
	return expired > 0 && cancelled > 0 && rejected > 0 && atomic_load(&told) > 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_rounds(argc, argv, 3, &operations, round_run, all_seen);

	printf("operations %" PRIu64 ", rounds %" PRIu64 "; accepted %" PRIu64 " = expired %" PRIu64
	       " + cancelled %" PRIu64 " + handed back %" PRIu64 ", lost %" PRIu64
	       "; rejected %" PRIu64 "; ends %" PRIu32 " cancelled %" PRIu64 "\n",
	       atomic_load(&operations), rounds, accepted, expired, cancelled, unexpired,
	       accepted - expired - cancelled - unexpired, rejected, atomic_load(&ends),
	       atomic_load(&told));
	RACE_CHECK(accepted == expired + cancelled + unexpired && atomic_load(&told) <= cancelled);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
