/* SPDX-License-Identifier: MIT */
/*
 * Races the end of a run of a periodic timeout (a chain) against cancel, cancel_wait,
 * tw_timeout_get, a reschedule, the worker's sleep, and stop. Runs take place on the worker and in
 * an executor (E4, E8, E16, E22). A chain must end once, and in the way that the return code of the
 * ending call says. Its two blocks (the node and the chain's own block) must be given back once.
 *
 * A run writes ordinary memory: the probe, and the time of the next run in the chain's block. A
 * thread that ends the chain reads that memory. If the chain's last run does not happen before
 * these reads, the model reports a race.
 *
 * Seen to fail with these defects:
 * - again_here(), on the worker, or again_far(), in an executor, ends a run without release, or
 *   without acquire;
 * - again_here() or again_far() ends a run by a load and a store;
 * - again_here() or again_far() does not check OVER, by which a cancel ends the chain;
 * - run_cancel() sets OVER without release, or by a load and a store;
 * - tw_timeout_get reads the argument from the chain's block, but does not see that the block has a
 *   new owner;
 * - chain_free() gives the blocks back before the state word shows that the chain has ended;
 * - again_far() does not push the node, or pushes it although it is queued;
 * - again_far() does not read the deadline again after its push;
 * - twi_worker_finish() does not empty the queues a second time;
 * - in_flight_end() counts the executors' runs (`in_flight`) down relaxed;
 * - twi_chain_begin() writes a field of the chain's block before the block's new generation.
 */
#include "world.h"

#include "expiry/expire.h"
#include "worker/role.h"

#include <errno.h>

#define SOON_NS (WORLD_NOW_NS + WORLD_TICK_NS)
#define CLOCK_NS (WORLD_NOW_NS + 3 * WORLD_TICK_NS)

static const struct tw_period hours = TW_PERIOD_RATE(10000000LL * WORLD_TICK_NS);
/* This is a period of two ticks. The clock is moved so far that two runs are due. */
static const struct tw_period two_ticks = TW_PERIOD_RATE(2 * WORLD_TICK_NS);

static struct probe one, two;
static struct tw_due due;
static unsigned dispatched;

/*
 * A canceller writes `told` before it cancels. The finaliser, on any thread, must then read that
 * value.
 */
static unsigned told, found;

static void on_run(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;

	(void)self;
	probe->ran++;
}

static void on_end(void *arg, enum tw_end end)
{
	struct probe *probe = arg;

	if (end == TW_END_CANCELLED)
		found = told;
	probe->ended[end]++;
}

static const struct tw_kind chain_kind = TW_KIND(on_run, on_end);

static size_t accept(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	MODEL_CHECK(count == 1);
	due = batch[0];
	dispatched++;
	return 1;
}

static void open_world(tw_dispatch_hook *dispatch)
{
	struct tw_options options = world_options();

	options.dispatch = dispatch;
	options.check = TW_CHECK_FULL;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
	world_thread_bare(0);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	one.outcome = TW_CANCEL_RUNNING;
}

static void repeat(const struct tw_period *period, uint64_t runs)
{
	struct tw_period once = *period;

	once.first_ns = 0;
	once.runs = runs;
	MODEL_CHECK(tw_schedule_periodic(world.engine, &once, &chain_kind, &one, &one.handle) == 0);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

/* Opens with the chain in the wheel and due. */
static void open_due(void)
{
	open_world(NULL);
	repeat(&hours, 0);
}

/* Does the same with a chain that has only this run left. */
static void open_last(void)
{
	open_world(NULL);
	repeat(&hours, 1);
}

/* Opens with a run that an executor has. The next run is far away. */
static void open_dispatched(void)
{
	open_world(accept);
	repeat(&hours, 0);
	world_turn();
	MODEL_CHECK(dispatched == 1);
}

/* Opens with a run that an executor has. The next run is due as soon as this one has ended. */
static void open_behind(void)
{
	open_world(accept);
	repeat(&two_ticks, 0);
	world_turn();
	MODEL_CHECK(dispatched == 1);
}

/*
 * Opens with a run that an executor has. The chain's node is also in a queue, because the chain was
 * rescheduled while it waited for this run.
 */
static void open_queued(void)
{
	open_world(accept);
	repeat(&hours, 0);
	/*
	 * Reschedules as a thread other than the worker. The worker itself would file the chain at
	 * once.
	 */
	model_thread_self()->wheel_of = NULL;
	MODEL_CHECK(tw_reschedule_at(one.handle, WORLD_DUE_NS) == TW_RESCHEDULE_DONE);
	twi_worker_enter(world.worker);
	(void)twi_worker_expire(world.worker, CLOCK_NS / WORLD_TICK_NS);
	world.worker->self->worker = NULL;
	MODEL_CHECK(dispatched == 1);
}

static void turn(void)
{
	world_turn();
}

static void execute(void)
{
	MODEL_CHECK(tw_due_run(&due) == 0);
}

/* Cancels. If the cancel ended the chain, this thread may use what its runs wrote. */
static void cancel(void)
{
	told = 1;
	one.outcome = tw_cancel(one.handle);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE || one.outcome == TW_CANCEL_STOPPED);
	if (one.outcome == TW_CANCEL_DONE)
		MODEL_CHECK(one.ran <= 1 && one.ended[TW_END_CANCELLED] == 1);
}

static void cancel_wait(void)
{
	told = 1;
	one.outcome = tw_cancel_wait(one.handle, TW_NEVER);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE);
	MODEL_CHECK(one.ran <= 1 && one.ended[TW_END_CANCELLED] == 1);
}

/* Does the same while another thread waits too. */
static void cancel_wait_too(void)
{
	int outcome = tw_cancel_wait(one.handle, TW_NEVER);

	MODEL_CHECK(outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_CANCELLED ||
		    outcome == TW_CANCEL_STALE);
	/* With another outcome, another thread has cancelled, and the finaliser may still run. */
	if (outcome == TW_CANCEL_DONE)
		MODEL_CHECK(one.ended[TW_END_CANCELLED] == 1);
}

/* Cancels during the last run. If that run ended the chain, this thread sees what the run wrote. */
static void cancel_last(void)
{
	told = 1;
	one.outcome = tw_cancel(one.handle);
	if (one.outcome == TW_CANCEL_EXPIRED)
		MODEL_CHECK(one.ran == 1 && one.ended[TW_END_EXPIRED] == 1);
}

static unsigned ends(void)
{
	return one.ended[0] + one.ended[1] + one.ended[2];
}

static void books(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.expired == one.ended[TW_END_EXPIRED] + two.ran);
	MODEL_CHECK(stats.cancelled == one.ended[TW_END_CANCELLED]);
	MODEL_CHECK(stats.check_failures == 0);
}

/* Checks that the chain ended as cancelled, whatever else has happened. */
static void cancelled(void)
{
	world_turn();
	MODEL_CHECK(ends() == 1 && one.ended[TW_END_CANCELLED] == 1);
	MODEL_CHECK(found == told);
	books();
	world_close();
	MODEL_CHECK(ends() == 1 && one.unexpired == 0);
}

/* Checks that the chain has run this many times and then waited, so that stop handed it back. */
static void unexpired_after(unsigned runs)
{
	books();
	world_close();
	MODEL_CHECK(one.ran == runs);
	MODEL_CHECK(ends() == 1 && one.ended[TW_END_UNEXPIRED] == 1 && one.unexpired == 1);
}

static void last_ended(void)
{
	bool late = one.outcome == TW_CANCEL_EXPIRED || one.outcome == TW_CANCEL_RUNNING;

	MODEL_CHECK(ends() == 1);
	MODEL_CHECK(one.ended[late ? TW_END_EXPIRED : TW_END_CANCELLED] == 1);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE ? one.ran == 0 : one.ran == 1);
	world_turn();
	books();
	world_close();
	MODEL_CHECK(ends() == 1);
}

MODEL_HARNESS(chain_cancel, .proves = "cancel and a run's end: one end, as the code says",
	      .setup = open_due, .thread = {cancel, turn}, .finish = cancelled, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(chain_wait, .proves = "cancel_wait sees what the last run and the finaliser wrote",
	      .setup = open_due, .thread = {cancel_wait, turn}, .finish = cancelled,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(chain_wait_two, .proves = "two threads in cancel_wait are both woken",
	      .setup = open_due, .thread = {cancel_wait_too, cancel_wait_too, turn},
	      .finish = cancelled, .preemptions = 2, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(chain_last, .proves = "cancel and the last run: one end, as the code says",
	      .setup = open_last, .thread = {cancel_last, turn}, .finish = last_ended,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(chain_executor_cancel, .proves = "cancel, an executor's run and a turn: one end",
	      .setup = open_dispatched, .thread = {execute, cancel, turn}, .finish = cancelled,
	      .preemptions = 2, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(chain_executor_wait, .proves = "cancel_wait waits for an executor's run",
	      .setup = open_dispatched, .thread = {execute, cancel_wait}, .finish = cancelled,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * In the next harness, an executor makes the next run after the worker has dispatched it. That run
 * must see what the previous run wrote.
 */

static void behind_ran(void)
{
	world_turn();
	MODEL_CHECK(dispatched == 2 && one.ran == 1);
	execute();
	MODEL_CHECK(one.ran == 2);
	unexpired_after(2);
}

/*
 * In this harness the main fiber makes the last turns, after all threads have ended. So the
 * dispatch hook's accesses need no order of their own.
 */
MODEL_HARNESS(chain_executor, .proves = "each run in an executor sees what the previous run wrote",
	      .setup = open_behind, .thread = {execute, turn}, .finish = behind_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

static void queued_ran(void)
{
	world_turn();
	unexpired_after(1);
}

MODEL_HARNESS(chain_queued, .proves = "a chain queued at a run's end is filed, and freed once",
	      .setup = open_queued, .thread = {execute, turn}, .finish = queued_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * Checks that a chain's node is given back once if the chain was cancelled while the node was in a
 * queue: three timeouts must get three different nodes.
 */
static void freed_once(void)
{
	struct tw_handle handle[3];

	world_turn();
	MODEL_CHECK(ends() == 1 && one.ended[TW_END_CANCELLED] == 1);
	twi_stock_init(&twi_thread()->stock, true);
	for (int i = 0; i < 3; i++)
		MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &two, &handle[i]) == 0);
	MODEL_CHECK(handle[0].node != handle[1].node && handle[0].node != handle[2].node &&
		    handle[1].node != handle[2].node);
	world_close();
}

static void open_queued_bare(void)
{
	open_queued();
	world_thread_bare(2);
}

static void cancel_any(void)
{
	one.outcome = tw_cancel(one.handle);
}

MODEL_HARNESS(chain_queued_cancel, .proves = "a chain queued at a run's end may be cancelled",
	      .setup = open_queued_bare, .thread = {execute, cancel_any}, .finish = freed_once,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

static void at_once(void)
{
	int outcome = tw_reschedule_at(one.handle, WORLD_DUE_NS);

	one.outcome = outcome;
	MODEL_CHECK(outcome == TW_RESCHEDULE_DONE || outcome == TW_RESCHEDULE_RUNNING);
}

/* Checks the chain's runs. If the reschedule reported success, the chain was due at once. */
static void rescheduled_ran(void)
{
	unsigned runs = one.outcome == TW_RESCHEDULE_DONE ? 2 : 1;

	world_turn();
	world_turn();
	MODEL_CHECK(dispatched >= runs);
	if (dispatched == 2)
		execute();
	unexpired_after(dispatched);
}

MODEL_HARNESS(chain_reschedule, .proves = "an earlier time that is set at a run's end holds",
	      .setup = open_dispatched, .thread = {execute, at_once, turn},
	      .finish = rescheduled_ran, .preemptions = 2, .weak = 0, .random_runs = 1000);

/*
 * Checks the chain's runs. If the worker ran the chain in its first turn, the chain ran again at
 * the new deadline.
 */
static void moved_ran(void)
{
	world_turn();
	world_turn();
	MODEL_CHECK(one.ran >= 1 && one.ran <= 2);
	unexpired_after(one.ran);
}

MODEL_HARNESS(chain_reschedule_worker, .proves = "an earlier time set beside a worker's run holds",
	      .setup = open_due, .thread = {at_once, turn}, .finish = moved_ran, .preemptions = 2,
	      .weak = 1, .random_runs = 500);

/* In the next harnesses, calls race against the worker's sleep. */

static void open_asleep(void)
{
	open_behind();
	world_life(TW_ENGINE_STARTING);
}

static void dispatched_again(void)
{
	model_wait_idle();
	MODEL_CHECK(dispatched == 2);
	execute();
	model_wait_idle();
	unexpired_after(2);
}

MODEL_HARNESS(chain_sleep, .proves = "a chain that is due again after a run wakes the worker",
	      .setup = open_asleep, .thread = {execute}, .worker = world_work,
	      .finish = dispatched_again, .preemptions = 1, .weak = 1, .random_runs = 2000);

static void open_asleep_far(void)
{
	open_dispatched();
	world_life(TW_ENGINE_STARTING);
}

/* Checks that, if the reschedule succeeded, one of the two threads has woken the worker. */
static void woken_by_one(void)
{
	model_wait_idle();
	MODEL_CHECK(dispatched == (one.outcome == TW_RESCHEDULE_DONE ? 2 : 1));
	if (dispatched == 2)
		execute();
	unexpired_after(dispatched);
}

MODEL_HARNESS(chain_sleep_twice, .proves = "a chain's rerun or an earlier time wakes the worker",
	      .setup = open_asleep_far, .thread = {execute, at_once}, .worker = world_work,
	      .finish = woken_by_one, .preemptions = 1, .weak = 1, .random_runs = 2000);

/* In the next harnesses, calls race against stop. */

static void stop(void)
{
	world_close();
}

static void unexpired_once(void)
{
	MODEL_CHECK(one.ran == 1);
	MODEL_CHECK(ends() == 1 && one.ended[TW_END_UNEXPIRED] == 1 && one.unexpired == 1);
}

MODEL_HARNESS(chain_stop_executor, .proves = "after an executor's run, stop hands back once",
	      .setup = open_dispatched, .thread = {execute, stop}, .finish = unexpired_once,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

static void stopped_cancelled(void)
{
	bool back = one.outcome == TW_CANCEL_CANCELLED || one.outcome == TW_CANCEL_STALE;

	MODEL_CHECK(ends() == 1);
	MODEL_CHECK(one.ended[back ? TW_END_UNEXPIRED : TW_END_CANCELLED] == 1);
	MODEL_CHECK(one.unexpired == back);
}

MODEL_HARNESS(chain_stop_cancel, .proves = "stop, a cancel and a run: one end, as the code says",
	      .setup = open_dispatched, .thread = {execute, stop, cancel_any},
	      .finish = stopped_cancelled, .preemptions = 1, .weak = 0, .random_runs = 2000);

/*
 * In the next harnesses, a thread reads the chain while it ends and its blocks become other
 * timeouts.
 */

static void get(void)
{
	struct tw_timeout seen = {.size = sizeof seen};
	int error = tw_timeout_get(one.handle, &seen);

	MODEL_CHECK(error == 0 || error == -ESTALE);
	if (error != 0)
		return;
	MODEL_CHECK(seen.kind == &chain_kind && seen.engine == world.engine);
	MODEL_CHECK(seen.arg == &one || (seen.arg == NULL && seen.state != TW_STATE_INIT));
}

static void cancel_and_take(void)
{
	cancel();
	MODEL_CHECK(tw_schedule_periodic(world.engine, &hours, &bare_kind, &two, &two.handle) == 0);
}

static void turn_and_take(void)
{
	world_turn();
	MODEL_CHECK(tw_schedule_periodic(world.engine, &hours, &bare_kind, &two, &two.handle) == 0);
}

MODEL_HARNESS(chain_get, .proves = "tw_timeout_get is right while a chain's block is used again",
	      .setup = open_due, .thread = {get, cancel_and_take}, .finish = world_close,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
static void open_last_bare(void)
{
	open_last();
	world_thread_bare(2);
}

static void take(void)
{
	MODEL_CHECK(tw_schedule_periodic(world.engine, &hours, &bare_kind, &two, &two.handle) == 0);
}

MODEL_HARNESS(chain_get_taken, .proves = "a chain's block is free only when its state says so",
	      .setup = open_last_bare, .thread = {get, turn, take}, .finish = world_close,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(chain_get_last, .proves = "tw_timeout_get is right during the last run",
	      .setup = open_last, .thread = {get, turn_and_take}, .finish = world_close,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * In the next harness, a chain is cancelled while its entry is in a ring. The canceller gets both
 * blocks at once and uses them again.
 */

static void open_ringed(void)
{
	struct tw_period once = hours;

	open_world(NULL);
	once.first_ns = 0;
	MODEL_CHECK(tw_schedule_periodic(world.engine, &once, &chain_kind, &one, &one.handle) == 0);
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

static void cancelled_taken(void)
{
	world_turn();
	MODEL_CHECK(ends() == 1 && one.ended[TW_END_CANCELLED] == 1);
	MODEL_CHECK(found == told && two.ran == 0);
	books();
	world_close();
	MODEL_CHECK(ends() == 1 && two.unexpired == 1);
}

MODEL_HARNESS(chain_ring, .proves = "a chain cancelled in a ring is freed once",
	      .setup = open_ringed, .thread = {cancel_and_take, turn}, .finish = cancelled_taken,
	      .preemptions = 2, .weak = 0, .random_runs = 1000);

/*
 * In the next harnesses, a thread uses an old handle of a timeout whose node has become a chain's.
 */

static void open_reborn(void)
{
	open_world(NULL);
	world_schedule(&two, &bare_kind, SOON_NS);
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

/*
 * Cancels two timeouts in the ring, then schedules a chain. The chain takes the block that was
 * given back last as its own block, and the block that was given back before it as its node.
 */
static void reborn(void)
{
	struct tw_period once = hours;
	struct probe *third = &one;

	once.first_ns = 0;
	world_schedule(third, &bare_kind, TW_NEVER);
	(void)tw_cancel(two.handle);
	(void)tw_cancel(third->handle);
	MODEL_CHECK(tw_schedule_periodic(world.engine, &once, &bare_kind, &one, &one.handle) == 0);
}

static void get_old(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	if (tw_timeout_get(two.handle, &seen) == 0)
		MODEL_CHECK(seen.deadline_ns == SOON_NS && seen.arg == &two);
}

MODEL_HARNESS(chain_reborn, .proves = "an old handle never shows the next chain's argument",
	      .setup = open_reborn, .thread = {reborn, turn, get_old}, .finish = world_close,
	      .preemptions = 1, .weak = 1, .random_runs = 1000);

/* Does the same, and makes the chain run too, so that the worker stores its next deadline. */
static void reborn_due(void)
{
	reborn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS + 2 * WORLD_TICK_NS) == 0);
}

MODEL_HARNESS(chain_reborn_ran, .proves = "an old handle never shows when the next chain runs",
	      .setup = open_reborn, .thread = {reborn_due, turn, get_old}, .finish = world_close,
	      .preemptions = 1, .weak = 1, .random_runs = 1000);

/*
 * Cancels in the other order, so that the old timeout's block becomes the chain's own block instead
 * of its node.
 */
static void reborn_second(void)
{
	struct probe *third = &one;

	world_schedule(third, &bare_kind, TW_NEVER);
	(void)tw_cancel(third->handle);
	(void)tw_cancel(two.handle);
	MODEL_CHECK(tw_schedule_periodic(world.engine, &hours, &bare_kind, &one, &one.handle) == 0);
	MODEL_CHECK(twi_node_of_handle(one.handle)->arg == two.handle.node);
}

MODEL_HARNESS(chain_reborn_second, .proves = "an old handle never shows the chain's own block",
	      .setup = open_reborn, .thread = {reborn_second, get_old}, .finish = world_close,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
