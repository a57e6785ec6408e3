/* SPDX-License-Identifier: MIT */
/*
 * Lanes. A lane's number passes from thread to thread, and the next thread continues the lane's
 * counts (E7). In the shared lane each push comes after the lane's bit was set (E15). Two threads
 * change a count at once: a count of the shared lane, the count of lanes in use, or the count of
 * flush tickets.
 *
 * Seen to fail with these defects:
 * - a lane's number is taken or given back relaxed;
 * - twi_lane_join() stores `known` relaxed, or lane_known() loads it relaxed;
 * - twi_mpsc_take_sc() reports an empty queue when a push is not linked yet and the worker's stub
 *   is the last node that it can reach;
 * - any one of the counts is changed by a load and a store.
 */
#include "world.h"

#include "ingress/transfer.h"
#include "worker/left.h"
#include "worker/role.h"
#include "worker/ticket.h"

static struct probe one, two;

/*
 * Opens with threads that have no lane yet. No thread takes a block, because a block would order
 * the two threads.
 */
static void open_scheduled(void)
{
	world_open(NULL);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
}

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
	twi_thread()->presence = NULL;
}

static void open_shared(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	model_as(0, share_lane);
	model_as(1, share_lane);
	world_life(TW_ENGINE_STARTING);
}

static void schedule_one(void)
{
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &probe_kind, &one, NULL) == 0);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &probe_kind, &two, NULL) == 0);
}

/*
 * Schedules and takes. A push by another thread may be between its two steps, and then hides this
 * thread's push. The worker must report that something is left.
 */
static void schedule_and_take(void)
{
	struct twi_worker *worker = world.worker;
	unsigned left = TWI_LEFT_NOTHING;
	uint64_t taken;

	schedule_two();
	twi_worker_enter(worker);
	taken = twi_ingress_take(worker, 2, &left);
	worker->self->worker = NULL;
	MODEL_CHECK(taken > 0 || left != TWI_LEFT_NOTHING);
}

static void open_shared_running(void)
{
	open_shared();
	world_life(TW_ENGINE_RUNNING);
}

static void both_scheduled(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.scheduled == 2);
	world_close();
}

/* The lanes that the two threads have got, as bits. The threads give them back when they end. */
static uint32_t lanes_had;

static void lane_note(void)
{
	lanes_had |= UINT32_C(1) << twi_thread()->lane;
}

static void open_lanes(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	model_as(0, lane_note);
	model_as(1, lane_note);
}

static void end(void)
{
}

static void lanes_free(void)
{
	static struct twi_thread next[2];

	twi_thread_attach(&next[0]);
	twi_thread_attach(&next[1]);
	MODEL_CHECK((UINT32_C(1) << next[0].lane | UINT32_C(1) << next[1].lane) == lanes_had);
}

static uint32_t epoch_before;

static void open_epoch(void)
{
	world_open(NULL);
	epoch_before = twi_load_relaxed(&world.worker->flush_epoch);
}

static void notify(void)
{
	twi_flush_notify(world.worker);
}

static void epoch_moved_twice(void)
{
	MODEL_CHECK(twi_load_relaxed(&world.worker->flush_epoch) == epoch_before + 2);
}

static void cancel_one(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void cancel_two(void)
{
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
}

static void schedule_and_flush(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
	MODEL_CHECK(tw_engine_flush(world.engine, TW_NEVER) == 0);
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
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

MODEL_HARNESS(lane_number, .proves = "a lane's counts continue with its next owner",
	      .setup = open_scheduled, .thread = {cancel_one, cancel_two}, .finish = counted,
	      .threads_end = true, .preemptions = 1, .weak = 1, .random_runs = 300);
MODEL_HARNESS(lane_shared, .proves = "flush includes a second thread of the shared lane",
	      .setup = open_shared, .thread = {schedule_one, schedule_and_flush},
	      .worker = world_work, .finish = close_shared, .preemptions = 1, .weak = 2,
	      .random_runs = 1000);
MODEL_HARNESS(lane_flag, .proves = "a push to the shared lane comes after the lane's bit is set",
	      .setup = open_shared_running, .thread = {schedule_one, schedule_and_take},
	      .finish = world_close, .preemptions = 1, .weak = 2, .random_runs = 300);
MODEL_HARNESS(lane_counts, .proves = "two threads of the shared lane are both counted",
	      .setup = open_shared_running, .thread = {schedule_one, schedule_two},
	      .finish = both_scheduled, .preemptions = 2, .weak = 0, .random_runs = 300);
MODEL_HARNESS(lane_ends, .proves = "two threads that end at once both give back their lanes",
	      .setup = open_lanes, .thread = {end, end}, .finish = lanes_free, .threads_end = true,
	      .preemptions = 2, .weak = 0, .random_runs = 300);
MODEL_HARNESS(epoch_moves, .proves = "flushers never wait for the same epoch value twice",
	      .setup = open_epoch, .thread = {notify, notify}, .finish = epoch_moved_twice,
	      .preemptions = 2, .weak = 0, .random_runs = 300);
