/* SPDX-License-Identifier: MIT */
/*
 * A callback of one engine runs a chain (a periodic timeout) of another engine by tw_due_run. The
 * calling thread is a worker, but not the worker of the chain's engine. So it must send the chain's
 * next run to that engine through a queue, as any other thread does (E4, E8, E16). Meanwhile the
 * worker of the chain's engine turns, sleeps or stops.
 *
 * Seen to fail with these defects:
 * - the calling thread files the next run as if the wheel were its own, so both workers race for
 *   the wheel;
 * - again_far() does not push the chain's node;
 * - twi_lane_push_queued() does not read the deadline again after the push.
 */
#include "world.h"

#include "turn/turn.h"
#include "worker/role.h"

#define CLOCK_NS (WORLD_NOW_NS + 3 * WORLD_TICK_NS)

static struct probe one;
static struct tw_due due;
static unsigned dispatched;
static struct tw_engine *other;
static struct tw_clock *other_clock;

static size_t accept(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	MODEL_CHECK(count == 1);
	due = batch[0];
	dispatched++;
	return 1;
}

static void on_run_due(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	MODEL_CHECK(tw_due_run(&due) == 0);
}

static const struct tw_kind run_due_kind = TW_KIND(on_run_due, NULL);

/* Makes a turn of the other engine. The calling thread is its worker. */
static void turn_other(void)
{
	twi_worker_enter(&other->worker);
	(void)twi_worker_turn(&other->worker);
	other->worker.self->worker = NULL;
}

/*
 * Opens the other engine, with a timeout in its wheel that is due. The next turn of that engine
 * runs the timeout's callback.
 */
static void open_other(void)
{
	struct tw_options options;
	struct tw_handle handle;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.wheel = TW_WHEEL_HASHED;
	options.slots = 1;
	options.tick_ns = WORLD_TICK_NS;
	MODEL_CHECK(tw_clock_create_virtual(0, &other_clock) == 0);
	options.clock = other_clock;
	MODEL_CHECK(tw_engine_create(&options, &other) == 0);
	twi_store_relaxed(&other->worker.state, (uint32_t)TW_ENGINE_RUNNING);
	MODEL_CHECK(tw_schedule_at(other, WORLD_DUE_NS, &run_due_kind, NULL, &handle) == 0);
	turn_other();
	MODEL_CHECK(tw_clock_set(other_clock, CLOCK_NS) == 0);
}

/*
 * Opens two engines. The first has dispatched a run of its chain, which the second engine's
 * callback will run.
 */
static void open_two(int64_t interval_ns)
{
	struct tw_options options = world_options();
	struct tw_period period = TW_PERIOD_RATE(interval_ns);

	options.dispatch = accept;
	options.check = TW_CHECK_FULL;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	period.first_ns = 0;
	MODEL_CHECK(tw_schedule_periodic(world.engine, &period, &probe_kind, &one, &one.handle) ==
		    0);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
	world_turn();
	MODEL_CHECK(dispatched == 1);
	open_other();
}

/* Makes the chain's next run due as soon as this run has ended. */
static void open_near(void)
{
	open_two(2 * WORLD_TICK_NS);
}

static void open_far(void)
{
	open_two(10000000LL * WORLD_TICK_NS);
}

static void open_asleep(void)
{
	open_near();
	world_life(TW_ENGINE_STARTING);
}

static void turn(void)
{
	world_turn();
}

static void ran_twice(void)
{
	MODEL_CHECK(dispatched == 2 && one.ran == 1);
	MODEL_CHECK(tw_due_run(&due) == 0);
	MODEL_CHECK(one.ran == 2);
}

static void unexpired(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0 && stats.check_failures == 0);
	world_close();
	MODEL_CHECK(one.ended[TW_END_UNEXPIRED] == 1 && one.unexpired == 1);
}

static void turned_and_ran_twice(void)
{
	world_turn();
	ran_twice();
	unexpired();
}

static void slept_and_ran_twice(void)
{
	model_wait_idle();
	ran_twice();
	model_wait_idle();
	unexpired();
}

static void stop(void)
{
	world_close();
}

static void unexpired_once(void)
{
	MODEL_CHECK(one.ran == 1);
	MODEL_CHECK(one.ended[TW_END_UNEXPIRED] == 1 && one.unexpired == 1);
}

MODEL_HARNESS(inside_turn,
	      .proves = "another engine's worker may run a chain during a turn of its own worker",
	      .setup = open_near, .thread = {turn_other, turn}, .finish = turned_and_ran_twice,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(inside_sleep,
	      .proves = "another engine's worker may run a chain while its own worker sleeps",
	      .setup = open_asleep, .thread = {turn_other}, .worker = world_work,
	      .finish = slept_and_ran_twice, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(inside_stop,
	      .proves = "a chain that another engine's worker runs is handed back once by stop",
	      .setup = open_far, .thread = {turn_other, stop}, .finish = unexpired_once,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
