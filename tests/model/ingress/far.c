/* SPDX-License-Identifier: MIT */
/*
 * Far lanes (ingress/far.h). Two threads create a page of lanes at once (E130). The worker lets a
 * lane rest, so that it no longer looks at the lane, while the lane's thread pushes (E8, E15). If
 * the worker misses a push, it sleeps for ever, flush waits for ever, or stop leaves a timeout
 * behind.
 *
 * Seen to fail with these defects:
 * - twi_lanes_rested() does not look again at the lanes that rest, or it looks before the barrier;
 * - barrier_make() makes no barrier for a resting lane that pushes without a fence;
 * - lane_wake() or twi_lane_far_pushed() does not set the lane's bit again;
 * - page_make() returns its own page although another thread's page was installed first;
 * - the bit of a lane is set or read relaxed, so that the worker finds the lane's fields not
 *   initialised;
 * - in addition to the bit, a flag in the lane says whether the lane rests.
 */
#include "world.h"

#include "ingress/push.h"

static struct probe one, two;

/* Gives the thread a far lane. Both threads' lanes are in one page. */
static void go_far(void)
{
	struct twi_thread *thread = twi_thread();

	thread->far = TWI_LANES + model_self();
	thread->lane = TWI_LANE_SHARED;
	thread->presence = NULL;
	thread->pin = NULL;
}

static void open_far(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	model_as(0, go_far);
	model_as(1, go_far);
	world_life(TW_ENGINE_STARTING);
}

static void push_before(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &bare_kind, &two, NULL) == 0);
}

/*
 * Opens with a lane from which the worker has taken an entry. At its next sleep the worker will
 * find the lane idle.
 */
static void open_idle(void)
{
	open_far();
	world_life(TW_ENGINE_RUNNING);
	model_as(0, push_before);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

static void unfence(void)
{
	world.worker->unfenced = true;
	twi_store_relaxed(&twi_lane_of(world.worker, twi_thread())->unfenced, true);
}

static void open_unfenced(void)
{
	open_idle();
	model_as(0, unfence);
}

static void schedule_one(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL) == 0);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
}

static void schedule_and_flush(void)
{
	schedule_one();
	MODEL_CHECK(tw_engine_flush(world.engine, TW_NEVER) == 0);
	MODEL_CHECK(one.ran == 1);
}

static void one_ran(void)
{
	world_await_pending(1);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void both_ran(void)
{
	world_await_pending(0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

MODEL_HARNESS(far_made,
	      .proves = "two threads that create the page of their lanes at once share one page",
	      .setup = open_far, .thread = {schedule_one, schedule_two}, .worker = world_work,
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(far_rest, .proves = "the worker sees a push to a lane that begins to rest",
	      .setup = open_idle, .thread = {schedule_one}, .worker = world_work, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(far_rest_unfenced,
	      .proves = "the worker sees a push without a fence to a lane that begins to rest",
	      .setup = open_unfenced, .thread = {schedule_one}, .worker = world_work,
	      .finish = one_ran, .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(far_flush, .proves = "a flush after a push to a resting lane includes the push",
	      .setup = open_idle, .thread = {schedule_and_flush}, .worker = world_work,
	      .finish = one_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
