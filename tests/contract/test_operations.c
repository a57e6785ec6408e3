/* SPDX-License-Identifier: MIT */
/*
 * Two threads make random operations while time moves. In the end, every timeout must have ended
 * exactly once.
 */
#include "probe.h"

#include "random.h"
#include "slowdown.h"

#include <pthread.h>
#include <stdlib.h>

enum { OPERATIONS = 10000000, THREADS = 2, WINDOW = 4096, OPERATIONS_PER_STEP = 1024 };

struct item {
	struct actor *actor;
	/* 0: free, 1: pending, 2: ended */
	atomic_int life;
	struct tw_handle handle;
};

struct actor {
	struct tw_engine *engine;
	/* NULL except for the actor that moves the clock. */
	struct tw_clock *clock;
	int64_t now_ns;
	pthread_t thread;
	uint64_t seed;
	struct item items[WINDOW];
	long long scheduled;
	long long cancelled;
	atomic_llong expired;
	atomic_llong unexpired;
	atomic_llong wrong;
};

static void on_item(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_item_end(void *arg, enum tw_end end)
{
	struct item *item = arg;
	struct actor *actor = item->actor;

	if (end == TW_END_EXPIRED)
		atomic_fetch_add(&actor->expired, 1);
	else if (end == TW_END_UNEXPIRED)
		atomic_fetch_add(&actor->unexpired, 1);
	if (atomic_exchange(&item->life, 2) != 1)
		atomic_fetch_add(&actor->wrong, 1);
}

static const struct tw_kind item_kind = TW_KIND(on_item, on_item_end);

static void actor_schedule(struct actor *actor, struct item *item, int64_t delay_ns)
{
	atomic_store(&item->life, 1);
	if (tw_schedule(actor->engine, delay_ns, &item_kind, item, &item->handle) == 0)
		actor->scheduled++;
	else
		atomic_fetch_add(&actor->wrong, 1);
}

static void actor_cancel(struct actor *actor, struct item *item)
{
	int outcome = tw_cancel_wait(item->handle, TW_NEVER);

	actor->cancelled += outcome == TW_CANCEL_DONE;
	if (outcome < 0 || outcome == TW_CANCEL_RUNNING || atomic_load(&item->life) != 2)
		atomic_fetch_add(&actor->wrong, 1);
}

/*
 * Lets time pass between an actor's operations. Only the first actor moves the clock. Both actors
 * let the worker catch up. Otherwise no timeout would expire before it is cancelled.
 */
static void actor_step(struct actor *actor)
{
	actor->now_ns += 4 * NS_PER_MS;
	if (actor->clock && tw_clock_set(actor->clock, actor->now_ns) != 0)
		atomic_fetch_add(&actor->wrong, 1);
	(void)tw_engine_flush(actor->engine, 10 * NS_PER_MS);
}

static void *actor_main(void *arg)
{
	struct actor *actor = arg;
	struct random random = {actor->seed};
	struct item *item;
	int i;

	for (i = 0; i < (int)slowed(OPERATIONS) / THREADS; i++) {
		item = &actor->items[random_below(&random, WINDOW)];
		if (atomic_load(&item->life) == 1)
			actor_cancel(actor, item);
		else
			actor_schedule(actor, item, random_magnitude(&random, 24));
		if (i % OPERATIONS_PER_STEP == 0)
			actor_step(actor);
	}
	return NULL;
}

static void actors_start(struct actor *actors, struct fixture *fixture)
{
	int i;
	int j;

	actors[0].clock = fixture->clock;
	for (i = 0; i < THREADS; i++) {
		actors[i].engine = fixture->engine;
		actors[i].seed = (uint64_t)i + 7;
		for (j = 0; j < WINDOW; j++)
			actors[i].items[j].actor = &actors[i];
		check_int(pthread_create(&actors[i].thread, NULL, actor_main, &actors[i]), 0);
	}
}

static void actors_check(struct actor *actors, struct fixture *fixture)
{
	struct tw_stats stats = stats_of(fixture->engine);
	long long scheduled = 0;
	long long cancelled = 0;
	long long expired = 0;
	int i;

	for (i = 0; i < THREADS; i++) {
		check_int(actors[i].wrong, 0);
		check_int(actors[i].scheduled,
			  actors[i].cancelled + actors[i].expired + actors[i].unexpired);
		scheduled += actors[i].scheduled;
		cancelled += actors[i].cancelled;
		expired += actors[i].expired;
	}
	/* Some timeouts must have expired, and some must have been cancelled. */
	check_at_least(expired, slowed(OPERATIONS) / 100);
	check_at_least(cancelled, slowed(OPERATIONS) / 100);
	check_int(stats.scheduled, scheduled);
	check_int(stats.cancelled, cancelled);
	check_int(stats.expired, expired);
}

Test(operations, two_threads_at_random)
{
	struct actor *actors = calloc(THREADS, sizeof(*actors));
	struct tw_options options = fixture_options();
	struct fixture fixture;
	int i;

	options.check = TW_CHECK_CHEAP;
	options.tick_ns = 100000;
	options.slots = 64;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	actors_start(actors, &fixture);
	for (i = 0; i < THREADS; i++)
		check_int(pthread_join(actors[i].thread, NULL), 0);
	fixture_stop(&fixture);
	actors_check(actors, &fixture);
	fixture_close(&fixture);
	free(actors);
}
