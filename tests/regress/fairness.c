/* SPDX-License-Identifier: MIT */
/*
 * One thread floods the engine, and another thread schedules a single timeout that is due. That
 * timeout used to wait until the whole flood was transferred, batch after batch. Now each thread
 * has its share of a batch.
 *
 * The same happened within one thread. If its ring was full, its next timeouts went to the link
 * queue. There they used to wait for as long as the ring filled whole batches.
 *
 * Seen to fail with these defects: a batch takes as much as possible from the first lane that has
 * more than its share; the worker always reads rings before link queues.
 */
#include "probe.h"
#include "rings.h"

#include <pthread.h>

enum { BATCH = 1000, FLOOD = 25 * BATCH, RING = 65536, POLLS = 10 };

struct late_comer {
	struct tw_engine *engine;
	atomic_llong transferred; /* the engine's counter `transferred` when the callback ran */
	atomic_int runs;
};

static void on_late_comer(struct tw_handle self, void *arg)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	struct late_comer *own = arg;

	(void)self;
	(void)tw_stats_get(own->engine, &stats);
	atomic_store(&own->transferred, (long long)stats.transferred);
	atomic_fetch_add(&own->runs, 1);
}

static const struct tw_kind late_comer_kind = TW_KIND(on_late_comer, NULL);

static void *late_comer_main(void *arg)
{
	struct late_comer *own = arg;

	(void)tw_schedule(own->engine, NS_PER_MS, &late_comer_kind, own, NULL);
	return NULL;
}

Test(fairness, flood_of_one_thread_delays_no_other_thread)
{
	struct tw_options options = fixture_options();
	struct late_comer own = {.runs = 0};
	struct fixture fixture;
	struct gate gate;
	atomic_int far_runs = 0;
	pthread_t thread;
	long long before;

	options.transfer_batch = BATCH;
	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	own.engine = fixture.engine;
	gate_hold(&fixture, &gate);
	before = (long long)stats_of(fixture.engine).transferred;
	for (int i = 0; i < FLOOD; i++)
		must_schedule(fixture.engine, 1000 * NS_PER_S, &count_kind, &far_runs);
	check_int(pthread_create(&thread, NULL, late_comer_main, &own), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(tw_clock_set(fixture.clock, 20 * NS_PER_MS), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(own.runs, 1);
	check_at_most(own.transferred - before, BATCH);
	fixture_close(&fixture);
	check_int(fixture.back.count, FLOOD);
}

struct flood {
	struct tw_engine *engine;
	atomic_int fired;
	int count;
	bool due_after; /* whether to schedule one timeout that is due afterwards */
};

static void *flood_main(void *arg)
{
	struct flood *flood = arg;

	for (int i = 0; i < flood->count; i++)
		must_schedule(flood->engine, TW_NEVER, &count_kind, &flood->fired);
	if (flood->due_after)
		must_schedule(flood->engine, 1, &count_kind, &flood->fired);
	return NULL;
}

/* Schedules `count` timeouts in a new thread, and joins it. Each such thread gets the lane of
 * the one before, because that one has ended. */
static void flood_by(struct flood *flood, int count, bool due_after)
{
	pthread_t thread;

	flood->count = count;
	flood->due_after = due_after;
	check_int(pthread_create(&thread, NULL, flood_main, flood), 0);
	check_int(pthread_join(thread, NULL), 0);
}

Test(fairness, a_ring_that_stays_full_does_not_hold_up_the_link_queue)
{
	struct tw_options options = fixture_options();
	struct flood flood = {.fired = 0};
	struct fixture fixture;
	int polls = 0;

	options.flags = TW_ENGINE_LOOP;
	options.transfer_batch = BATCH;
	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	engine_use_rings(fixture.engine);
	flood.engine = fixture.engine;
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	flood_by(&flood, RING, true);
	check_int(tw_clock_set(fixture.clock, 20 * NS_PER_MS), 0);
	while (flood.fired == 0 && polls++ < POLLS) {
		(void)tw_engine_poll(fixture.engine, 0);
		flood_by(&flood, BATCH, false);
	}
	check_int(flood.fired, 1);
	/* Each poll transferred a whole batch, so the ring was never empty. */
	check_int(stats_of(fixture.engine).transferred, polls * BATCH);
	fixture_close(&fixture);
}
