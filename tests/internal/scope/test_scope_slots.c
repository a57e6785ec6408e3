/* SPDX-License-Identifier: MIT */
/*
 * How many slots a scope uses over a long time. However many timeouts are scheduled and end, the
 * scope must use at most 64 slots, plus twice the greatest number of timeouts that were pending at
 * once.
 *
 * Seen to fail with these defects: a slot is not freed when its timeout was cancelled, or when it
 * expired; each turn (a walk over the slots) adds slots; turn_over() computes the bound from all
 * slots instead of the members.
 */
#include "scope/scope.h"
#include "scope_scene.h"
#include "slowdown.h"

enum { LIVE_MOST = 500, BOUND_EXTRA = 64 };

static uint64_t used_of(struct tw_scope *scope)
{
	return atomic_load(&scope->used);
}

/* Keeps `live` timeouts pending. Each step cancels the oldest one and schedules another. */
static void live_long(int live, long steps)
{
	static struct tw_handle handle[LIVE_MOST];
	struct tw_scope *scope;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	for (long step = 0; step < steps; step++) {
		long at = step % live;

		if (step >= live)
			check_int(tw_cancel(handle[at]), TW_CANCEL_DONE);
		handle[at] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
		check_at_most(used_of(scope), 2 * live + BOUND_EXTRA);
	}
	check_int(tw_scope_end(scope), live);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

Test(scope_slots, stay_within_twice_the_members)
{
	static const int live[] = {1, 2, 3, 7, 8, 9, 30, 100, LIVE_MOST};

	for (size_t i = 0; i < sizeof live / sizeof live[0]; i++)
		live_long(live[i], 200000 / slowdown());
}

/* Cancels random timeouts and schedules others, while the rest of the members stay pending. */
Test(scope_slots, random_lives_use_few_slots)
{
	static struct tw_handle handle[LIVE_MOST];
	uint64_t random = 1, most = 0, now = 0;
	struct tw_scope *scope;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	for (long step = 0; step < 300000 / slowdown(); step++) {
		uint64_t at;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		at = (random >> 33) % ((random >> 63) != 0 ? LIVE_MOST : 20);
		if (tw_handle_is_set(handle[at])) {
			check_int(tw_cancel(handle[at]), TW_CANCEL_DONE);
			handle[at] = TW_HANDLE_NONE;
			now--;
		} else {
			handle[at] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
			most = ++now > most ? now : most;
		}
		check_at_most(used_of(scope), 2 * most + BOUND_EXTRA);
	}
	check_int(tw_scope_count(scope), now);
	check_int(tw_scope_end(scope), now);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

/* Timeouts that expire must also free their slots. */
Test(scope_slots, expired_members_free_their_slots)
{
	struct tw_scope *scope;
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 20; i++)
			(void)scope_schedule(scope, 0, &count_kind, &runs);
		fixture_advance(&fixture, NS_PER_MS);
		check_at_most(used_of(scope), 2 * 20 + BOUND_EXTRA);
	}
	check_int(runs, 20000);
	check_int(tw_scope_count(scope), 0);
	scope_close(scope);
	fixture_close(&fixture);
}

/* The chunks must cover all slots without a gap or an overlap. */
Test(scope_slots, chunks_lie_side_by_side)
{
	uint64_t at = 0;

	for (unsigned number = 0; number < TWI_SCOPE_CHUNKS; number++) {
		check_int(twi_chunk_first(number), at);
		check_int(twi_slot_chunk(at), number);
		at += twi_chunk_slots(number);
		check_int(twi_slot_chunk(at - 1), number);
	}
	check_int(at, TWI_SCOPE_SLOTS_MAX);
}
