/* SPDX-License-Identifier: MIT */
/*
 * Tests when the worker takes a turn, and which work it leaves undone when its engine is closed.
 *
 * Seen to fail with these defects: the worker finishes a batch after stop has closed the engine; a
 * park is counted only when it has ended; each unit of 64 timeouts causes a wake-up; a batch ends
 * when each lane has used its share; callbacks continue while ingress is full.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>

enum { BATCH = 100, UNITS = 64 * 8 };

static atomic_int unexpired;

static void count_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
		       void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
}

Test(turns, what_is_due_and_has_not_begun_is_unexpired)
{
	static atomic_int runs;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	must_schedule(fixture.engine, 1, &gate_kind, &gate);
	for (int i = 0; i < BATCH; i++)
		must_schedule(fixture.engine, 1, &count_kind, &runs);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns + 10 * fixture.tick_ns), 0);
	gate_await(&gate);
	check_int(tw_engine_stop(fixture.engine, count_back, NULL, 0), -ETIMEDOUT);
	gate_open(&gate);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	/*
	 * The timeouts that the worker took before the gate have run. The others were handed back.
	 */
	check_int(atomic_load(&runs) + atomic_load(&unexpired), BATCH);
	check_at_least(atomic_load(&unexpired), 1);
	check_int(tw_engine_destroy(fixture.engine), 0);
	check_int(tw_clock_destroy(fixture.clock), 0);
}

/* Twice the number of timeouts with which ingress counts as full (TWI_UNITS_MAX units of 64). */
enum { UNSEEN = 64 * 1024 };

struct look {
	struct tw_engine *engine;
	_Atomic uint64_t turns;
};

static void look_callback(struct tw_handle self, void *arg)
{
	struct look *look = arg;

	(void)self;
	atomic_store(&look->turns, stats_of(look->engine).turns);
}

/* While a callback runs, ingress becomes full. A turn must empty it before the next callback. */
Test(turns, full_ingress_comes_between_callbacks)
{
	static const struct tw_kind looking = TW_KIND(look_callback, NULL);
	struct fixture fixture;
	struct look look;
	struct gate gate;
	uint64_t turns;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	look.engine = fixture.engine;
	must_schedule(fixture.engine, NS_PER_MS, &gate_kind, &gate);
	must_schedule(fixture.engine, NS_PER_MS, &looking, &look);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns + 10 * fixture.tick_ns), 0);
	gate_await(&gate);
	turns = stats_of(fixture.engine).turns;
	for (int i = 0; i < UNSEEN + 64; i++)
		must_schedule(fixture.engine, TW_NEVER, &probe_kind, NULL);
	gate_open(&gate);
	check_int(tw_engine_flush(fixture.engine, PATIENCE_NS), 0);
	check_int(stats_of(fixture.engine).expired, 2);
	check_at_least(atomic_load(&look.turns), turns + 1);
	fixture.now_ns += 10 * fixture.tick_ns;
	fixture_close(&fixture);
}

/* In virtual time no timer wakes the worker, so it stays parked while the test looks. */
Test(turns, a_park_counts_while_it_lasts)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_start(fixture.engine), 0);
	check_true(asleep_park_await(fixture.engine));
	check_at_least(stats_of(fixture.engine).parks, 1);
	fixture_close(&fixture);
}

static void on_announce(struct tw_handle self, void *arg)
{
	(void)self;
	asleep_announce(arg);
}

/*
 * When a call that wakes a thread returns, the kernel no longer reports that thread as asleep. So
 * if the worker is asleep afterwards, in the same park, no call has woken it.
 */
Test(turns, a_few_units_do_not_wake_the_worker)
{
	static const struct tw_kind announcing = TW_KIND(on_announce, NULL);
	struct fixture fixture;
	asleep_thread worker = 0;
	struct tw_stats before;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 0, &announcing, &worker);
	fixture_flush(&fixture);
	check_true(asleep_await(&worker));
	before = stats_of(fixture.engine);
	for (int i = 0; i < UNITS; i++) {
		struct tw_handle handle =
			must_schedule(fixture.engine, TW_NEVER, &probe_kind, NULL);

		check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	check_true(asleep_await(&worker));
	check_int(stats_of(fixture.engine).parks, before.parks);
	check_int(stats_of(fixture.engine).turns, before.turns);
	fixture_close(&fixture);
}

static void *schedule_one(void *argument)
{
	struct fixture *fixture = argument;

	return tw_schedule(fixture->engine, TW_NEVER, &probe_kind, NULL, NULL) == 0 ? argument
										    : NULL;
}

/* One of two lanes has far more entries than its share of a batch. Flush must wait for all of
 * them. */
Test(turns, lane_with_more_timeouts_uses_the_rest_of_a_batch)
{
	static atomic_int runs;
	struct tw_options options = fixture_options();
	struct fixture fixture;
	pthread_t thread;

	options.transfer_batch = 10;
	fixture_open(&fixture, &options);
	check_int(pthread_create(&thread, NULL, schedule_one, &fixture), 0);
	check_int(pthread_join(thread, NULL), 0);
	for (int i = 0; i < BATCH; i++)
		must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, 2 * fixture.tick_ns);
	check_int(atomic_load(&runs), BATCH);
	fixture_close(&fixture);
}

Test(turns, stats_report_the_wheels_memory)
{
	struct fixture fixture;
	uint64_t empty_bytes;

	fixture_open(&fixture, NULL);
	empty_bytes = stats_of(fixture.engine).wheel_bytes;
	check_at_least(empty_bytes, 1);
	must_schedule(fixture.engine, NS_PER_S, &probe_kind, NULL);
	fixture_flush(&fixture);
	check_int(stats_of(fixture.engine).wheel_allocations, 1);
	check_at_least(stats_of(fixture.engine).wheel_bytes, empty_bytes + 1);
	fixture_close(&fixture);
}

/*
 * A callback holds the worker while five timeouts are scheduled. Otherwise a turn might transfer
 * only some of them.
 */
Test(turns, the_largest_transfer_is_kept)
{
	struct fixture fixture;
	struct gate gate;
	uint64_t transfers;

	fixture_open(&fixture, NULL);
	(void)gate_hold(&fixture, &gate);
	transfers = stats_of(fixture.engine).transfers;
	for (int i = 0; i < 5; i++)
		must_schedule(fixture.engine, TW_NEVER, &probe_kind, NULL);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(stats_of(fixture.engine).largest_transfer, 5);
	check_int(stats_of(fixture.engine).transfers, transfers + 1);
	must_schedule(fixture.engine, TW_NEVER, &probe_kind, NULL);
	fixture_flush(&fixture);
	check_int(stats_of(fixture.engine).largest_transfer, 5);
	check_int(stats_of(fixture.engine).transfers, transfers + 2);
	fixture_close(&fixture);
}
