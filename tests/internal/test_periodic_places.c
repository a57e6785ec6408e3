/* SPDX-License-Identifier: MIT */
/*
 * Cancels periodic timeouts (chains) in each place where they can be: in a ring, in a link queue,
 * in the wheel, in a queue after a reschedule, and while the worker makes up for missed runs.
 * Another thread cancels them, or a callback on the worker does. A chain has two blocks. Each must
 * be given back once, not twice. test_periodic_rejections.c checks that they are given back at all.
 */
#include "periodic_scene.h"
#include "ringless.h"

#include <stdlib.h>

/* If a block is given back twice, two of these timeouts get it. */
enum { CHAINS = 700, BLOCKS = 4 * CHAINS };

static int by_node(const void *left, const void *right)
{
	uintptr_t a = (uintptr_t)((const struct tw_handle *)left)->node;
	uintptr_t b = (uintptr_t)((const struct tw_handle *)right)->node;

	return (a > b) - (a < b);
}

static void check_blocks_once(struct fixture *fixture)
{
	static struct tw_handle handle[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		handle[i] = must_schedule(fixture->engine, TW_NEVER, &count_kind, NULL);
	qsort(handle, BLOCKS, sizeof(handle[0]), by_node);
	for (int i = 1; i < BLOCKS; i++)
		check_true(handle[i].node != handle[i - 1].node);
	for (int i = 0; i < BLOCKS; i++)
		check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
}

enum place {
	IN_RING,
	IN_RING_MOVED,
	LINKED,
	LINKED_MOVED,
	WHEELED,
	WHEELED_MOVED,
	WHEELED_AND_QUEUED,
	AFTER_A_RUN,
	PLACES,
};

static void all_move(const struct tw_handle *handle, int64_t delay_ns)
{
	for (int i = 0; i < CHAINS; i++)
		check_int(tw_reschedule(handle[i], delay_ns), TW_RESCHEDULE_DONE);
}

static bool place_moved(enum place place)
{
	return place == IN_RING_MOVED || place == LINKED_MOVED || place == WHEELED_MOVED ||
	       place == WHEELED_AND_QUEUED;
}

/* Brings all chains into `place`. They stay there, because a callback holds the worker. */
static void place_reach(struct fixture *fixture, struct probe *probe, struct tw_handle *handle,
			enum place place, struct gate *gate)
{
	if (place < WHEELED)
		gate_hold(fixture, gate);
	for (int i = 0; i < CHAINS; i++)
		handle[i] = probe_repeat(fixture, &probe[i]);
	if (place >= WHEELED) {
		fixture_advance(fixture, (place == AFTER_A_RUN ? 11 : 0) * NS_PER_MS);
		gate_hold(fixture, gate);
	}
	if (place_moved(place))
		all_move(handle, (place == WHEELED_MOVED ? 50 : 1) * NS_PER_MS);
}

static void cancelled_in(enum place place)
{
	static struct probe probe[CHAINS];
	struct tw_handle handle[CHAINS];
	struct fixture fixture;
	struct gate gate;

	ringless_set(place == LINKED || place == LINKED_MOVED);
	fixture_open(&fixture, NULL);
	place_reach(&fixture, probe, handle, place, &gate);
	for (int i = 0; i < CHAINS; i++) {
		check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
		check_end(&probe[i], TW_END_CANCELLED);
		check_int(tw_cancel(handle[i]), TW_CANCEL_CANCELLED);
	}
	check_int(tw_engine_pending(fixture.engine), 0);
	gate_open(&gate);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_blocks_once(&fixture);
	for (int i = 0; i < CHAINS; i++) {
		check_int(probe[i].runs, place == AFTER_A_RUN);
		check_end(&probe[i], TW_END_CANCELLED);
	}
	check_int(stats_of(fixture.engine).cancelled, CHAINS + BLOCKS);
	fixture_close(&fixture);
	ringless_set(false);
}

Test(periodic_places, cancel_in_each_place)
{
	for (enum place place = IN_RING; place < PLACES; place++)
		cancelled_in(place);
}

/* The timeout whose callback, on the worker, cancels all chains. */
struct killer {
	struct tw_handle handle[CHAINS];
	atomic_int done;
};

static void on_killer(struct tw_handle self, void *arg)
{
	struct killer *killer = arg;

	(void)self;
	for (int i = 0; i < CHAINS; i++)
		atomic_fetch_add(&killer->done,
				 tw_cancel_wait(killer->handle[i], TW_NEVER) == TW_CANCEL_DONE);
}

static const struct tw_kind killer_kind = TW_KIND(on_killer, NULL);

/*
 * Cancels all chains in a callback, the killer. If `first` is true, it runs before the chains of
 * its tick, otherwise after them. If `ms` is 95, the chains have missed runs, for which the worker
 * makes up.
 */
static void killed_by_a_callback(int64_t ms, bool first)
{
	static struct probe probe[CHAINS];
	static struct killer killer;
	struct fixture fixture;

	killer.done = 0;
	fixture_open(&fixture, NULL);
	if (first)
		must_schedule(fixture.engine, 10 * NS_PER_MS, &killer_kind, &killer);
	for (int i = 0; i < CHAINS; i++)
		killer.handle[i] = probe_repeat(&fixture, &probe[i]);
	if (!first)
		must_schedule(fixture.engine, 10 * NS_PER_MS, &killer_kind, &killer);
	fixture_flush(&fixture);
	fixture_advance_to(&fixture, ms * NS_PER_MS);
	check_int(killer.done, CHAINS);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_blocks_once(&fixture);
	for (int i = 0; i < CHAINS; i++) {
		check_at_most(probe[i].runs, 1);
		check_end(&probe[i], TW_END_CANCELLED);
	}
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

Test(periodic_places, cancel_by_another_callback)
{
	killed_by_a_callback(11, true);
	killed_by_a_callback(11, false);
	killed_by_a_callback(95, true);
	killed_by_a_callback(95, false);
}
