/* SPDX-License-Identifier: MIT */
/*
 * Races the worker's sleep against pushes without a fence. A lane is busy if the worker has taken
 * many entries from it at once. The producer of a busy lane pushes without a fence, and a barrier
 * by the sleeper replaces the fence. If the barrier fails, the worker must sleep only for a short
 * time. If a push does not wake the worker in a long sleep, the model reports a deadlock (E8).
 * Other harnesses have a busy lane together with a stop (E10), a flush (E13), a loop, or a second
 * thread that gets the lane (E7).
 *
 * Seen to fail with these defects:
 * - barrier_make() makes no barrier;
 * - the worker ignores that the barrier has failed; or only the owner of a loop does so, in
 *   first_rest();
 * - twi_sleep_publish() makes the barrier before it publishes the sleep;
 * - twi_ring_raise() has no compiler fence after its store of the tail;
 * - twi_ring_raise() stores the tail relaxed;
 * - the exchange of the tail, for lanes that are not busy, is weaker than sequentially consistent;
 * - the sleeper's load of the tail (twi_ring_pushed) is weaker than sequentially consistent;
 * - a lane is marked busy by a relaxed store in the turn after the sleep is published;
 * - a lane becomes busy with few entries;
 * - a lane's number is given back or taken relaxed.
 */
#include "world.h"

#include "ingress/push.h"
#include "turn/thread.h"
#include "worker/left.h"
#include "worker/role.h"

#include <errno.h>

#define SOON_NS (WORLD_NOW_NS + WORLD_TICK_NS)
#define LATER_NS (WORLD_NOW_NS + 10 * WORLD_TICK_NS)

/* This many entries at once make a lane busy; see tests/model/meson.build. */
enum { MANY = TWI_RING_ENTRIES - 1 };

static struct probe one, two;
static int told[MODEL_FIBERS];

/*
 * Makes the thread's lane busy, as the worker does when it takes many entries from the lane at
 * once.
 */
static void lane_busy(void)
{
	world.worker->unfenced = true;
	twi_store_relaxed(&twi_lane_of(world.worker, twi_thread())->unfenced, true);
}

static void open_busy_with(const struct tw_options *options)
{
	world_open(options);
	world_threads(3, WORLD_STOCK_FILLED);
	model_as(0, lane_busy);
	model_as(1, lane_busy);
}

static void open_busy(void)
{
	open_busy_with(NULL);
	world_life(TW_ENGINE_STARTING);
}

static void open_in_wheel(int64_t deadline_ns)
{
	open_busy_with(NULL);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, deadline_ns);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

static void open_far(void)
{
	open_in_wheel(TW_NEVER);
}

/*
 * Opens with a timeout for which the worker is needed in ten ticks. A reschedule to a slightly
 * earlier deadline does not wake the worker.
 */
static void open_ten_ticks(void)
{
	open_in_wheel(LATER_NS + 1);
}

static void schedule_one(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL) == 0);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
}

static void schedule_both(void)
{
	struct tw_item items[2] = {{WORLD_DUE_NS, &probe_kind, &one},
				   {WORLD_DUE_NS, &probe_kind, &two}};

	MODEL_CHECK(tw_schedule_many_at(world.engine, items, 2, NULL, NULL) == 2);
}

static void to(int64_t deadline_ns)
{
	told[model_self()] = tw_reschedule_at(one.handle, deadline_ns);
}

static void at_once(void)
{
	to(WORLD_DUE_NS);
}

static void not_yet(void)
{
	to(LATER_NS);
}

static void one_ran(void)
{
	world_await_pending(0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void both_ran(void)
{
	one_ran();
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

/*
 * Checks that the timeout ran. If the reschedule to LATER_NS came last, its deadline holds, and the
 * timeout need not have run.
 */
static void ran_or_is_later(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	model_wait_idle();
	if (tw_timeout_get(one.handle, &seen) == 0 && seen.state == TW_STATE_INIT &&
	    seen.deadline_ns != LATER_NS)
		world_await_pending(0);
	world_close();
	(void)probe_end(&one);
}

MODEL_HARNESS(busy_schedule, .proves = "a schedule in a busy lane wakes the sleeping worker",
	      .setup = open_busy, .thread = {schedule_one}, .worker = world_work, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_two, .proves = "two schedules in busy lanes wake the sleeping worker",
	      .setup = open_busy, .thread = {schedule_one, schedule_two}, .worker = world_work,
	      .finish = both_ran, .preemptions = 1, .weak = 0, .random_runs = 2000);
MODEL_HARNESS(busy_batch, .proves = "a batch in a busy lane wakes the sleeping worker",
	      .setup = open_busy, .thread = {schedule_both}, .worker = world_work,
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_earlier, .proves = "an earlier deadline in the wheel wakes the sleeping worker",
	      .setup = open_far, .thread = {at_once}, .worker = world_work, .finish = one_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_earlier_twice,
	      .proves = "of two earlier deadlines, the one that needs the worker wakes it",
	      .setup = open_ten_ticks, .thread = {not_yet, at_once}, .worker = world_work,
	      .finish = ran_or_is_later, .preemptions = 1, .weak = 0, .random_runs = 2000);
MODEL_HARNESS(busy_earlier_order,
	      .proves = "in either order of two earlier deadlines, one call wakes the worker",
	      .setup = open_ten_ticks, .thread = {not_yet, at_once}, .worker = world_work,
	      .finish = ran_or_is_later, .any_order = true, .preemptions = 1, .weak = 1,
	      .random_runs = 1000);

/*
 * In the next harness, the lane becomes busy in the last turn before the sleep. Before that turn,
 * the worker has already found no busy lane, and has made no barrier.
 */

static void schedule_many(void)
{
	for (int i = 0; i < MANY; i++)
		MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &two, NULL) == 0);
}

static void open_many(void)
{
	world_open(NULL);
	world_threads(1, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	model_as(0, schedule_many);
	world_life(TW_ENGINE_STARTING);
}

/* Begins with the worker's sleep, so that the turn inside the sleep finds the entries. */
static void sleep_and_work(void)
{
	twi_worker_enter(world.worker);
	twi_worker_sleep(world.worker, TWI_LEFT_NOTHING);
	world.worker->self->worker = NULL;
	world_work();
}

static void one_of_many_ran(void)
{
	world_await_pending(MANY);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

MODEL_HARNESS(busy_begins,
	      .proves = "a lane that becomes busy in the turn before the sleep wakes the worker",
	      .setup = open_many, .thread = {schedule_one}, .worker = sleep_and_work,
	      .finish = one_of_many_ran, .any_order = true, .preemptions = 1, .weak = 1,
	      .random_runs = 500);
/*
 * This harness does the same, but the lane becomes busy one turn earlier, so the worker knows that
 * the lane is busy when it goes to sleep.
 */
MODEL_HARNESS(busy_began, .proves = "a lane that becomes busy before the sleep wakes the worker",
	      .setup = open_many, .thread = {schedule_one}, .worker = world_work,
	      .finish = one_of_many_ran, .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * In the next harness, a lane becomes busy when the worker takes MANY entries from it at once, and
 * stays busy. No public call shows which lanes are busy, so the harness reads the lanes.
 */

static void schedule_few(void)
{
	for (int i = 1; i < MANY; i++)
		MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &two, NULL) == 0);
}

static uint64_t busy_lanes(void)
{
	uint64_t busy = 0;

	for (unsigned i = 0; i < TWI_LANES; i++)
		/* RELAXED: there is no other thread. */
		busy |= (uint64_t)twi_load_relaxed(&world.worker->near.lane[i].unfenced) << i;
	return busy;
}

static void open_few(void)
{
	world_open(NULL);
	world_threads(1, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	model_as(0, schedule_few);
	world_turn();
	MODEL_CHECK(busy_lanes() == 0);
}

static void busy_after_many(void)
{
	world_turn();
	MODEL_CHECK(busy_lanes() == twi_load_relaxed(&world.worker->near.used));
	world_close();
}

MODEL_HARNESS(busy_few, .proves = "a lane becomes busy when it brings many entries at once",
	      .setup = open_few, .thread = {schedule_many}, .finish = busy_after_many,
	      .preemptions = 0, .weak = 0, .random_runs = 0);

/*
 * In the next harness, no lane is busy. So the worker must sleep without a barrier, and its sleep
 * must not be shortened.
 */

static void open_idle(void)
{
	world_open(NULL);
	world_threads(1, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

static void no_barrier(void)
{
	one_ran();
	/* Stop has made a barrier for each of its two waits for presences. */
	MODEL_CHECK(model_barriers() == 2);
}

MODEL_HARNESS(busy_none, .proves = "the worker makes no barrier if no lane is busy",
	      .setup = open_idle, .thread = {schedule_one}, .worker = world_work,
	      .finish = no_barrier, .preemptions = 0, .weak = 0, .random_runs = 0);

/*
 * In the next harnesses, schedules or cancels reach the bound on the units that the worker has not
 * seen (TWI_UNITS_MAX).
 */

static void unit_ends(void)
{
	struct twi_lane *lane = &world.worker->near.lane[twi_thread()->lane];

	twi_store_relaxed(&lane->scheduled_count, TWI_UNIT_TIMEOUTS - 1);
	twi_store_relaxed(&lane->cancelled_count, TWI_UNIT_TIMEOUTS);
}

static void open_unit(void)
{
	open_busy();
	model_as(0, unit_ends);
}

static void open_unit_in_wheel(void)
{
	open_far();
	model_as(0, unit_ends);
}

/* Counts so many units that one more reaches TWI_UNITS_MAX. */
static void units_before(void)
{
	(void)twi_fetch_add_seq_cst(&world.worker->units_pending, TWI_UNITS_MAX - 1);
}

static void schedule_last_unit(void)
{
	units_before();
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, &one, NULL) == 0);
}

static void cancel_last_unit(void)
{
	units_before();
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

/*
 * Checks that the worker does not sleep while TWI_UNITS_MAX units wait. If the worker has counted
 * units as seen, it has also taken their entries.
 */
static void units_seen(const _Atomic uint64_t *count)
{
	uint32_t unseen;

	model_wait_idle();
	unseen = twi_load_relaxed(&world.worker->units_pending);
	MODEL_CHECK(unseen < TWI_UNITS_MAX);
	if (unseen == 0)
		MODEL_CHECK(twi_load_relaxed(count) == 1);
	world_close();
}

static void scheduled_seen(void)
{
	units_seen(&world.worker->transferred_count);
}

static void cancelled_seen(void)
{
	units_seen(&world.worker->reclaimed_count);
}

MODEL_HARNESS(busy_unseen, .proves = "too many unseen schedules wake the sleeping worker",
	      .setup = open_unit, .thread = {schedule_last_unit}, .worker = world_work,
	      .finish = scheduled_seen, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_cancel_unseen, .proves = "too many unseen cancels wake the sleeping worker",
	      .setup = open_unit_in_wheel, .thread = {cancel_last_unit}, .worker = world_work,
	      .finish = cancelled_seen, .preemptions = 1, .weak = 1, .random_runs = 500);

/* In the next harnesses, a flush or a stop on another thread relies on the complete push. */

static void schedule_and_flush(void)
{
	schedule_one();
	MODEL_CHECK(tw_engine_flush(world.engine, TW_NEVER) == 0);
	MODEL_CHECK(one.ran == 1);
}

static void schedule_beside_stop(void)
{
	one.outcome = tw_schedule(world.engine, TW_NEVER, &probe_kind, &one, NULL);
	MODEL_CHECK(one.outcome == 0 || one.outcome == -ESHUTDOWN);
}

static void earlier_beside_stop(void)
{
	one.outcome = tw_reschedule_at(one.handle, SOON_NS);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

/*
 * Checks that each entry of a ring was read, because no thread may push after the sweep has begun.
 */
static void rings_read(void)
{
	for (unsigned i = 0; i < TWI_LANES; i++) {
		struct twi_lane *lane = &world.worker->near.lane[i];

		MODEL_CHECK(twi_ring_pushed(&lane->ring) == twi_ring_taken(&lane->ring_out));
	}
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void stopped(void)
{
	rings_read();
	if (one.outcome == 0)
		MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	else
		MODEL_CHECK(one.ended[0] + one.ended[1] + one.ended[2] == 0);
}

static void stopped_earlier(void)
{
	rings_read();
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
}

MODEL_HARNESS(busy_flush,
	      .proves = "after a flush, the due timeouts have run, and their writes are visible",
	      .setup = open_busy, .thread = {schedule_and_flush}, .worker = world_work,
	      .finish = world_close, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_stop, .proves = "stop hands back each timeout whose schedule was accepted",
	      .setup = open_busy, .thread = {schedule_beside_stop, stop}, .worker = world_work,
	      .finish = stopped, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(busy_stop_earlier,
	      .proves = "stop reads each push of a reschedule to an earlier deadline",
	      .setup = open_far, .thread = {earlier_beside_stop, stop}, .worker = world_work,
	      .finish = stopped_earlier, .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * In the next harness, a loop sleeps on its descriptor, and publishes its sleep as a worker does.
 */

static void open_loop(void)
{
	struct tw_options options = world_options();

	options.flags = TW_ENGINE_LOOP;
	open_busy_with(&options);
	/*
	 * In loop mode only cancelled timeouts go through rings. These settings let scheduled
	 * timeouts use the rings too.
	 */
	world.engine->worker.ordered = false;
	world.engine->worker.quick = true;
	world.has_worker = true;
}

static void loop_run(void)
{
	MODEL_CHECK(tw_loop_enter(world.engine) == 0);
	MODEL_CHECK(tw_engine_fd(world.engine) >= 0);
	do {
		model_timer_wait();
	} while (tw_engine_poll(world.engine, 0) >= 0);
}

MODEL_HARNESS(busy_loop, .proves = "a schedule in a busy lane wakes a sleeping loop",
	      .setup = open_loop, .thread = {schedule_one}, .worker = loop_run, .finish = one_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 1000);

/*
 * In the next harness, a lane passes to its next owner while its ring has entries. Nothing else
 * orders the two owners.
 */

static void open_wheeled(void)
{
	world_open(NULL);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
	world_turn();
}

/*
 * Cancels one timeout. Neither thread has a lane when the harness begins, so both may get the same
 * lane number. Neither takes a block, because the depot would then order the two threads.
 */
static void cancel_one(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void cancel_two(void)
{
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
}

static void turn(void)
{
	world_turn();
}

static void both_out(void)
{
	world_turn();
	MODEL_CHECK(twi_load_relaxed(&world.worker->reclaimed_count) == 2);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_CANCELLED);
	MODEL_CHECK(probe_end(&two) == TW_END_CANCELLED);
}

MODEL_HARNESS(busy_handed, .proves = "the next owner of a lane continues in its ring",
	      .setup = open_wheeled, .thread = {cancel_one, cancel_two, turn}, .finish = both_out,
	      .threads_end = true, .preemptions = 1, .weak = 1, .random_runs = 500);
