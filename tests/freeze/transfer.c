/* SPDX-License-Identifier: MIT */
/*
 * The worker stops after it has taken a timeout from ingress and read its state word. Then another
 * thread cancels the timeout. The timeout must not get into the wheel, because its memory serves
 * the next timeouts. The test uses the ring of the lane, then its link queue.
 *
 * Seen to fail with this defect: node_transfer(), for either queue, inserts the node into the wheel
 * before it steps to WHEELED. The check of the wheel then finds a free node.
 */
#include "base/test_point.h"
#include "race.h"
#include "ringless.h"

#include <string.h>
#include <tickwheel.h>
#include <time.h>

enum { NEXT = 1000 };

static const char *point;
static _Atomic bool armed, frozen, released;
static _Atomic int runs;

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void twi_test_point(const char *name)
{
	if (!atomic_load(&armed) || strcmp(name, point) != 0)
		return;
	atomic_store(&armed, false);
	atomic_store(&frozen, true);
	while (!atomic_load(&released))
		nap();
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((_Atomic int *)arg, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void cancel_in_transfer(struct tw_engine *engine, struct tw_clock *clock)
{
	struct tw_handle handle;
	int64_t now_ns = 0;

	atomic_store(&armed, true);
	RACE_CHECK(tw_schedule(engine, 1000000, &kind, &runs, &handle) == 0);
	/*
	 * Waits until the worker has stopped at its point. If the worker slept before the push,
	 * each move of the clock makes another turn.
	 */
	while (!atomic_load(&frozen)) {
		RACE_CHECK(tw_clock_set(clock, ++now_ns) == 0);
		nap();
	}
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	atomic_store(&released, true);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

static void play(const char *where, bool ringless)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;

	point = where;
	atomic_store(&frozen, false);
	atomic_store(&released, false);
	atomic_store(&runs, 0);
	ringless_set(ringless);
	RACE_CHECK(tw_clock_create_virtual(0, &clock) == 0);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.check = TW_CHECK_FULL;
	options.clock = clock;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	cancel_in_transfer(engine, clock);
	for (int i = 0; i < NEXT; i++)
		RACE_CHECK(tw_schedule(engine, 1000000, &kind, &runs, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(tw_clock_set(clock, 5000000) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(atomic_load(&runs) == NEXT);
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.check_failures == 0 && stats.cancelled == 1 && stats.pending == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(clock) == 0);
}

int main(void)
{
	race_watchdog(30);
	play("collect:seen", false);
	play("transfer:taken", true);
	return 0;
}
