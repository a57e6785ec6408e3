/* SPDX-License-Identifier: MIT */
/*
 * Lanes: a number that goes from thread to thread keeps its count (E7), and in the shared lane
 * whoever pushes has the lane's bit behind it (E15).
 *
 * Seen to fail: a lane taken or given relaxed, the flag stored or looked at relaxed, a cut queue
 * taken for an empty one where the worker's stub is the last.
 */
#include "world.h"

static struct probe one, two;

/* No thread has a lane yet, and none needs memory, which would order one against the other. */
static void open_scheduled(void)
{
	world_open(NULL);
	world_life(TWI_LIFE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
}

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
}

static void open_shared(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	model_as(0, share_lane);
	model_as(1, share_lane);
	world_life(TWI_LIFE_STARTING);
}

static void schedule_one(void)
{
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &probe_kind, &one, NULL) == 0);
}

static void cancel_one(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void cancel_two(void)
{
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
}

static void schedule_and_settle(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
	MODEL_CHECK(tw_engine_settle(world.engine, TW_NEVER) == 0);
	MODEL_CHECK(two.ran == 1);
}

static void counted(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.cancelled == 2);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_CANCELLED);
	MODEL_CHECK(probe_end(&two) == TW_END_CANCELLED);
}

static void close_shared(void)
{
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_HANDED_BACK);
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

MODEL_HARNESS(lane_number, .proves = "a lane's count goes on with its next owner",
	      .setup = open_scheduled, .thread = {cancel_one, cancel_two}, .finish = counted,
	      .threads_end = true, .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(lane_shared, .proves = "a second thread of the shared lane is seen by settle",
	      .setup = open_shared, .thread = {schedule_one, schedule_and_settle},
	      .worker = world_work, .finish = close_shared, .preemptions = 1, .weak = 2,
	      .random_runs = 1000);
