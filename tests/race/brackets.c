/* SPDX-License-Identifier: MIT */
/*
 * Several threads take turns as the owner of one loop. usage: race_brackets [seconds] [seed]
 *
 * A bracket is a poll, or the time from tw_loop_enter to tw_loop_exit. A lock (`strand`) lets one
 * thread at a time into a bracket. Inside, the thread schedules and cancels shared and owner-only
 * timeouts. Outside, the thread does the same with shared timeouts, while another thread is in the
 * next bracket. A thread sometimes ends inside its bracket. A new thread then takes its place,
 * often at the same address. In the end one of the threads stops the engine.
 *
 * Allowed outcomes: each accepted timeout ends exactly once. Inside a bracket no cancel is
 * rejected. Outside, no owner-only timeout is accepted.
 *
 * Seen to fail with these defects, also without ThreadSanitizer: after tw_loop_exit the thread
 * still treats the wheel as its own; tw_loop_exit leaves the thread as the owner; the bracket of a
 * thread that has ended stays open.
 */
#include "cell.h"
#include "race.h"

#include <errno.h>
#include <stdio.h>
#include <tickwheel.h>

enum {
	ACTORS = 4,
	CELLS = 4096,
	HANDLES = 16,
	MOST_NS = 2000000,
};

/* A timeout and its argument. Handles in `kept` may be used only in a bracket. */
struct kept {
	struct tw_handle handle;
	struct cell *cell;
};

struct actor {
	uint64_t random;
	_Atomic uint64_t accepted, cancelled;
	struct cells cells;
	struct kept own[HANDLES]; /* shared timeouts of this actor */
	bool ended_inside;
};

static struct tw_engine *engine;
static struct actor actors[ACTORS];
static struct kept kept[HANDLES]; /* timeouts of both kinds, for the thread in the bracket */
static struct actor *entered;     /* the thread that is in the bracket */
static atomic_bool strand, over;
static _Atomic uint64_t expired_count, unexpired_count;

static void timeout_schedule(struct actor *actor, const struct tw_kind *kind, struct kept *place);
static void timeout_cancel(struct actor *actor, struct kept *place);
static const struct tw_kind shared, owned;

static struct kept *place_of(struct actor *actor, struct kept *places)
{
	return &places[race_random(&actor->random) % HANDLES];
}

static void bracket_step(struct actor *actor)
{
	bool only = race_random(&actor->random) % 2 == 0;

	timeout_schedule(actor, only ? &owned : &shared, place_of(actor, kept));
	timeout_cancel(actor, place_of(actor, kept));
}

static void on_expire(struct tw_handle handle, void *arg)
{
	struct actor *actor = entered;

	(void)handle;
	atomic_fetch_add_explicit(&expired_count, 1, memory_order_relaxed);
	cell_end(arg, TW_END_EXPIRED);
	if (actor != NULL && race_random(&actor->random) % 4 == 0)
		bracket_step(actor);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	atomic_fetch_add_explicit(&unexpired_count, 1, memory_order_relaxed);
	cell_end(arg, TW_END_UNEXPIRED);
}

static const struct tw_kind shared = TW_KIND(on_expire, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_expire, NULL);

static void timeout_schedule(struct actor *actor, const struct tw_kind *kind, struct kept *place)
{
	int64_t delay_ns = (int64_t)(race_random(&actor->random) % MOST_NS);
	struct cell *cell = cell_take(&actor->cells, false);
	struct kept born = {.cell = cell};

	if (cell == NULL)
		return;
	RACE_CHECK(tw_schedule(engine, delay_ns, kind, cell, &born.handle) == 0);
	atomic_fetch_add_explicit(&actor->accepted, 1, memory_order_relaxed);
	*place = born;
}

static void timeout_cancel(struct actor *actor, struct kept *place)
{
	int outcome;

	if (place->cell == NULL)
		return;
	outcome = tw_cancel(place->handle);
	RACE_CHECK(outcome >= 0);
	if (outcome == TW_CANCEL_DONE) {
		atomic_fetch_add_explicit(&actor->cancelled, 1, memory_order_relaxed);
		cell_end(place->cell, TW_END_CANCELLED);
	}
	place->cell = NULL;
}

static bool strand_try(struct actor *actor)
{
	if (atomic_exchange(&strand, true))
		return false;
	entered = actor;
	return true;
}

static void strand_give(void)
{
	entered = NULL;
	atomic_store(&strand, false);
}

/*
 * Makes a bracket by tw_loop_enter and tw_loop_exit. Returns false if the thread must end inside
 * the bracket. Its creator then gives the strand back.
 */
static bool long_bracket(struct actor *actor)
{
	RACE_CHECK(tw_loop_enter(engine) == 0);
	for (uint64_t i = race_random(&actor->random) % 16; i > 0; i--)
		bracket_step(actor);
	if (race_random(&actor->random) % 2 == 0)
		RACE_CHECK(tw_engine_poll_for(engine, 0, 100000) >= 0);
	if (race_random(&actor->random) % 16 == 0)
		return false;
	RACE_CHECK(tw_loop_exit(engine) == 0);
	return true;
}

/* Checks that a thread outside of brackets gets -EPERM for an owner-only timeout. */
static void outside_reject(void)
{
	struct tw_handle handle;

	RACE_CHECK(tw_schedule(engine, 0, &owned, NULL, &handle) == -EPERM);
	RACE_CHECK(tw_loop_exit(engine) == -EPERM);
}

static void outside_step(struct actor *actor)
{
	timeout_schedule(actor, &shared, place_of(actor, actor->own));
	if (race_random(&actor->random) % 2 == 0)
		timeout_cancel(actor, place_of(actor, actor->own));
	if (race_random(&actor->random) % 64 == 0)
		outside_reject();
}

/*
 * The main function of one thread of an actor. The thread ends inside its bracket, or at the end of
 * the round.
 */
static void *life(void *arg)
{
	struct actor *actor = arg;

	actor->ended_inside = false;
	while (!atomic_load(&over)) {
		for (uint64_t i = race_random(&actor->random) % 32; i > 0; i--)
			outside_step(actor);
		if (!strand_try(actor))
			continue;
		if (race_random(&actor->random) % 2 == 0) {
			RACE_CHECK(tw_engine_poll(engine, 0) >= 0);
		} else if (!long_bracket(actor)) {
			actor->ended_inside = true;
			return NULL;
		}
		strand_give();
	}
	return NULL;
}

/* Creates the threads of an actor, one after the other. */
static void *lives(void *arg)
{
	struct actor *actor = arg;
	pthread_t thread;

	while (!atomic_load(&over)) {
		RACE_CHECK(pthread_create(&thread, NULL, life, actor) == 0);
		RACE_CHECK(pthread_join(thread, NULL) == 0);
		if (actor->ended_inside)
			strand_give();
	}
	return NULL;
}

static void books_check(void)
{
	struct tw_stats stats = {.size = sizeof stats};
	uint64_t accepted = 0, cancelled = 0;

	for (int i = 0; i < ACTORS; i++) {
		accepted += atomic_exchange(&actors[i].accepted, 0);
		cancelled += atomic_exchange(&actors[i].cancelled, 0);
	}
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	RACE_CHECK(stats.scheduled == accepted && stats.cancelled == cancelled);
	RACE_CHECK(stats.expired == expired_count && stats.unexpired == unexpired_count);
	RACE_CHECK(accepted == cancelled + expired_count + unexpired_count);
	RACE_CHECK(accepted > 0 && expired_count > 0 && cancelled > 0);
	expired_count = unexpired_count = 0;
}

static void round_run(int64_t round_ns, uint64_t round)
{
	struct timespec pause = {.tv_sec = round_ns / 1000000000, .tv_nsec = round_ns % 1000000000};
	struct tw_options options;
	pthread_t thread[ACTORS];

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.flags = TW_ENGINE_LOOP;
	options.wheel = round % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_CHEAP;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	atomic_store(&over, false);
	for (int i = 0; i < ACTORS; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, lives, &actors[i]) == 0);
	(void)nanosleep(&pause, NULL);
	atomic_store(&over, true);
	for (int i = 0; i < ACTORS; i++)
		RACE_CHECK(pthread_join(thread[i], NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	books_check();
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	for (int place = 0; place < HANDLES; place++) {
		kept[place].cell = NULL;
		for (int i = 0; i < ACTORS; i++)
			actors[i].own[place].cell = NULL;
	}
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 6 };
	uint64_t seconds = race_argument(argc, argv, 1, 2);
	uint64_t seed = race_argument(argc, argv, 2, 1);

	race_watchdog((unsigned)seconds + 60);
	for (int i = 0; i < ACTORS; i++) {
		actors[i].random = (seed + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
		cells_init(&actors[i].cells, CELLS);
	}
	for (uint64_t round = 0; round < ROUNDS; round++)
		round_run((int64_t)(seconds * 1000000000 / ROUNDS), round);
	return 0;
}
