/* SPDX-License-Identifier: MIT */
/*
 * A timeout is pushed after the worker has read the timeout's lane in a turn. The timeout's tick
 * ends before this turn does. The timeout must fire in the next turn, which follows at once, and
 * not a tick later.
 *
 * Seen to fail with this defect: the turn reads the time after the transfer, so that the wheel
 * passes a tick before it has all timeouts of that tick.
 */
#include "race.h"
#include "stand.h"

#include <stdio.h>
#include <tickwheel.h>

#define NS_PER_MS INT64_C(1000000)

enum { PATIENCE_MS = 20000, TICK_MS = 1000 };

static struct stand stand = {.point = "turn:transferred"};
static _Atomic int armed;
static _Atomic int fired;

static void on_arm(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	stand_arm(&stand);
	atomic_fetch_add(&armed, 1);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind arm_kind = TW_KIND(on_arm, NULL);
static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void clock_move(struct tw_clock *clock, int64_t now_ms)
{
	RACE_CHECK(tw_clock_set(clock, now_ms * NS_PER_MS) == 0);
}

static void await(_Atomic int *count)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;

	while (atomic_load(count) == 0) {
		RACE_CHECK(now_ms() < until_ms);
		nap();
	}
}

int main(void)
{
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;

	race_watchdog(100);
	RACE_CHECK(tw_clock_create_virtual(0, &clock) == 0);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_MS * NS_PER_MS;
	options.clock = clock;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_schedule(engine, 1, &arm_kind, NULL, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	clock_move(clock, TICK_MS);
	/*
	 * Does not use flush, because a worker that has already stopped at its point would not
	 * serve the flush.
	 */
	await(&armed);
	/*
	 * Moves the clock again and again, because a move makes a turn only if the worker sleeps.
	 * The timeout is not due yet.
	 */
	for (int64_t ms = TICK_MS + 1; ms < 2 * TICK_MS - 10 && !stand_await(&stand, 5); ms++)
		clock_move(clock, ms);
	RACE_CHECK(stand_await(&stand, 0));
	clock_move(clock, 2 * TICK_MS - 10);
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	clock_move(clock, 2 * TICK_MS + 10);
	stand_release(&stand);
	await(&fired);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(clock) == 0);
	puts("fired in the turn that followed");
	return 0;
}
