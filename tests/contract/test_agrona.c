/* SPDX-License-Identifier: MIT */
/*
 * The tests from Agrona's and Kafka's suites for their wheels: single timeouts, and timeouts whose
 * callbacks keep them for another run. Each test runs with both of our wheels.
 */
#include "probe.h"

#include <stdlib.h>

/* Defines a test for each wheel. The body follows the macro and gets the wheel as its parameter. */
#define TEST_OF_WHEEL(suite, name)                                                                 \
	static void suite##_##name(enum tw_wheel wheel);                                           \
	Test(suite, name##_hashed)                                                                 \
	{                                                                                          \
		suite##_##name(TW_WHEEL_HASHED);                                                   \
	}                                                                                          \
	Test(suite, name##_hierarchical)                                                           \
	{                                                                                          \
		suite##_##name(TW_WHEEL_HIERARCHICAL);                                             \
	}                                                                                          \
	static void suite##_##name(enum tw_wheel wheel)

/* Opens a wheel of 8 slots of 1 ms. Agrona's wheel has 1,024 slots of 2^20 ns. A small wheel
 * completes a revolution sooner. */
static void open_small(struct fixture *fixture, enum tw_wheel wheel)
{
	struct tw_options options = fixture_options();

	options.slots = 8;
	options.wheel = wheel;
	fixture_open(fixture, &options);
}

TEST_OF_WHEEL(agrona, edge_of_a_tick)
{
	struct fixture fixture;
	struct probe before;
	struct probe after;

	open_small(&fixture, wheel);
	probe_schedule(&fixture, &before, 5 * NS_PER_MS - 1);
	probe_schedule(&fixture, &after, 5 * NS_PER_MS);
	fixture_advance_to(&fixture, 5 * NS_PER_MS);
	check_int(before.runs, 1);
	check_int(after.runs, 0);
	fixture_advance_to(&fixture, 6 * NS_PER_MS);
	check_int(after.runs, 1);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(agrona, timeout_several_rounds_away_fires_on_its_tick)
{
	struct fixture fixture;
	struct probe probe;
	int i;

	open_small(&fixture, wheel);
	probe_schedule(&fixture, &probe, 63 * NS_PER_MS);
	for (i = 0; i < 63; i++) {
		fixture_advance(&fixture, NS_PER_MS);
		check_int(probe.runs, 0);
	}
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(agrona, two_in_one_tick)
{
	struct fixture fixture;
	struct probe first;
	struct probe second;

	open_small(&fixture, wheel);
	probe_schedule(&fixture, &first, 15 * NS_PER_MS);
	probe_schedule(&fixture, &second, 15 * NS_PER_MS + 500);
	fixture_advance_to(&fixture, 16 * NS_PER_MS - 1);
	check_int(first.runs + second.runs, 0);
	fixture_advance(&fixture, 1);
	check_int(first.runs, 1);
	check_int(second.runs, 1);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(agrona, same_slot_other_round)
{
	struct fixture fixture;
	struct probe first;
	struct probe second;

	open_small(&fixture, wheel);
	probe_schedule(&fixture, &second, (15 + 8) * NS_PER_MS);
	probe_schedule(&fixture, &first, 15 * NS_PER_MS);
	fixture_advance_to(&fixture, 16 * NS_PER_MS);
	check_int(first.runs, 1);
	check_int(second.runs, 0);
	fixture_advance_to(&fixture, 24 * NS_PER_MS - 1);
	check_int(second.runs, 0);
	fixture_advance(&fixture, 1);
	check_int(second.runs, 1);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(agrona, cancelled_one_of_two_in_a_slot)
{
	struct fixture fixture;
	struct probe first;
	struct probe second;
	struct tw_handle handle;

	open_small(&fixture, wheel);
	handle = probe_schedule(&fixture, &first, 15 * NS_PER_MS);
	probe_schedule(&fixture, &second, 15 * NS_PER_MS);
	fixture_flush(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_int(first.runs, 0);
	check_int(second.runs, 1);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(agrona, past_deadline_fires_on_the_next_tick)
{
	struct fixture fixture;
	struct probe probe;

	open_small(&fixture, wheel);
	fixture_advance(&fixture, 15 * NS_PER_MS);
	probe_init(&probe, fixture.engine);
	must_schedule_at(fixture.engine, 3 * NS_PER_MS, &probe_kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/*
 * A timeout whose callback keeps it for `keeps` more runs, each in the next tick, and then lets it
 * end.
 */
struct keeper {
	int keeps;
	atomic_int runs;
};

static void on_keeper(struct tw_handle self, void *arg)
{
	struct keeper *keeper = arg;

	if (atomic_fetch_add(&keeper->runs, 1) < keeper->keeps)
		(void)tw_period_next(self, 0);
	else
		(void)tw_cancel(self);
}

static const struct tw_kind keeper_kind = TW_KIND(on_keeper, NULL);

TEST_OF_WHEEL(agrona, kept_by_its_callback_it_fires_again)
{
	struct tw_period period = TW_PERIOD_DELAY(TW_NEVER);
	struct keeper keeper = {.keeps = 2};
	struct fixture fixture;

	period.first_ns = 15 * NS_PER_MS;
	open_small(&fixture, wheel);
	check_int(tw_schedule_periodic(fixture.engine, &period, &keeper_kind, &keeper, NULL), 0);
	fixture_advance_to(&fixture, 15 * NS_PER_MS);
	for (int run = 0; run < 3; run++) {
		check_int(keeper.runs, run);
		check_int(tw_engine_pending(fixture.engine), 1);
		fixture_advance(&fixture, NS_PER_MS);
	}
	check_int(keeper.runs, 3);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(keeper.runs, 3);
	fixture_close(&fixture);
}

enum { GROWTH = 50000 };

TEST_OF_WHEEL(agrona, growth_keeps_handles_valid)
{
	struct tw_handle *handles = calloc(GROWTH, sizeof(*handles));
	struct tw_options options = fixture_options();
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	options.slots = 8;
	options.check = TW_CHECK_CHEAP;
	options.wheel = wheel;
	fixture_open(&fixture, &options);
	for (i = 0; i < GROWTH; i++)
		handles[i] = must_schedule_at(fixture.engine, NS_PER_S + i, &count_kind, &runs);
	fixture_flush(&fixture);
	for (i = 0; i < GROWTH; i++) {
		check_int(tw_timeout_get(handles[i], &timeout), 0);
		check_int(timeout.deadline_ns, NS_PER_S + i);
		check_int(timeout.state, TW_STATE_INIT);
	}
	for (i = 0; i < GROWTH; i += 2)
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, GROWTH / 2);
	fixture_close(&fixture);
	free(handles);
}

/*
 * In Kafka's test, a wheel of 3 slots of 1 ms gets delays of 0 to 499 ms, which take many
 * revolutions. All timeouts must fire in order.
 */
struct in_order {
	int *next;
	int number;
	bool good;
};

static void on_in_order(struct tw_handle self, void *arg)
{
	struct in_order *own = arg;

	(void)self;
	own->good = (*own->next)++ == own->number;
}

static const struct tw_kind in_order_kind = TW_KIND(on_in_order, NULL);

TEST_OF_WHEEL(kafka, wheel_of_three_fires_500_delays_in_order)
{
	struct tw_options options = fixture_options();
	struct in_order all[500];
	struct fixture fixture;
	int next = 0;
	int i;

	options.slots = 3;
	options.wheel = wheel;
	fixture_open(&fixture, &options);
	for (i = 499; i >= 0; i--) {
		all[i] = (struct in_order){&next, i, false};
		must_schedule(fixture.engine, i * NS_PER_MS + 1, &in_order_kind, &all[i]);
	}
	for (i = 0; i < 501; i++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(next, 500);
	for (i = 0; i < 500; i++)
		check_true(all[i].good);
	fixture_close(&fixture);
}

TEST_OF_WHEEL(kafka, negative_delays_fire_at_once)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	options.wheel = wheel;
	fixture_open(&fixture, &options);
	for (i = -5; i < 0; i++)
		must_schedule(fixture.engine, i * NS_PER_MS + 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 5);
	fixture_close(&fixture);
}
