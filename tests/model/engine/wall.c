/* SPDX-License-Identifier: MIT */
/*
 * Timeouts with a date. In one harness, two threads create the state (struct twi_wall) that the
 * first date of an engine needs (E110). In the others, the worker's sleep races against a step of
 * the wall clock (E8). If the worker misses a step, it sleeps for ever and the timeout stays
 * pending. The steps are those of a virtual clock, and those that the watch of the system's clock
 * reports (thread/step.h).
 *
 * Seen to fail with these defects: twi_wall_of() loads the pointer to that state relaxed; the watch
 * counts a step, or looks at `open`, by a weaker access; the watch wakes no worker.
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

MODEL_HARNESS(wall_sleep, .proves = "a step of the wall clock wakes the sleeping worker",
	      .setup = open_date, .thread = {step}, .worker = world_work, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(wall_made, .proves = "two threads may schedule the first date of an engine",
	      .setup = open_starting, .thread = {schedule_one, schedule_two}, .worker = world_work,
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(wall_cancel,
	      .proves = "cancel, the look after a step, and the run: the timeout ends once",
	      .setup = open_date, .thread = {cancel, step_once}, .worker = world_work,
	      .finish = ran_or_cancelled, .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * The next two functions replace those of the library's watch of the system's wall clock. A thread
 * of the harness stands for the watch's thread.
 */
static _Atomic(struct twi_step_watch *) watch;
static _Atomic int64_t system_wall_ns;
static struct twi_clock_ops system_ops;

int __wrap_twi_step_watch_start(struct twi_step_watch *started, void (*stepped)(void *context),
				void *context);
void __wrap_twi_step_watch_end(struct twi_step_watch *ended);

int __wrap_twi_step_watch_start(struct twi_step_watch *started, void (*stepped)(void *context),
				void *context)
{
	started->stepped = stepped;
	started->context = context;
	twi_store_seq_cst(&watch, started);
	return 0;
}

void __wrap_twi_step_watch_end(struct twi_step_watch *ended)
{
	MODEL_CHECK(twi_load_relaxed(&watch) == ended);
}

static int64_t system_wall(struct tw_clock *clock)
{
	(void)clock;
	return twi_load_seq_cst(&system_wall_ns);
}

/*
 * Opens an engine with a virtual clock, whose wall clock stands for the system's. This clock does
 * not report its steps, so the library starts the watch.
 */
static void open_watched(void)
{
	open_starting();
	system_ops = *world.clock->ops;
	system_ops.wall_ns = system_wall;
	system_ops.wall_steps = NULL;
	world.clock->ops = &system_ops;
}

static void schedule_date(void)
{
	MODEL_CHECK(tw_schedule_wall(world.engine, DATE_NS, &probe_kind, &one, NULL) == 0);
}

static void open_watched_date(void)
{
	open_watched();
	schedule_date();
}

/*
 * Steps the system's wall clock. If the watch has begun, it reports the step. Otherwise the thread
 * that begins the watch reads the clock after the step.
 */
static void step_system(void)
{
	struct twi_step_watch *begun;

	twi_store_seq_cst(&system_wall_ns, DATE_NS);
	begun = twi_load_seq_cst(&watch);
	if (begun != NULL)
		begun->stepped(begun->context);
}

MODEL_HARNESS(wall_watch, .proves = "a step of the system's clock wakes the sleeping worker",
	      .setup = open_watched_date, .thread = {step_system}, .worker = world_work,
	      .finish = one_ran, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(wall_watch_made,
	      .proves = "while the first date is scheduled, a step of the clock is not missed",
	      .setup = open_watched, .thread = {schedule_date, step_system}, .worker = world_work,
	      .finish = one_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
