/* SPDX-License-Identifier: MIT */
/*
 * Races cancel_wait against the end of a run. The waiter must be woken, and must see what the
 * callback wrote (E4; the futex is half of the state word). Other harnesses race the runs of
 * executors against stop, which must wait for them (E10).
 *
 * Seen to fail with these defects:
 * - word_end() does not look at the bit WAITER;
 * - word_wait() sets WAITER by a load and a store;
 * - word_end() ends a run relaxed, or the waiter loads the state word relaxed;
 * - due_claim() claims a run by a load and a store;
 * - `in_flight` is counted by a load and a store;
 * - in_flight_end() has no critical section around the run's last access to the engine.
 */
#include "world.h"

#include <errno.h>

static struct probe one, two;
static struct tw_due due, first_due;
static int ran_count;

static void open_due(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 3 * WORLD_TICK_NS) == 0);
}

static size_t accept(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	MODEL_CHECK(count == 1);
	due = batch[0];
	return 1;
}

/* Opens with `one` in an executor that has not begun to run it. */
static void open_dispatched(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	options.dispatch = accept;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
	world_schedule(&one, &probe_kind, WORLD_DUE_NS);
	model_pass_ns(3 * WORLD_TICK_NS);
	world_turn();
	MODEL_CHECK(due.handle.generation == one.handle.generation);
}

/* Makes `two` due, so that the next turn will dispatch it. */
static void open_next(void)
{
	open_dispatched();
	first_due = due;
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&two, &probe_kind, WORLD_DUE_NS);
}

static void run_first(void)
{
	MODEL_CHECK(tw_due_run(&first_due) == 0);
}

static void turn(void)
{
	world_turn();
}

static void cancel_wait(void)
{
	int outcome = tw_cancel_wait(one.handle, TW_NEVER);

	MODEL_CHECK(outcome != TW_CANCEL_RUNNING);
	if (outcome != TW_CANCEL_DONE && outcome != TW_CANCEL_CANCELLED)
		MODEL_CHECK(one.ran == 1 && one.ended[TW_END_EXPIRED] == 1);
}

static void run_due(void)
{
	int result = tw_due_run(&due);

	MODEL_CHECK(result == 0 || result == -ESTALE);
	if (result == 0)
		__atomic_fetch_add(&ran_count, 1, __ATOMIC_RELAXED);
}

static void stop_and_destroy(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
	MODEL_CHECK(one.ran == 1 && one.ended[TW_END_EXPIRED] == 1);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void ended(void)
{
	world_close();
	(void)probe_end(&one);
}

static void ran_once(void)
{
	MODEL_CHECK(ran_count == 1);
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void one_in_flight(void)
{
	MODEL_CHECK(twi_load_relaxed(&world.worker->in_flight) == 1);
	MODEL_CHECK(tw_due_run(&due) == 0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED && probe_end(&two) == TW_END_EXPIRED);
}

static void ran_once_close(void)
{
	world_close();
	ran_once();
}

MODEL_HARNESS(wait_end, .proves = "cancel_wait returns at the end of the run, and sees its writes",
	      .setup = open_due, .thread = {cancel_wait, turn}, .finish = ended, .preemptions = 3,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(wait_two, .proves = "two threads that wait for one run are both woken",
	      .setup = open_due, .thread = {cancel_wait, cancel_wait, turn}, .finish = ended,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(dispatch_wait, .proves = "cancel_wait waits for an executor's run",
	      .setup = open_dispatched, .thread = {cancel_wait, run_due}, .worker = world_work,
	      .finish = ran_once_close, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(dispatch_stop, .proves = "stop and destroy wait for an executor's run",
	      .setup = open_dispatched, .thread = {run_due, stop_and_destroy}, .worker = world_work,
	      .finish = ran_once, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(dispatch_twice, .proves = "of two runs of one due timeout, one succeeds",
	      .setup = open_dispatched, .thread = {run_due, run_due}, .worker = world_work,
	      .finish = ran_once_close, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(dispatch_count, .proves = "each dispatched timeout and each end is counted",
	      .setup = open_next, .thread = {run_first, turn}, .finish = one_in_flight,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
