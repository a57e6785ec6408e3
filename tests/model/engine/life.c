/* SPDX-License-Identifier: MIT */
/*
 * Engines whose thread cannot be created or dies (E12), and the limit of pending timeouts. No
 * thread may hang, no timeout may be lost, and each return code must keep its promise.
 *
 * Seen to fail with these defects:
 * - tw_engine_start() changes the engine's state relaxed;
 * - twi_limit_take() takes a place of the limit by a load and a store.
 */
#include "world.h"

#include <errno.h>

static struct probe one, two;
static bool one_accepted, two_accepted;

/* Stands for the user's hook that creates threads. The model tries both a thread and EAGAIN. */
static int thread_or_none(void *context, void *(*body)(void *arg), void *arg)
{
	pthread_t thread;

	(void)context;
	return model_choose(2) == 0 ? pthread_create(&thread, NULL, body, arg) : EAGAIN;
}

/* Opens an engine in virtual time, in which an overdue timeout runs at once. */
static void open_virtual(void)
{
	world_open(NULL);
	world_threads(4, WORLD_STOCK_FILLED);
}

static void open_hooked(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	options.thread = thread_or_none;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
}

static void open_limited(void)
{
	struct tw_options options = world_options();

	options.pending_limit = 1;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
}

static void open_used_up(void)
{
	open_limited();
	world_schedule(&two, &probe_kind, TW_NEVER);
}

static bool accepted(int result)
{
	MODEL_CHECK(result == 0 || result == -ESHUTDOWN || result == -ENOMEM || result == -EAGAIN);
	return result == 0;
}

static void schedule_one(void)
{
	one_accepted =
		accepted(tw_schedule(world.engine, TW_NEVER, &probe_kind, &one, &one.handle));
}

static void schedule_two(void)
{
	two_accepted =
		accepted(tw_schedule(world.engine, TW_NEVER, &probe_kind, &two, &two.handle));
}

static void schedule_exit(void)
{
	one_accepted = accepted(
		tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_exit_kind, &one, &one.handle));
}

static void cancel_two(void)
{
	two.outcome = tw_cancel(two.handle);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

static void flush(void)
{
	int result = tw_engine_flush(world.engine, TW_NEVER);

	MODEL_CHECK(result == 0 || result == -ESHUTDOWN || result == -ENOMEM);
}

static void ends_count(const struct probe *probe, bool was_accepted)
{
	if (was_accepted)
		(void)probe_end(probe);
	else
		MODEL_CHECK(probe->ended[0] + probe->ended[1] + probe->ended[2] == 0);
}

static void stopped(void)
{
	MODEL_CHECK(tw_engine_state(world.engine) == TW_ENGINE_STOPPED);
	ends_count(&one, one_accepted);
	ends_count(&two, two_accepted);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void stop_then_look(void)
{
	stop();
	stopped();
}

static void one_in(void)
{
	MODEL_CHECK(one_accepted + two_accepted == 1);
	world_close();
	ends_count(&one, one_accepted);
	ends_count(&two, two_accepted);
}

static void in_after_cancel(void)
{
	MODEL_CHECK(two.outcome == TW_CANCEL_DONE);
	MODEL_CHECK(twi_load_relaxed(&world.worker->slots_taken) == one_accepted);
	schedule_one();
	MODEL_CHECK(twi_load_relaxed(&world.worker->slots_taken) == 1);
	world_turn();
	world_close();
}

MODEL_HARNESS(life_no_thread,
	      .proves = "schedule and stop return if the worker's thread cannot be created",
	      .setup = open_hooked, .thread = {schedule_one, stop}, .finish = stopped,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(life_two_stops, .proves = "two stops and a start that may fail all return",
	      .setup = open_hooked, .thread = {schedule_one, stop, stop}, .finish = stopped,
	      .preemptions = 1, .weak = 0, .random_runs = 500);
MODEL_HARNESS(life_two_starts,
	      .proves = "two first schedules keep their promises if the start fails",
	      .setup = open_hooked, .thread = {schedule_one, schedule_two},
	      .finish = stop_then_look, .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(life_flush, .proves = "flush returns if the worker's thread cannot be created",
	      .setup = open_hooked, .thread = {schedule_one, flush}, .finish = stop_then_look,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(life_exit, .proves = "stop loses no timeout if a callback ends the worker's thread",
	      .setup = open_virtual, .thread = {schedule_exit, stop}, .finish = stopped,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(limit_one,
	      .proves = "if the limit leaves one place, one of two schedules is accepted",
	      .setup = open_limited, .thread = {schedule_one, schedule_two}, .finish = one_in,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(limit_given, .proves = "a place that a cancel gives back can be used again",
	      .setup = open_used_up, .thread = {schedule_one, cancel_two},
	      .finish = in_after_cancel, .preemptions = 2, .weak = 2, .random_runs = 500);
