/* SPDX-License-Identifier: MIT */
/*
 * A batch whose lane has a ring with fewer free entries than the batch needs, or with none. One
 * test has more threads than near lanes. A batch must be published once, and a sleeping worker must
 * be notified of timeouts that wait for it.
 *
 * Seen to fail with these defects: twi_batch_find_room() does not look for free entries, or assumes
 * that there are some; a chain is not pushed, or its nodes are not linked; a batch that completes
 * units of 64 scheduled timeouts does not notify the worker; cancels are not pushed.
 */
#include "engine/engine.h"
#include "ingress/batch.h"
#include "ingress/push.h"
#include "probe.h"
#include "ringless.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum {
	FEW = 100,
	/* Three spans. The ring has free entries for one and a half of them. */
	BATCH = 3 * TWI_BATCH_MAX,
	ROOM = 3 * TWI_BATCH_MAX / 2,
	THREADS = TWI_LANES + 4,
};

static atomic_int runs;

static struct twi_lane *lane_of(const struct fixture *fixture)
{
	return &fixture->engine->worker.near.lane[twi_thread()->lane];
}

static uint64_t ring_length(const struct twi_lane *lane)
{
	return twi_ring_pushed(&lane->ring) - twi_ring_taken(&lane->ring_out);
}

static bool links_used(const struct twi_lane *lane)
{
	return twi_mpsc_last_sc(&lane->ingress) != &lane->ingress_out.stub;
}

static struct tw_item *items_make(size_t count, int64_t time_ns)
{
	struct tw_item *items = calloc(count, sizeof *items);

	check_true(items != NULL);
	for (size_t i = 0; i < count; i++)
		items[i] = (struct tw_item){time_ns, &count_kind, &runs};
	return items;
}

/* A callback holds the worker, so pushed nodes stay in the ring and in the link queue. */
Test(batch_rings, what_finds_no_room_is_linked)
{
	struct fixture fixture;
	struct tw_item *items = items_make(BATCH, NS_PER_S);
	struct tw_handle *handles = calloc(BATCH, sizeof *handles);
	struct gate gate;

	runs = 0;
	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	while (ring_length(lane_of(&fixture)) < TWI_RING_ENTRIES - ROOM)
		must_schedule(fixture.engine, TW_NEVER, &count_kind, &runs);
	check_true(!links_used(lane_of(&fixture)));
	check_int(tw_schedule_many(fixture.engine, items, BATCH, handles, NULL), BATCH);
	check_int(ring_length(lane_of(&fixture)), TWI_RING_ENTRIES);
	check_true(links_used(lane_of(&fixture)));
	/* Cancels five timeouts in the ring and five in the link queue. */
	check_int(tw_cancel_many(handles + ROOM - 5, 10, NULL), 10);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, BATCH - 10);
	fixture_close(&fixture);
	free(items);
	free(handles);
}

/* If the ring is full, timeouts that are cancelled in the wheel must be pushed to the cancel
 * queue. */
Test(batch_rings, cancels_in_the_wheel_use_the_queue_if_the_ring_is_full)
{
	struct fixture fixture;
	struct tw_handle handles[FEW];
	struct gate gate;

	runs = 0;
	fixture_open(&fixture, NULL);
	for (int i = 0; i < FEW; i++)
		handles[i] = must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	fixture_flush(&fixture);
	gate_hold(&fixture, &gate);
	while (ring_length(lane_of(&fixture)) < TWI_RING_ENTRIES - FEW / 2)
		must_schedule(fixture.engine, TW_NEVER, &count_kind, &runs);
	check_int(tw_cancel_many(handles, FEW, NULL), FEW);
	check_int(ring_length(lane_of(&fixture)), TWI_RING_ENTRIES);
	check_true(twi_mpsc_last_sc(&lane_of(&fixture)->cancelled) !=
		   &lane_of(&fixture)->cancelled_out.stub);
	gate_open(&gate);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, 0);
	check_int(stats_of(fixture.engine).cancelled, FEW);
	fixture_close(&fixture);
}

Test(batch_rings, without_a_ring_the_batch_runs_whole)
{
	struct fixture fixture;
	struct tw_item *items = items_make(BATCH, NS_PER_MS);

	runs = 0;
	ringless_set(true);
	fixture_open(&fixture, NULL);
	ringless_set(false);
	check_int(tw_schedule_many(fixture.engine, items, BATCH, NULL, NULL), BATCH);
	check_int(ring_length(lane_of(&fixture)), 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, BATCH);
	fixture_close(&fixture);
	free(items);
}

/* In the next test there are more threads than near lanes, so some threads have far lanes. All of
 * them use batches at the same time. */
static struct {
	struct fixture fixture;
	pthread_barrier_t line;
	struct tw_item *items;
	atomic_int far;
	atomic_int scheduled;
	atomic_int cancelled;
} crowd;

static void *crowd_body(void *argument)
{
	struct tw_handle handles[FEW];

	(void)tw_thread_attach();
	atomic_fetch_add(&crowd.far, twi_thread()->far != 0);
	(void)pthread_barrier_wait(&crowd.line);
	for (int round = 0; round < 10; round++) {
		atomic_fetch_add(
			&crowd.scheduled,
			tw_schedule_many(crowd.fixture.engine, crowd.items, FEW, handles, NULL));
		atomic_fetch_add(&crowd.cancelled, tw_cancel_many(handles, FEW / 2, NULL));
	}
	(void)pthread_barrier_wait(&crowd.line);
	return argument;
}

Test(batch_rings, batches_of_far_lanes_lose_nothing)
{
	pthread_t thread[THREADS];

	runs = 0;
	crowd.items = items_make(FEW, NS_PER_S);
	fixture_open(&crowd.fixture, NULL);
	check_int(pthread_barrier_init(&crowd.line, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_create(&thread[i], NULL, crowd_body, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_join(thread[i], NULL), 0);
	check_at_least(crowd.far, 4);
	check_int(crowd.scheduled, THREADS * 10 * FEW);
	check_int(crowd.cancelled, THREADS * 10 * (FEW / 2));
	fixture_advance(&crowd.fixture, 2 * NS_PER_S);
	check_int(runs, crowd.scheduled - crowd.cancelled);
	check_int(stats_of(crowd.fixture.engine).scheduled, crowd.scheduled);
	check_int(stats_of(crowd.fixture.engine).cancelled, crowd.cancelled);
	fixture_close(&crowd.fixture);
	check_int(pthread_barrier_destroy(&crowd.line), 0);
	free(crowd.items);
}

/* The first batch of a lane must make the lane's ring and use it. */
Test(batch_rings, first_batch_makes_the_ring)
{
	struct fixture fixture;
	struct tw_item *items = items_make(FEW, NS_PER_S);

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_many(fixture.engine, items, FEW, NULL, NULL), FEW);
	check_int(twi_ring_pushed(&lane_of(&fixture)->ring), FEW);
	check_true(!links_used(lane_of(&fixture)));
	fixture_close(&fixture);
	free(items);
}

/*
 * When UNSEEN new timeouts wait for a sleeping worker, it must be woken, also if batches schedule
 * them. The test schedules twice that many, because the worker may have seen the first ones before
 * it slept.
 */
Test(batch_rings, many_unseen_timeouts_wake_a_sleeping_worker)
{
	enum { UNSEEN = TWI_UNITS_MAX * TWI_UNIT_TIMEOUTS };
	struct fixture fixture;
	struct tw_item *items = items_make(UNSEEN, TW_NEVER);
	struct tw_handle *handles = calloc(UNSEEN, sizeof *handles);
	uint64_t limit = PATIENCE_NS / NS_PER_MS;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	fixture_flush(&fixture);
	check_int(tw_schedule_many(fixture.engine, items, UNSEEN, handles, NULL), UNSEEN);
	check_int(tw_schedule_many(fixture.engine, items, UNSEEN, NULL, NULL), UNSEEN);
	while (stats_of(fixture.engine).transferred < UNSEEN && limit-- > 0)
		sleep_ns(NS_PER_MS);
	check_at_least(stats_of(fixture.engine).transferred, UNSEEN);
	check_int(tw_cancel_many(handles, UNSEEN, NULL), UNSEEN);
	fixture_close(&fixture);
	free(items);
	free(handles);
}

/* The bound of the previous test must hold also for timeouts that are cancelled in the wheel. */
Test(batch_rings, many_unseen_cancels_wake_a_sleeping_worker)
{
	enum { UNSEEN = TWI_UNITS_MAX * TWI_UNIT_TIMEOUTS };
	struct fixture fixture;
	struct tw_item *items = items_make(UNSEEN, NS_PER_S);
	struct tw_handle *handles = calloc((size_t)2 * UNSEEN, sizeof *handles);
	uint64_t limit = PATIENCE_NS / NS_PER_MS;
	struct twi_worker *worker;

	fixture_open(&fixture, NULL);
	worker = &fixture.engine->worker;
	for (int half = 0; half < 2; half++) {
		check_int(tw_schedule_many(fixture.engine, items, UNSEEN, handles + half * UNSEEN,
					   NULL),
			  UNSEEN);
		fixture_flush(&fixture);
	}
	check_int(tw_cancel_many(handles, (size_t)2 * UNSEEN, NULL), 2 * UNSEEN);
	while (twi_load_relaxed(&worker->reclaimed_count) < UNSEEN && limit-- > 0)
		sleep_ns(NS_PER_MS);
	check_at_least(twi_load_relaxed(&worker->reclaimed_count), UNSEEN);
	fixture_close(&fixture);
	free(items);
	free(handles);
}
