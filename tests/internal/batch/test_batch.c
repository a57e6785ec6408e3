/* SPDX-License-Identifier: MIT */
/*
 * tw_schedule_many and tw_schedule_many_at must schedule each item as a single call would, whatever
 * happens to the other items. Batches that end before their last item are in test_batch_ends.c.
 *
 * Seen to fail with these defects:
 * - a batch accepts the time INT64_MIN, or checks only the first item's kind;
 * - it wakes the sleeping worker for the last deadline instead of the earliest, or not at all;
 * - it ignores the kind's slack;
 * - it does not count a rejected item, or leaves the old value in that item's handle;
 * - twi_batch_end() does not raise the ring's tail, so the entries stay invisible;
 * - a batch does not push the chain of nodes for which the ring has no free entry.
 */
#include "batch_scene.h"
#include "ringless.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	FEW = 8,
	/* Enough for several spans and for several magazines. */
	MANY = 5000,
};

/* A value that the library never writes as an error or outcome. */
#define UNTOUCHED 12345

static int64_t deadline_of(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof timeout};

	check_int(tw_timeout_get(handle, &timeout), 0);
	return timeout.deadline_ns;
}

Test(batch, each_at_its_own_time)
{
	static const int64_t delays_ns[FEW] = {
		0, 1, NS_PER_MS, -5, 3 * NS_PER_MS - 1, NS_PER_S, TW_NEVER, INT64_MIN + 1};
	struct fixture fixture;
	struct probe probe[FEW];
	struct tw_item items[FEW];
	struct tw_handle handles[FEW];
	int errors[FEW];
	struct gate gate;

	fixture_open_at(&fixture, NULL, 10 * NS_PER_MS);
	/* Timeouts without a delay must not run before the test has checked them. */
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	for (int i = 0; i < FEW; i++) {
		probe_init(&probe[i], fixture.engine);
		items[i] = item_of(delays_ns[i], &probe_final_kind, &probe[i]);
		errors[i] = UNTOUCHED;
	}
	check_int(tw_schedule_many(fixture.engine, items, FEW, handles, errors), FEW);
	check_int(tw_engine_pending(fixture.engine), FEW);
	for (int i = 0; i < FEW; i++) {
		int64_t delay_ns = delays_ns[i] > 0 ? delays_ns[i] : 0;

		check_int(errors[i], 0);
		check_int(deadline_of(handles[i]), delay_ns == TW_NEVER ? TW_NEVER
						   : delay_ns == 0      ? fixture.now_ns - 1
								   : fixture.now_ns + delay_ns);
	}
	gate_open(&gate);
	fixture_advance(&fixture, NS_PER_S + NS_PER_MS);
	for (int i = 0; i < FEW; i++) {
		check_int(probe[i].runs, delays_ns[i] != TW_NEVER);
		if (delays_ns[i] != TW_NEVER)
			check_true(same_handle(probe[i].self, handles[i]));
	}
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}

Test(batch, deadlines_of_the_engines_time)
{
	static const int64_t deadlines_ns[] = {50 * NS_PER_MS, 0, -7, 51 * NS_PER_MS, TW_NEVER};
	struct tw_item items[5];
	struct tw_handle handles[5];
	struct fixture fixture;
	atomic_int runs = 0;
	struct gate gate;

	fixture_open_at(&fixture, NULL, 20 * NS_PER_MS);
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	for (int i = 0; i < 5; i++)
		items[i] = item_of(deadlines_ns[i], &count_kind, &runs);
	check_int(tw_schedule_many_at(fixture.engine, items, 5, handles, NULL), 5);
	for (int i = 0; i < 5; i++)
		check_int(deadline_of(handles[i]), deadlines_ns[i] < 0 ? -1 : deadlines_ns[i]);
	gate_open(&gate);
	fixture_flush(&fixture);
	fixture_advance_to(&fixture, 51 * NS_PER_MS - 1);
	check_int(runs, 2);
	fixture_advance_to(&fixture, 51 * NS_PER_MS);
	check_int(runs, 3);
	fixture_advance_to(&fixture, 52 * NS_PER_MS);
	check_int(runs, 4);
	fixture_close(&fixture);
}

/* In real time, the thousands of items must share one reading of the clock, so that their deadlines
 * are equal. */
Test(batch, items_share_one_reading_of_the_clock)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct tw_handle *handles = array_make(MANY, sizeof *handles);
	atomic_int runs = 0;
	struct tw_item *items = items_make(MANY, 3600 * NS_PER_S, &count_kind, &runs);
	int64_t before_ns = monotonic_ns();

	check_int(tw_schedule_many(engine, items, MANY, handles, NULL), MANY);
	for (int i = 1; i < MANY; i++)
		check_int(deadline_of(handles[i]), deadline_of(handles[0]));
	check_at_least(deadline_of(handles[0]), before_ns + 3600 * NS_PER_S);
	real_engine_close(engine);
	check_int(runs, 0);
	free(items);
	free(handles);
}

/* The worker sleeps without a deadline, so only the batch can wake it. */
Test(batch, wakes_a_worker_that_sleeps)
{
	struct tw_engine *engine = real_engine_open(NULL);
	atomic_int runs = 0;
	struct tw_item items[FEW];

	for (int round = 1; round <= 20; round++) {
		for (int i = 0; i < FEW; i++)
			items[i] = item_of(i == FEW / 2 ? 0 : TW_NEVER, &count_kind, &runs);
		check_int(tw_schedule_many(engine, items, FEW, NULL, NULL), FEW);
		check_true(wait_until_at_least(&runs, round));
	}
	real_engine_close(engine);
}

Test(batch, handles_and_errors_need_not_be_wanted)
{
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item items[2] = {item_of(0, &count_kind, &runs), item_of(0, NULL, &runs)};
	struct tw_handle handles[2];
	int errors[2];

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_many(fixture.engine, items, 2, NULL, NULL), 1);
	check_int(tw_schedule_many(fixture.engine, items, 2, handles, NULL), 1);
	check_int(tw_schedule_many(fixture.engine, items, 2, NULL, errors), 1);
	check_true(handles[1].node == NULL && handles[1].generation == 0);
	check_int(errors[1], -EINVAL);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 3);
	fixture_close(&fixture);
}

Test(batch, a_bad_item_is_rejected_alone)
{
	struct tw_kind no_callback = TW_KIND(NULL, NULL);
	struct tw_kind unknown_flags = probe_kind;
	struct {
		struct tw_kind known;
		uint64_t unknown;
	} newer = {probe_kind, 1};
	static const int codes[FEW] = {0, -EINVAL, -EINVAL, -EINVAL, -E2BIG, 0, -ERANGE, 0};
	struct tw_item items[FEW];
	struct probe probe[FEW];
	struct fixture fixture;
	struct tw_handle handles[FEW];
	int errors[FEW];

	unknown_flags.flags = 1u << 31;
	newer.known.size = sizeof newer;
	fixture_open(&fixture, NULL);
	for (int i = 0; i < FEW; i++) {
		probe_init(&probe[i], fixture.engine);
		items[i] = item_of(NS_PER_MS, &probe_kind, &probe[i]);
	}
	items[1].kind = NULL;
	items[2].kind = &no_callback;
	items[3].kind = &unknown_flags;
	items[4].kind = &newer.known;
	items[6].time_ns = INT64_MIN;
	check_int(tw_schedule_many(fixture.engine, items, FEW, handles, errors), 3);
	check_int(tw_schedule_many_at(fixture.engine, items, FEW, NULL, NULL), 3);
	fixture_advance(&fixture, NS_PER_S);
	for (int i = 0; i < FEW; i++) {
		check_int(errors[i], codes[i]);
		check_int(probe[i].runs, codes[i] == 0 ? 2 : 0);
		check_int(handles[i].node == NULL, codes[i] != 0);
	}
	/* An item with a wrong argument does not count as rejected. */
	check_int(stats_of(fixture.engine).rejected, 0);
	fixture_close(&fixture);
}

Test(batch, wrong_arguments_reject_the_whole_batch)
{
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item item = item_of(0, &count_kind, &runs);
	struct tw_handle handle = {.generation = UNTOUCHED};
	int error = UNTOUCHED;

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_many(NULL, &item, 1, &handle, &error), -EINVAL);
	check_int(tw_schedule_many(fixture.engine, NULL, 1, &handle, &error), -EINVAL);
	check_int(tw_schedule_many(fixture.engine, &item, 0, &handle, &error), -EINVAL);
	check_int(
		tw_schedule_many(fixture.engine, &item, (size_t)TW_BATCH_MAX + 1, &handle, &error),
		-ERANGE);
	check_int(tw_schedule_many(fixture.engine, &item, SIZE_MAX, &handle, &error), -ERANGE);
	check_int(tw_schedule_many_at(NULL, &item, 1, &handle, &error), -EINVAL);
	check_int(tw_schedule_many_at(fixture.engine, NULL, SIZE_MAX, &handle, &error), -EINVAL);
	check_int(tw_schedule_many_at(fixture.engine, &item, 0, &handle, &error), -EINVAL);
	check_int(tw_schedule_many_at(fixture.engine, &item, (size_t)1 << 31, &handle, &error),
		  -ERANGE);
	check_int(error, UNTOUCHED);
	check_true(handle.node == NULL && handle.generation == UNTOUCHED);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	fixture_close(&fixture);
	check_int(runs, 0);
}

Test(batch, limit_accepts_as_many_items_as_fit)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item *items = items_make(FEW, NS_PER_MS, &count_kind, &runs);
	struct tw_handle handles[FEW];
	int errors[FEW];

	options.pending_limit = 5;
	fixture_open(&fixture, &options);
	/* An item with a wrong argument must not take a place under the limit. */
	items[1].kind = NULL;
	check_int(tw_schedule_many(fixture.engine, items, FEW, handles, errors), 5);
	for (int i = 0; i < FEW; i++)
		check_int(errors[i], i == 1 ? -EINVAL : i > 5 ? -EAGAIN : 0);
	check_int(stats_of(fixture.engine).rejected, 2);
	check_int(tw_cancel_many(handles, FEW, errors), 5);
	check_int(errors[1], -EINVAL);
	check_int(tw_schedule_many(fixture.engine, items, FEW, handles, errors), 5);
	fixture_flush(&fixture);
	check_int(tw_cancel_many(handles, 3, NULL), 2);
	check_int(tw_schedule_many(fixture.engine, items, FEW, NULL, errors), 2);
	check_int(errors[0], 0);
	check_int(errors[2], 0);
	check_int(errors[3], -EAGAIN);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 5);
	fixture_close(&fixture);
	free(items);
}

/* A batch that a callback schedules, and the results of that batch. */
struct nested {
	struct tw_engine *engine;
	struct tw_item item[FEW];
	struct tw_handle handle[FEW];
	int error[FEW];
	int scheduled;
	int cancelled; /* how many items of the second half the callback cancelled */
	atomic_int runs;
};

static void on_nested(struct tw_handle self, void *arg)
{
	struct nested *nested = arg;

	(void)self;
	nested->scheduled =
		tw_schedule_many(nested->engine, nested->item, FEW, nested->handle, nested->error);
	nested->cancelled = tw_cancel_many(nested->handle + FEW / 2, FEW / 2, NULL);
}

static const struct tw_kind nested_kind = TW_KIND(on_nested, NULL);

static void nested_init(struct nested *nested, struct tw_engine *engine)
{
	memset(nested, 0, sizeof *nested);
	nested->engine = engine;
	for (int i = 0; i < FEW; i++)
		nested->item[i] = item_of(i * NS_PER_MS, &count_kind, &nested->runs);
}

Test(batch, a_callback_may_schedule_and_cancel_a_batch)
{
	struct fixture fixture;
	struct nested nested;

	fixture_open(&fixture, NULL);
	nested_init(&nested, fixture.engine);
	/* The worker's turn has already passed the time of this item. */
	nested.item[1].time_ns = -1;
	must_schedule(fixture.engine, 1, &nested_kind, &nested);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(nested.scheduled, FEW);
	check_int(nested.cancelled, FEW / 2);
	fixture_advance(&fixture, NS_PER_S);
	check_int(nested.runs, FEW / 2);
	fixture_close(&fixture);
}

Test(batch, in_a_callback_takes_over_its_place)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct nested nested;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	nested_init(&nested, fixture.engine);
	must_schedule(fixture.engine, 1, &nested_kind, &nested);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(nested.scheduled, 1);
	check_int(nested.error[0], 0);
	check_int(nested.error[1], -EAGAIN);
	check_int(nested.cancelled, 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(nested.runs, 1);
	fixture_close(&fixture);
}

Test(batch, slack_as_by_single_calls)
{
	struct tw_kind slack = TW_KIND_SLACK(count_kind.callback, NULL, 10 * NS_PER_MS);
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item items[FEW];
	struct tw_handle handles[FEW], single;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < FEW; i++)
		items[i] = item_of((i * 3 + 1) * NS_PER_MS, &slack, &runs);
	check_int(tw_schedule_many(fixture.engine, items, FEW, handles, NULL), FEW);
	for (int i = 0; i < FEW; i++) {
		single = must_schedule(fixture.engine, items[i].time_ns, &slack, &runs);
		check_int(deadline_of(handles[i]), deadline_of(single));
	}
	check_true(deadline_of(handles[0]) != items[0].time_ns);
	fixture_close(&fixture);
}

/* In the next test, overdue timeouts of one batch must run in the order of the array. */
static int order[FEW];
static int ordered;

static void on_order(struct tw_handle self, void *arg)
{
	(void)self;
	order[ordered++] = (int)(intptr_t)arg;
}

static void order_check(bool ringless)
{
	static const struct tw_kind kind = TW_KIND(on_order, NULL);
	struct tw_item items[FEW];
	struct fixture fixture;

	ordered = 0;
	ringless_set(ringless);
	fixture_open(&fixture, NULL);
	ringless_set(false);
	fixture_advance(&fixture, NS_PER_S);
	for (int i = 0; i < FEW; i++)
		items[i] = item_of(0, &kind, (void *)(intptr_t)i);
	check_int(tw_schedule_many_at(fixture.engine, items, FEW, NULL, NULL), FEW);
	fixture_flush(&fixture);
	check_int(ordered, FEW);
	for (int i = 0; i < FEW; i++)
		check_int(order[i], i);
	fixture_close(&fixture);
}

Test(batch, in_the_order_of_the_array)
{
	order_check(false);
	/* Without a ring, the batch goes through the link queue. */
	order_check(true);
}
