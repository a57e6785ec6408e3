/* SPDX-License-Identifier: MIT */
/*
 * TW_ENGINE_ORDERED: timeouts must run by deadline, with both wheels, inside a tick, across batches
 * and after a stall.
 *
 * Seen to fail with these defects: the list of due timeouts is not sorted, is sorted by tick only,
 * or is sorted one batch at a time; a cancelled timeout stays in the list; a stop forgets the rest
 * of the list; a rescheduled timeout is sorted by its old time.
 */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 3000 };

static struct order {
	int64_t deadline_ns;
	struct tw_handle handle;
} orders[COUNT];

static struct {
	int64_t last_ns;
	int count;
	int wrong;
	int cancels; /* how many timeouts each callback cancels, at random */
	int cancelled;
} seen;

static void order_run(struct tw_handle self, void *argument)
{
	const struct order *order = argument;

	(void)self;
	seen.wrong += order->deadline_ns < seen.last_ns;
	seen.last_ns = order->deadline_ns;
	seen.count++;
	for (int i = 0; i < seen.cancels && seen.cancelled < COUNT / 2; i++)
		seen.cancelled += tw_cancel(orders[rand() % COUNT].handle) == TW_CANCEL_DONE;
}

static const struct tw_kind order_kind = TW_KIND(order_run, NULL);

static void ordered_open(struct fixture *fixture, uint32_t wheel)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_ORDERED;
	options.wheel = wheel;
	fixture_open(fixture, &options);
}

static void orders_schedule(struct fixture *fixture, int64_t from_ns, int64_t span_ns)
{
	for (int i = 0; i < COUNT; i++) {
		orders[i].deadline_ns = from_ns + (int64_t)((uint64_t)rand() % (uint64_t)span_ns);
		check_int(tw_schedule_at(fixture->engine, orders[i].deadline_ns, &order_kind,
					 &orders[i], &orders[i].handle),
			  0);
	}
	fixture_flush(fixture);
}

#define FOR_EACH_WHEEL(wheel)                                                                      \
	for (uint32_t wheel = TW_WHEEL_HASHED; wheel <= TW_WHEEL_HIERARCHICAL; wheel++)

Test(ordered, timeouts_of_one_tick_run_by_deadline)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		ordered_open(&fixture, wheel);
		orders_schedule(&fixture, 7 * fixture.tick_ns, fixture.tick_ns);
		fixture_advance_to(&fixture, 8 * fixture.tick_ns);
		check_int(seen.count, COUNT);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}

/*
 * The deadlines span many revolutions of the hashed wheel and many levels of the hierarchical one.
 * All are due at once.
 */
Test(ordered, after_a_stall_timeouts_run_by_deadline)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		ordered_open(&fixture, wheel);
		orders_schedule(&fixture, fixture.tick_ns, 100000 * fixture.tick_ns);
		fixture_advance_to(&fixture, 200000 * fixture.tick_ns);
		check_int(seen.count, COUNT);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}

/* Rescheduled timeouts leave their slots at the old time, but must run in the order of the new
 * deadlines. */
Test(ordered, rescheduled_run_by_the_new_deadline_after_a_stall)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		ordered_open(&fixture, wheel);
		orders_schedule(&fixture, fixture.tick_ns, 1000 * fixture.tick_ns);
		for (int i = 0; i < COUNT; i += 2) {
			orders[i].deadline_ns += rand() % 200 * fixture.tick_ns;
			check_int(tw_reschedule_at(orders[i].handle, orders[i].deadline_ns),
				  TW_RESCHEDULE_DONE);
		}
		fixture_advance_to(&fixture, 2000 * fixture.tick_ns);
		check_int(seen.count, COUNT);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}

/* Callbacks cancel timeouts that are due after them. */
Test(ordered, cancelled_timeouts_of_a_tick_do_not_run)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		seen.cancels = 3;
		ordered_open(&fixture, wheel);
		orders_schedule(&fixture, 7 * fixture.tick_ns, fixture.tick_ns);
		fixture_advance_to(&fixture, 8 * fixture.tick_ns);
		check_at_least(seen.cancelled, COUNT / 4);
		check_int(seen.count, COUNT - seen.cancelled);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}

static struct tw_engine *stopping;

static void stop_begin(struct tw_handle self, void *argument)
{
	(void)self;
	atomic_store((atomic_int *)argument, 1);
	while (tw_engine_state(stopping) == TW_ENGINE_RUNNING)
		;
}

static const struct tw_kind stop_kind = TW_KIND(stop_begin, NULL);

/* The first timeout of a tick holds the worker until the engine stops. Stop must hand back the
 * rest of the tick. */
Test(ordered, stop_hands_back_the_rest_of_a_tick)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;
		atomic_int inside = 0;

		memset(&seen, 0, sizeof(seen));
		ordered_open(&fixture, wheel);
		stopping = fixture.engine;
		check_int(tw_schedule_at(fixture.engine, 7 * fixture.tick_ns, &stop_kind, &inside,
					 NULL),
			  0);
		orders_schedule(&fixture, 7 * fixture.tick_ns + 1, fixture.tick_ns - 1);
		check_int(tw_clock_set(fixture.clock, 8 * fixture.tick_ns), 0);
		check_true(wait_until_at_least(&inside, 1));
		fixture_stop(&fixture);
		check_int(seen.count + fixture.back.count, COUNT);
		check_at_least(fixture.back.count, COUNT - 1);
		fixture_close(&fixture);
	}
}

/* A loop runs a few timeouts per poll. The rest must keep its order, even if some of it is
 * cancelled. */
Test(ordered, a_few_per_poll_keep_their_order)
{
	enum { BUDGET = 7 };

	FOR_EACH_WHEEL(wheel)
	{
		struct tw_options options = fixture_options();
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		seen.cancels = 1;
		options.flags = TW_ENGINE_ORDERED | TW_ENGINE_LOOP;
		options.wheel = wheel;
		fixture_open(&fixture, &options);
		check_int(tw_engine_start(fixture.engine), 0);
		check_int(tw_engine_poll(fixture.engine, 0), 0);
		orders_schedule(&fixture, 0, 3 * fixture.tick_ns);
		check_int(tw_clock_set(fixture.clock, 5 * fixture.tick_ns), 0);
		while (seen.count + seen.cancelled < COUNT) {
			check_true(tw_engine_next_due(fixture.engine) <= 5 * fixture.tick_ns);
			check_true(tw_engine_poll(fixture.engine, BUDGET) > 0);
		}
		check_at_least(seen.cancelled, COUNT / 4);
		check_int(tw_engine_next_due(fixture.engine), TW_NEVER);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}

/* The clock moves tick by tick, so each turn sorts the timeouts of only one tick. */
Test(ordered, ticks_one_by_one_run_in_order)
{
	FOR_EACH_WHEEL(wheel)
	{
		struct fixture fixture;

		memset(&seen, 0, sizeof(seen));
		ordered_open(&fixture, wheel);
		orders_schedule(&fixture, fixture.tick_ns, 300 * fixture.tick_ns);
		for (int i = 2; i <= 302; i++)
			fixture_advance_to(&fixture, i * fixture.tick_ns);
		check_int(seen.count, COUNT);
		check_int(seen.wrong, 0);
		fixture_close(&fixture);
	}
}
