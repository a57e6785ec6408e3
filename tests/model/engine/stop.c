/* SPDX-License-Identifier: MIT */
/*
 * Races stop against schedule, cancel, reschedule and start. In any order, an accepted timeout must
 * end once, and no thread may touch the engine after it is freed (E10, E12).
 *
 * Seen to fail with these defects:
 * - twi_worker_finish() waits for no grace period after it sets `sweeping`;
 * - twi_worker_finish() waits for that grace period before it sets `sweeping`, but not after;
 * - twi_worker_finish() waits for no grace period before it stores STOPPED;
 * - twi_worker_finish() does not set `sweeping`;
 * - engine_close() changes the engine's state relaxed;
 * - twi_worker_finish() stores STOPPED relaxed;
 * - stop, destroy or tw_engine_state loads the engine's state relaxed;
 * - reschedule reads the engine's clock outside its critical section;
 * - all_end() does not empty the queues before it hands the wheel back, does so after that, or does
 *   so before its first waits (the node of a cancelled timeout is then freed twice).
 */
#include "world.h"

#include "thread/futex.h"
#include "worker/state.h"

#include <errno.h>

/* How often await_stopped looks at most: more often than barriers can fail in one run. */
enum { LOOKS = 20 };

static struct probe one, two;
static int stopped, started;
static bool destroyed_already;

static void open_running(void)
{
	struct tw_options options = world_options();

	/*
	 * Uses CLOCK_MONOTONIC, because destroy waits for a grace period if the clock is virtual.
	 * That wait could hide that another grace period is missing.
	 */
	options.clock = NULL;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_thread_bare(2);
	world_life(TW_ENGINE_STARTING);
}

static void open_new(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
}

/* Opens an engine with `one` in ingress and `two` in the wheel. */
static void open_filled(void)
{
	open_running();
	world_schedule(&two, &probe_kind, TW_NEVER);
	world_turn();
	world_schedule(&one, &probe_kind, TW_NEVER);
	one.outcome = two.outcome = TW_CANCEL_CANCELLED;
}

static void stop(void)
{
	stopped = tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER);
	MODEL_CHECK(stopped == 0);
}

static void stop_and_destroy(void)
{
	stop();
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/* Checks that the node of the timeout that was cancelled, if any, was freed only once. */
static void stop_count_destroy(void)
{
	stop();
	MODEL_CHECK(twi_load_relaxed(&world.worker->reclaimed_count) <= 1);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void schedule(void)
{
	one.outcome = tw_schedule(world.engine, TW_NEVER, &probe_kind, &one, NULL);
	MODEL_CHECK(one.outcome == 0 || one.outcome == -ESHUTDOWN);
}

static void start(void)
{
	started = tw_engine_start(world.engine);
	MODEL_CHECK(started == 0 || started == -ESHUTDOWN);
}

static void cancel_one(void)
{
	one.outcome = tw_cancel(one.handle);
}

static void cancel_two(void)
{
	two.outcome = tw_cancel(two.handle);
}

/* Reschedules by a delay, so it reads the engine's clock, which is in the engine's memory. */
static void reschedule_two(void)
{
	two.outcome = tw_reschedule(two.handle, TW_NEVER);
}

static void both_unexpired(void)
{
	MODEL_CHECK(two.outcome == TW_RESCHEDULE_DONE || two.outcome == TW_RESCHEDULE_CANCELLED ||
		    two.outcome == -ESTALE);
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_UNEXPIRED);
}

static void schedule_kept(void)
{
	if (one.outcome == 0)
		MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	else
		MODEL_CHECK(one.ended[0] + one.ended[1] + one.ended[2] == 0);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/*
 * Begins a stop that does not wait. The engine is closed then, and the harness's worker finishes
 * it.
 */
static void open_stopping(void)
{
	open_filled();
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, 0) == -ETIMEDOUT);
}

static void look(void)
{
	if (tw_engine_state(world.engine) == TW_ENGINE_STOPPED)
		MODEL_CHECK(one.unexpired == 1 && two.unexpired == 1);
}

static void destroy_if_ended(void)
{
	int result = tw_engine_destroy(world.engine);

	MODEL_CHECK(result == 0 || result == -EBUSY);
	if (result == 0)
		MODEL_CHECK(one.unexpired == 1 && two.unexpired == 1);
	destroyed_already = result == 0;
}

/*
 * Waits until the worker has stopped. If the worker's barrier fails, the worker sleeps for a short
 * time. So this function waits for a tick and looks again, up to LOOKS times.
 */
static void await_stopped(void)
{
	static _Atomic uint32_t never;

	model_wait_idle();
	for (int i = 0; i < LOOKS && tw_engine_state(world.engine) != TW_ENGINE_STOPPED; i++) {
		(void)twi_futex_wait(&never, 0, twi_until_ns(WORLD_TICK_NS));
		model_wait_idle();
	}
}

static void destroyed_in_the_end(void)
{
	if (destroyed_already)
		return;
	await_stopped();
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void ends_told(void)
{
	MODEL_CHECK((probe_end(&one) == TW_END_CANCELLED) == (one.outcome == TW_CANCEL_DONE));
	MODEL_CHECK((probe_end(&two) == TW_END_CANCELLED) == (two.outcome == TW_CANCEL_DONE));
}

static void destroyed(void)
{
	MODEL_CHECK(tw_engine_state(world.engine) == TW_ENGINE_STOPPED);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

MODEL_HARNESS(stop_schedule, .proves = "stop hands back each timeout whose schedule was accepted",
	      .setup = open_running, .thread = {schedule, stop}, .worker = world_work,
	      .finish = schedule_kept, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stop_first_schedule,
	      .proves = "stop hands back the timeout of the schedule that starts the engine",
	      .setup = open_new, .thread = {schedule, stop}, .finish = schedule_kept,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stop_start, .proves = "start and stop both return, and no worker is left",
	      .setup = open_new, .thread = {start, stop}, .finish = destroyed, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(stop_cancel_ingress,
	      .proves = "a cancel in ingress during stop and destroy touches no freed memory",
	      .setup = open_filled, .thread = {cancel_one, stop_and_destroy}, .worker = world_work,
	      .finish = ends_told, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(stop_cancel_wheel,
	      .proves = "a cancel in the wheel during stop and destroy touches no freed memory",
	      .setup = open_filled, .thread = {cancel_two, stop_count_destroy},
	      .worker = world_work, .finish = ends_told, .preemptions = 2, .weak = 1,
	      .random_runs = 500);
MODEL_HARNESS(stop_reschedule,
	      .proves = "a reschedule by a delay during stop and destroy touches no freed memory",
	      .setup = open_filled, .thread = {reschedule_two, stop_and_destroy},
	      .worker = world_work, .finish = both_unexpired, .preemptions = 1, .weak = 1,
	      .random_runs = 500);
MODEL_HARNESS(stop_look, .proves = "a thread that sees STOPPED sees everything that came before",
	      .setup = open_stopping, .thread = {look}, .worker = world_work,
	      .finish = destroyed_in_the_end, .preemptions = 2, .weak = 2, .random_runs = 300);
MODEL_HARNESS(stop_destroy, .proves = "destroy may race with the end of a stop that did not wait",
	      .setup = open_stopping, .thread = {destroy_if_ended}, .worker = world_work,
	      .finish = destroyed_in_the_end, .preemptions = 2, .weak = 2, .random_runs = 300);
