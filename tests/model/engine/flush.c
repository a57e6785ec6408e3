/* SPDX-License-Identifier: MIT */
/*
 * Races the worker's sleep against every reason to wake it, with a virtual clock. A thread that is
 * not woken sleeps for ever, which the model reports as a deadlock (E8). Other harnesses check what
 * flush promises when it returns (E13).
 *
 * Seen to fail with these defects:
 * - for each reason to wake the worker: one of the four accesses is only acquire or release. The
 *   four are: the sleeper stores PARKED and loads the reason; the waker stores the reason and loads
 *   the park word;
 * - the worker sets its count of units, `units_pending`, to 0 by a plain store;
 * - `flush_done`, the ticket that the worker has served, is stored or loaded relaxed;
 * - the worker computes the end of its sleep before its last turn;
 * - a callback on a worker's thread sets the timer of a loop;
 * - a worker that sleeps on descriptors: a waker does not write to the eventfd, or the worker reads
 *   the eventfd before it polls.
 */
#include "ingress/push.h"
#include "thread/futex.h"
#include "world.h"

#include <errno.h>

enum { SECOND_LOOKS = 20 };

static struct probe one, far;
static int flushed[MODEL_FIBERS];

static void open_starting(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

/* Makes a timeout that is due one tick from now. */
static void open_soon(void)
{
	open_starting();
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
}

/* Makes a far deadline, for which the worker sleeps before `one` is scheduled. */
static void open_far(void)
{
	open_starting();
	world_schedule(&far, &probe_kind, WORLD_NOW_NS + 1000 * WORLD_TICK_NS);
}

/* Opens an engine on CLOCK_MONOTONIC. The model moves that clock when all threads wait. */
static void open_real(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

/* Makes the next schedule of the first thread complete a unit of 64 timeouts. */
static void unit_ends(void)
{
	struct twi_lane *lane = &world.worker->near.lane[twi_thread()->lane];

	twi_store_relaxed(&lane->scheduled_count, TWI_UNIT_TIMEOUTS - 1);
}

static void open_unit(void)
{
	open_starting();
	model_as(0, unit_ends);
}

static void set_clock(void)
{
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 3 * WORLD_TICK_NS) == 0);
}

static void schedule(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL) == 0);
}

/*
 * Schedules the timeout that completes the last unit that may wait, unless the worker has taken
 * entries meanwhile. The deadline is TW_NEVER, so only the count of units can wake the worker.
 */
static void schedule_last_unit(void)
{
	(void)twi_fetch_add_seq_cst(&world.worker->units_pending, TWI_UNITS_MAX - 1);
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, &one, NULL) == 0);
}

/* Runs when the timeout is due, and schedules another timeout that is due a little later. */
static void again_run(struct tw_handle self, void *arg)
{
	(void)self;
	MODEL_CHECK(tw_schedule(world.engine, 3 * WORLD_TICK_NS, &probe_kind, arg, NULL) == 0);
}

static void schedule_again(void)
{
	static const struct tw_kind kind = TW_KIND(again_run, NULL);

	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &kind, &one, NULL) == 0);
}

/*
 * Schedules, and moves the clock too, so that the last turn before the sleep may run the callback.
 */
static void schedule_again_and_set_clock(void)
{
	schedule_again();
	set_clock();
}

static void flush(void)
{
	int *mine = &flushed[model_self()];

	*mine = tw_engine_flush(world.engine, TW_NEVER);
	MODEL_CHECK(*mine == 0 || *mine == -ESHUTDOWN);
}

static void schedule_and_flush(void)
{
	int error = tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL);

	flush();
	if (error == 0 && flushed[model_self()] == 0)
		MODEL_CHECK(one.ran == 1);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

/*
 * Waits until the worker has done its work, although no thread is left to wake it. If the worker
 * did not see a push's link, it looks again after a millisecond. So this function allows time for a
 * few such looks.
 */
static void pending_await(int64_t count)
{
	static _Atomic uint32_t word;

	model_wait_idle();
	for (int looks = 0; looks < SECOND_LOOKS && tw_engine_pending(world.engine) > count;
	     looks++) {
		(void)twi_futex_wait(&word, 0, twi_until_ns(2 * WORLD_TICK_NS));
		model_wait_idle();
	}
}

static void ran_by_itself(void)
{
	pending_await(0);
	MODEL_CHECK(tw_engine_pending(world.engine) == 0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void ran_later(void)
{
	model_wait_idle();
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 10 * WORLD_TICK_NS) == 0);
	ran_by_itself();
}

static void ran_before_the_other(void)
{
	pending_await(1);
	MODEL_CHECK(tw_engine_pending(world.engine) == 1);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
	MODEL_CHECK(far.unexpired == 1);
}

/*
 * Checks that the worker does not sleep while the greatest allowed number of units waits. If the
 * worker has counted units as seen, it has also transferred their timeouts.
 */
static void units_seen(void)
{
	uint32_t unseen;

	model_wait_idle();
	unseen = twi_load_relaxed(&world.worker->units_pending);
	MODEL_CHECK(unseen < TWI_UNITS_MAX);
	if (unseen == 0)
		MODEL_CHECK(twi_load_relaxed(&world.worker->transferred_count) == 1);
	world_close();
}

static void close_it(void)
{
	world_close();
}

MODEL_HARNESS(sleep_clock, .proves = "a moved clock wakes the sleeping worker", .setup = open_soon,
	      .thread = {set_clock}, .worker = world_work, .finish = ran_by_itself,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_schedule, .proves = "the first schedule wakes the sleeping worker",
	      .setup = open_starting, .thread = {schedule}, .worker = world_work,
	      .finish = ran_by_itself, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_again,
	      .proves = "the worker's sleep ends for a timeout that its last turn has scheduled",
	      .setup = open_real, .thread = {schedule_again}, .worker = world_work,
	      .finish = ran_by_itself, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_last_turn,
	      .proves = "a callback in the last turn before the sleep may schedule",
	      .setup = open_starting, .thread = {schedule_again_and_set_clock},
	      .worker = world_work, .finish = ran_later, .preemptions = 1, .weak = 1,
	      .random_runs = 500);
MODEL_HARNESS(sleep_earlier,
	      .proves = "a timeout that is due before the end of the sleep wakes the worker",
	      .setup = open_far, .thread = {schedule}, .worker = world_work,
	      .finish = ran_before_the_other, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_unseen, .proves = "too many unseen schedules wake the sleeping worker",
	      .setup = open_unit, .thread = {schedule_last_unit}, .worker = world_work,
	      .finish = units_seen, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_stop, .proves = "stop wakes the sleeping worker", .setup = open_starting,
	      .thread = {stop}, .worker = world_work, .finish = close_it, .preemptions = 3,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(flush_sees,
	      .proves = "after a flush, the due timeouts have run, and their writes are visible",
	      .setup = open_starting, .thread = {schedule_and_flush}, .worker = world_work,
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(flush_stop, .proves = "flush returns, whatever the worker and stop do",
	      .setup = open_starting, .thread = {schedule_and_flush, stop}, .worker = world_work,
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(flush_twice, .proves = "two concurrent flushes both return", .setup = open_starting,
	      .thread = {flush, flush}, .worker = world_work, .finish = close_it, .preemptions = 1,
	      .weak = 1, .random_runs = 1000);

/*
 * Opens a worker that sleeps on file descriptors. It must see each wake-up. When it reads the
 * eventfd for one waker, it must not lose the wake-up of another.
 */
static void open_on_descriptors(void)
{
	struct tw_options options = world_options();

	MODEL_CHECK(tw_clock_create(TW_CLOCK_BOOTTIME, &options.clock) == 0);
	world_open(&options);
	world_life(TW_ENGINE_STARTING);
	world_threads(3, WORLD_STOCK_FILLED);
}

MODEL_HARNESS(sleep_descriptors, .proves = "two flushes wake a worker that sleeps on descriptors",
	      .setup = open_on_descriptors, .thread = {flush, flush}, .worker = world_work,
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(sleep_descriptors_stop,
	      .proves = "a flush and a stop wake a worker that sleeps on descriptors",
	      .setup = open_on_descriptors, .thread = {flush, stop}, .worker = world_work,
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 500);
