/* SPDX-License-Identifier: MIT */
/*
 * Presences (thread/presence.h): the quick paths of schedule and cancel against stop and destroy.
 * An accepted timeout must end once, and no thread may touch the engine after it is freed. The
 * lanes have rings, so the calls take the quick paths.
 *
 * Seen to fail with these defects:
 * - twi_presence_enter() has no compiler fence after its store, or sets no mark;
 * - quick_schedule() sets the mark after its look at the engine's state; quick_cancel() sets it
 *   after its swap;
 * - twi_presence_leave() stores relaxed; presence_wait() loads relaxed, or looks at the mark only
 *   once and does not wait;
 * - twi_presences_wait() makes no barrier, makes the barrier after the looks, or goes on if the
 *   barrier fails;
 * - twi_worker_finish() does not wait for presences after it sets `sweeping`, or before it stores
 *   STOPPED;
 * - the quick paths clear the mark before the push, or before the count of the cancel;
 * - lane_report() clears the mark before it enters its section;
 * - all_end() goes on although its first waits have run out of time.
 *
 * Within their bounds, these harnesses do not find this defect, which takes three preemptions:
 * twi_worker_finish() waits for its second grace period before it waits for presences.
 */
#include "world.h"

#include "thread/futex.h"
#include "thread/presence.h"
#include "turn/finish.h"

#include <errno.h>

static struct probe one, two;

/* Makes the lane's ring, and leaves a free block in the stock. */
static void warm(void)
{
	struct tw_handle handle;

	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &one, &handle) == 0);
	MODEL_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	MODEL_CHECK(twi_thread()->presence != NULL);
}

static void open_worker(void)
{
	struct tw_options options = world_options();

	/*
	 * Uses CLOCK_MONOTONIC. With a virtual clock, destroy waits for one more grace period, and
	 * that wait could hide that another wait is missing.
	 */
	options.clock = NULL;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	model_as(0, warm);
	model_as(1, warm);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

static void schedule_as(struct probe *probe)
{
	probe->outcome = tw_schedule(world.engine, TW_NEVER, &bare_kind, probe, NULL);
	MODEL_CHECK(probe->outcome == 0 || probe->outcome == -ESHUTDOWN);
}

static void schedule_one(void)
{
	schedule_as(&one);
}

static void schedule_two(void)
{
	schedule_as(&two);
}

static void schedule_both(void)
{
	schedule_one();
	schedule_two();
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

static void stop_and_destroy(void)
{
	stop();
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/* Checks that the timeout did not run, and was handed back if its schedule was accepted. */
static void kept(const struct probe *probe)
{
	MODEL_CHECK(probe->unexpired == (probe->outcome == 0 ? 1 : 0));
	MODEL_CHECK(probe->ran == 0);
}

static void one_kept(void)
{
	kept(&one);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void both_kept(void)
{
	kept(&two);
	one_kept();
}

/*
 * Finishes the engine like a stop that cannot create a thread. The first try has no time left, so
 * it may give up at each of its waits.
 */
static void finish_in_two_tries(void)
{
	world.worker->on_unexpired = probe_hand_back;
	twi_store_relaxed(&world.worker->state, (uint32_t)TW_ENGINE_STOPPING);
	if (!twi_worker_finish(world.worker, 0))
		MODEL_CHECK(twi_worker_finish(world.worker, INT64_MAX));
}

static void open_without_worker(void)
{
	open_worker();
	world_life(TW_ENGINE_RUNNING);
}

static void schedule_pending(void)
{
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &one, &one.handle) == 0);
}

/* Opens an engine with `one` in a ring. */
static void open_pending(void)
{
	open_worker();
	model_as(0, schedule_pending);
}

static void cancel_one(void)
{
	one.outcome = tw_cancel(one.handle);
}

static void one_ended(void)
{
	MODEL_CHECK(one.ran == 0);
	MODEL_CHECK(one.unexpired == (one.outcome == TW_CANCEL_DONE ? 0 : 1));
}

static void one_ended_two_kept(void)
{
	one_ended();
	kept(&two);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/* Opens with one thread that has a lane. The next thread may get that lane when the first ends. */
static void open_one_lane(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	world_open(&options);
	world_threads(1, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	model_as(0, warm);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

static _Atomic uint32_t has_run;

static void run_and_tell(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	twi_store_release(&has_run, 1);
	twi_futex_wake(&has_run);
}

static const struct tw_kind tell_kind = TW_KIND(run_and_tell, NULL);

/* Schedules a due timeout. When its callback has run, stop_after_the_run may destroy the engine,
 * although this call has not returned yet. */
static void schedule_due(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &tell_kind, NULL, NULL) == 0);
}

static void stop_after_the_run(void)
{
	while (twi_load_acquire(&has_run) == 0)
		(void)twi_futex_wait(&has_run, 0, INT64_MAX);
	stop_and_destroy();
}

static void attach_and_schedule_two(void)
{
	MODEL_CHECK(tw_thread_attach() == 0);
	schedule_two();
}

MODEL_HARNESS(presence_schedule, .proves = "a quick schedule against stop: accepted is handed back",
	      .setup = open_worker, .thread = {schedule_one, stop}, .worker = world_work,
	      .finish = one_kept, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(presence_limit, .proves = "a quick schedule against a finisher that tries twice",
	      .setup = open_without_worker, .thread = {schedule_one, finish_in_two_tries},
	      .finish = one_kept, .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(presence_cancel, .proves = "a quick cancel against stop and destroy",
	      .setup = open_pending, .thread = {cancel_one, stop_and_destroy}, .worker = world_work,
	      .finish = one_ended, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(presence_again, .proves = "two quick schedules of one thread against stop",
	      .setup = open_worker, .thread = {schedule_both, stop}, .worker = world_work,
	      .finish = both_kept, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(presence_two, .proves = "a quick cancel and a quick schedule against stop",
	      .setup = open_pending, .thread = {cancel_one, schedule_two, stop},
	      .worker = world_work, .finish = one_ended_two_kept, .preemptions = 1, .weak = 1,
	      .random_runs = 500);
MODEL_HARNESS(presence_reuse,
	      .proves = "a mark passes to the next thread with its lane, against stop",
	      .setup = open_one_lane, .thread = {schedule_one, attach_and_schedule_two, stop},
	      .worker = world_work, .finish = both_kept, .threads_end = true, .preemptions = 1,
	      .weak = 0, .random_runs = 2000);
MODEL_HARNESS(presence_wake,
	      .proves = "a quick schedule that wakes the worker, against stop and destroy",
	      .setup = open_worker, .thread = {schedule_due, stop_after_the_run},
	      .worker = world_work, .preemptions = 2, .weak = 0, .random_runs = 5000);
