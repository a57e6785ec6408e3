/* SPDX-License-Identifier: MIT */
/*
 * Ring entries that are used again (queue/ring.h). If a thread schedules and cancels again and
 * again, the worker promises not to read the lane's entries before it has made a barrier. Then the
 * thread soon makes no further push. Its timeouts must get into the wheel nevertheless. When the
 * thread no longer cancels its timeouts, it must push again.
 *
 * Seen to fail with these defects: the worker never promises; it promises after one large batch, or
 * without a barrier in the system; it keeps its promise to a lane whose timeouts go into the wheel,
 * or whose thread schedules rarely; a schedule does not look at the entry, or at the promise.
 */
#include "fixture.h"
#include "rings.h"

#include "engine/engine.h"
#include "thread/barrier.h"
#include "thread/thread.h"

enum {
	MANY = 2000, /* enough for a large batch */
	FEW = 100,
};

static struct fixture fixture;
static atomic_int fired;

static void count(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind count_kind = TW_KIND(count, NULL);

/* Opens a loop engine, whose worker looks at the ring only when the test polls. */
static void begin(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	check_int(tw_loop_exit(fixture.engine), 0);
	engine_use_rings(fixture.engine);
}

static void end(void)
{
	fixture_close(&fixture);
}

static void poll_once(void)
{
	check_true(tw_engine_poll(fixture.engine, 0) >= 0);
}

/* Moves the time beyond the deadlines of all timeouts, and polls until they have run. */
static void time_passes(void)
{
	check_int(tw_clock_set(fixture.clock, tw_clock_now(fixture.clock) + TW_MS(10)), 0);
	poll_once();
}

static struct tw_handle schedule(void)
{
	struct tw_handle handle;

	check_int(tw_schedule(fixture.engine, TW_MS(5), &count_kind, NULL, &handle), 0);
	return handle;
}

static void pairs(int number)
{
	for (int i = 0; i < number; i++)
		check_int(tw_cancel(schedule()), TW_CANCEL_DONE);
}

static uint64_t pushed(void)
{
	return twi_ring_pushed(&fixture.engine->worker.near.lane[twi_thread()->lane].ring);
}

/* Two large batches of pairs, after which the worker promises. */
static void earn(void)
{
	for (int i = 0; i < 2; i++) {
		pairs(MANY);
		poll_once();
	}
}

static void skip_without_barrier(void)
{
	if (!twi_barrier_able())
		cr_skip_test("the system has no membarrier(2)");
}

Test(entry_again, pairs_need_one_push, .init = begin, .fini = end)
{
	uint64_t before;

	skip_without_barrier();
	pairs(MANY);
	poll_once();
	before = pushed();
	pairs(FEW);
	check_int(pushed(), before + FEW);
	pairs(MANY);
	poll_once();
	before = pushed();
	pairs(MANY);
	check_int(pushed(), before + 1);
}

Test(entry_again, timeout_without_a_push_fires, .init = begin, .fini = end)
{
	earn();
	for (int i = 1; i <= FEW; i++) {
		pairs(3);
		(void)schedule();
		poll_once();
		time_passes();
		check_int(atomic_load(&fired), i);
	}
}

/* The second timeout has another node, so it needs an entry of its own. */
Test(entry_again, other_nodes_need_a_push, .init = begin, .fini = end)
{
	uint64_t before;

	earn();
	pairs(FEW);
	before = pushed();
	(void)schedule();
	(void)schedule();
	check_int(pushed(), before + 1 + (twi_barrier_able() ? 0 : 1));
	poll_once();
	time_passes();
	check_int(atomic_load(&fired), 2);
}

/* The worker makes a barrier in each turn that ends a promise, so a promise must save many pushes. */
Test(entry_again, thread_that_schedules_rarely_pushes_again, .init = begin, .fini = end)
{
	uint64_t before;

	earn();
	pairs(FEW);
	poll_once();
	before = pushed();
	pairs(FEW);
	check_int(pushed(), before + FEW);
	earn();
	pairs(MANY);
	poll_once();
	before = pushed();
	pairs(MANY);
	check_int(pushed(), before + (twi_barrier_able() ? 1 : MANY));
}

/* If the thread's timeouts go into the wheel, the worker no longer promises, so it makes no
 * barriers for them. */
Test(entry_again, thread_that_fills_the_wheel_pushes_again, .init = begin, .fini = end)
{
	uint64_t before;

	earn();
	for (int i = 0; i < MANY; i++)
		(void)schedule();
	poll_once();
	before = pushed();
	pairs(FEW);
	check_int(pushed(), before + FEW);
	time_passes();
	check_int(atomic_load(&fired), MANY);
}
