/* SPDX-License-Identifier: MIT */
/*
 * Timeouts with a date. One harness: two threads create the state (struct twi_wall) that the first
 * date of an engine needs (E110). The others: the worker's sleep against a step of the wall clock
 * (E8). If the worker misses a step, it sleeps for ever and the timeout stays pending.
 *
 * Seen to fail with this defect: twi_wall_of() loads the pointer to that state relaxed.
 */
#include "expiry/wall.h"
#include "world.h"

#define DATE_NS (100 * WORLD_NOW_NS)

static struct probe one, two;

static void open_starting(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

static void open_date(void)
{
	open_starting();
	MODEL_CHECK(tw_schedule_wall(world.engine, DATE_NS, &probe_kind, &one, &one.handle) == 0);
}

static void schedule_one(void)
{
	MODEL_CHECK(tw_schedule_wall(world.engine, 1, &probe_kind, &one, NULL) == 0);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule_wall(world.engine, 1, &probe_kind, &two, NULL) == 0);
}

/* Steps the wall clock back and then forward, because the worker may look between the two steps. */
static void step(void)
{
	MODEL_CHECK(tw_clock_set_wall(world.clock, 1) == 0);
	MODEL_CHECK(tw_clock_set_wall(world.clock, DATE_NS) == 0);
}

static void step_once(void)
{
	MODEL_CHECK(tw_clock_set_wall(world.clock, DATE_NS) == 0);
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
}

static void one_ran(void)
{
	model_wait_idle();
	MODEL_CHECK(tw_engine_pending(world.engine) == 0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void both_ran(void)
{
	one_ran();
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

static void ran_or_cancelled(void)
{
	model_wait_idle();
	MODEL_CHECK(tw_engine_pending(world.engine) == 0);
	world_close();
	MODEL_CHECK(probe_end(&one) ==
		    (one.outcome == TW_CANCEL_DONE || one.outcome == TW_CANCEL_STOPPED
			     ? TW_END_CANCELLED
			     : TW_END_EXPIRED));
}

MODEL_HARNESS(wall_sleep, .proves = "the worker's sleep against steps of the wall clock",
	      .setup = open_date, .thread = {step}, .worker = world_work, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(wall_made, .proves = "two threads schedule the first date of an engine",
	      .setup = open_starting, .thread = {schedule_one, schedule_two}, .worker = world_work,
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(wall_cancel, .proves = "a cancel against the look, a step and the run",
	      .setup = open_date, .thread = {cancel, step_once}, .worker = world_work,
	      .finish = ran_or_cancelled, .preemptions = 1, .weak = 1, .random_runs = 500);
