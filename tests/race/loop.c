/* SPDX-License-Identifier: MIT */
/*
 * Races the owner of a loop against other threads. usage: race_loop [seconds] [seed]
 *
 * The owner sleeps on the descriptor and polls. It schedules and cancels its own timeouts (shared
 * and owner-only), between polls and in callbacks. Two threads schedule through ingress and cancel
 * each other's timeouts and the owner's. Then the owner stops the engine, or a further thread stops
 * it while the owner polls or leaves the loop.
 *
 * Allowed outcomes: each accepted timeout ends exactly once, by its callback, by exactly one cancel
 * that returned "done", or by the hand-back. No timeout may be late by seconds, whichever call
 * scheduled it. Such lateness shows a lost wake-up, because the owner sleeps only on the
 * descriptor.
 *
 * Seen to fail with these defects:
 * - a waker does not set the timer (the descriptor is not readable for two seconds, in both
 *   builds);
 * - a cancel of a due timeout in the batch that the worker is running frees it at once (a crash, or
 *   wrong counters and failed checks; each time in the build with delays, sometimes in the other
 *   one);
 * - the owner cancels shared timeouts by a store (two ends; only in the build with delays).
 *
 * These defects are not found here, because the next timeout hides them: the owner does not read
 * its park word after it has set the timer; a nearer timeout of the owner does not set the timer;
 * the owner does not expect that a waker sets the timer late. The model check `loop` and the test
 * unit/loop/test_loop_fd.c find them.
 */
#include "cell.h"
#include "race.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

enum {
	OTHERS = 2,
	CELLS = 4096,
	HANDLES = 32,
	LATE_NS = 2000000000,
};

/*
 * A place through which threads exchange handles. Each word is atomic, and a sequence number guards
 * the pair.
 */
struct offer {
	_Atomic uint64_t sequence;
	_Atomic uintptr_t node;
	_Atomic uint64_t generation;
	_Atomic(struct cell *) cell;
};

struct actor {
	pthread_t thread;
	uint64_t random;
	uint64_t accepted, cancelled;
	struct cells cells;
};

static struct tw_engine *engine;
static struct offer offers[HANDLES];
static struct actor owner, others[OTHERS];
static atomic_bool over;
/*
 * If set, threads let all pending timeouts end, so that the owner sleeps until another thread wakes
 * it.
 */
static atomic_bool quiet;
static _Atomic uint64_t expired_count, unexpired_count;

static void one_schedule(struct actor *actor, const struct tw_kind *kind);
static void one_cancel(struct actor *actor);
static const struct tw_kind shared, owned;

/* Runs on the owner's thread. */
static void on_expire(struct tw_handle handle, void *arg)
{
	uint64_t chance = race_random(&owner.random);

	struct tw_timeout about = {.size = sizeof about};

	RACE_CHECK(tw_timeout_get(handle, &about) == 0);
	RACE_CHECK(tw_engine_now(engine) >= about.deadline_ns);
	RACE_CHECK(tw_engine_now(engine) < about.deadline_ns + LATE_NS);
	atomic_fetch_add_explicit(&expired_count, 1, memory_order_relaxed);
	cell_end(arg, TW_END_EXPIRED);
	if (chance % 4 == 0)
		one_schedule(&owner, chance % 8 == 0 ? &owned : &shared);
	if (chance % 3 == 0)
		one_cancel(&owner);
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

static void offer_put(struct offer *offer, struct tw_handle handle, struct cell *cell)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_relaxed);

	if (sequence % 2 != 0 ||
	    !atomic_compare_exchange_strong_explicit(&offer->sequence, &sequence, sequence + 1,
						     memory_order_acq_rel, memory_order_relaxed))
		return;
	atomic_store_explicit(&offer->node, (uintptr_t)handle.node, memory_order_release);
	atomic_store_explicit(&offer->generation, handle.generation, memory_order_release);
	atomic_store_explicit(&offer->cell, cell, memory_order_release);
	atomic_store_explicit(&offer->sequence, sequence + 2, memory_order_release);
}

static bool offer_get(struct offer *offer, struct tw_handle *ret_handle, struct cell **ret_cell)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_acquire);

	if (sequence == 0 || sequence % 2 != 0)
		return false;
	ret_handle->node = (void *)atomic_load_explicit(&offer->node, memory_order_acquire);
	ret_handle->generation = atomic_load_explicit(&offer->generation, memory_order_acquire);
	*ret_cell = atomic_load_explicit(&offer->cell, memory_order_acquire);
	return atomic_load_explicit(&offer->sequence, memory_order_acquire) == sequence;
}

static void one_schedule(struct actor *actor, const struct tw_kind *kind)
{
	bool far = race_random(&actor->random) % 16 == 0 && !atomic_load(&quiet);
	int64_t most_ns = far ? 50000000 : 4000000;
	int64_t delay_ns = (int64_t)(race_random(&actor->random) % (uint64_t)most_ns);
	struct cell *cell = cell_take(&actor->cells, false);
	struct tw_handle handle;
	int result;

	if (cell == NULL)
		return;
	result = tw_schedule(engine, delay_ns, kind, cell, &handle);
	/* A stop may come during the poll that runs this callback. */
	if (result == -ESHUTDOWN && atomic_load(&over)) {
		cell_give_back(cell);
		return;
	}
	RACE_CHECK(result == 0);
	actor->accepted++;
	offer_put(&offers[race_random(&actor->random) % HANDLES], handle, cell);
}

static void one_cancel(struct actor *actor)
{
	struct tw_handle handle;
	struct cell *cell;
	int outcome;

	if (!offer_get(&offers[race_random(&actor->random) % HANDLES], &handle, &cell))
		return;
	outcome = tw_cancel(handle);
	RACE_CHECK(outcome >= 0 || (outcome == -EPERM && actor != &owner));
	if (outcome != TW_CANCEL_DONE)
		return;
	actor->cancelled++;
	cell_end(cell, TW_END_CANCELLED);
}

static void actor_init(struct actor *actor, uint64_t seed)
{
	actor->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	cells_init(&actor->cells, CELLS);
}

static void nap(uint64_t *random)
{
	uint64_t most_ns = atomic_load(&quiet) ? 20000000 : 3000000;
	struct timespec pause = {.tv_nsec = (long)(race_random(random) % most_ns)};

	(void)nanosleep(&pause, NULL);
}

static void *other_body(void *arg)
{
	struct actor *actor = arg;

	while (!atomic_load(&over)) {
		uint64_t burst = race_random(&actor->random) % 64;

		for (uint64_t i = 0; i < burst; i++) {
			one_schedule(actor, &shared);
			if (race_random(&actor->random) % 2 == 0)
				one_cancel(actor);
		}
		if (burst % 2 == 0 || atomic_load(&quiet))
			nap(&actor->random);
	}
	return NULL;
}

/*
 * Waits for the descriptor. The other threads' timeouts are due within milliseconds, so it must
 * become readable.
 */
static void owner_wait(int64_t until_ns)
{
	struct pollfd fd = {.fd = tw_engine_fd(engine), .events = POLLIN};

	while (race_now_ns() < until_ns) {
		RACE_CHECK(poll(&fd, 1, LATE_NS / 1000000) == 1);
		RACE_CHECK(tw_engine_poll(engine, 0) >= 0);
	}
}

static void owner_run(int64_t until_ns)
{
	struct pollfd fd = {.fd = tw_engine_fd(engine), .events = POLLIN};

	RACE_CHECK(fd.fd >= 0);
	while (race_now_ns() < until_ns) {
		uint64_t chance = race_random(&owner.random);

		if (chance % 2 == 0)
			one_schedule(&owner, chance % 4 == 0 ? &owned : &shared);
		if (chance % 3 == 0)
			one_cancel(&owner);
		if (chance % 8 != 0 || tw_engine_pending(engine) == 0)
			continue;
		RACE_CHECK(poll(&fd, 1, LATE_NS / 1000000) == 1);
		RACE_CHECK(tw_engine_poll(engine, chance % 5 == 0 ? 3 : 0) >= 0);
	}
}

static void *stop_body(void *arg)
{
	(void)arg;
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	return NULL;
}

/* Polls until the loop has seen the stop. */
static void owner_end(void)
{
	struct pollfd fd = {.fd = tw_engine_fd(engine), .events = POLLIN};

	do
		RACE_CHECK(poll(&fd, 1, LATE_NS / 1000000) == 1);
	while (tw_engine_poll(engine, 0) != -ESHUTDOWN);
}

static void engine_stop(uint64_t way)
{
	pthread_t thread;

	if (way % 3 == 0) {
		(void)stop_body(NULL);
		return;
	}
	RACE_CHECK(pthread_create(&thread, NULL, stop_body, NULL) == 0);
	if (way % 3 == 1)
		owner_end();
	else
		(void)tw_loop_exit(engine);
	RACE_CHECK(pthread_join(thread, NULL) == 0);
}

static void books_check(void)
{
	struct tw_stats stats = {.size = sizeof stats};
	uint64_t accepted = owner.accepted, cancelled = owner.cancelled;

	for (int i = 0; i < OTHERS; i++) {
		accepted += others[i].accepted;
		cancelled += others[i].cancelled;
	}
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	RACE_CHECK(stats.scheduled == accepted && stats.cancelled == cancelled);
	RACE_CHECK(stats.expired == expired_count && stats.unexpired == unexpired_count);
	RACE_CHECK(accepted == cancelled + expired_count + unexpired_count);
}

static void round_run(int64_t round_ns, uint64_t round)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.flags = TW_ENGINE_LOOP;
	options.wheel = round % 2 == 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	options.check = TW_CHECK_CHEAP;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_loop_enter(engine) == 0);
	atomic_store(&over, false);
	for (int i = 0; i < OTHERS; i++)
		RACE_CHECK(pthread_create(&others[i].thread, NULL, other_body, &others[i]) == 0);
	owner_run(race_now_ns() + round_ns / 2);
	atomic_store(&quiet, true);
	owner_wait(race_now_ns() + round_ns / 2);
	atomic_store(&quiet, false);
	atomic_store(&over, true);
	for (int i = 0; i < OTHERS; i++)
		RACE_CHECK(pthread_join(others[i].thread, NULL) == 0);
	engine_stop(round);
	books_check();
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	owner.accepted = owner.cancelled = 0;
	others[0].accepted = others[0].cancelled = others[1].accepted = others[1].cancelled = 0;
	expired_count = unexpired_count = 0;
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 12 };
	uint64_t seconds = race_argument(argc, argv, 1, 2);
	uint64_t seed = race_argument(argc, argv, 2, 1);

	race_watchdog((unsigned)seconds + 60);
	actor_init(&owner, seed);
	for (int i = 0; i < OTHERS; i++)
		actor_init(&others[i], seed + 1 + (uint64_t)i);
	for (uint64_t round = 0; round < ROUNDS; round++)
		round_run((int64_t)(seconds * 1000000000 / ROUNDS), round);
	return 0;
}
