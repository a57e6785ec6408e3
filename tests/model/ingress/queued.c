/* SPDX-License-Identifier: MIT */
/*
 * A rescheduled timeout is in a queue. The worker takes it out of the queue while an executor ends
 * its run. One of the two must free the node, and only after the other has finished with it (E16).
 *
 * Seen to fail with these defects:
 * - word_end() makes its caller free a node whose queued bit is set;
 * - twi_node_reclaim() loads the state word relaxed;
 * - the swap of twi_node_reclaim(), or of word_end(), is without acquire, or without release;
 * - neither reclaim nor the end of the run gives the node back.
 */
#include "world.h"

#include "expiry/expire.h"
#include "worker/role.h"

#include <errno.h>

#define SOON_NS (WORLD_NOW_NS + WORLD_TICK_NS)
#define CLOCK_NS (WORLD_NOW_NS + 3 * WORLD_TICK_NS)

static struct probe one, two;
static struct tw_due due;

static size_t accept(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	due = batch[0];
	return count;
}

/* Opens with a timeout in a queue, which an executor is about to run. */
static void open_executor_keeping(void)
{
	struct tw_options options = world_options();

	options.dispatch = accept;
	world_open(&options);
	world_threads(3, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, SOON_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
	/*
	 * Reschedules as a thread other than the worker. The worker itself would file the timeout
	 * at once.
	 */
	model_thread_self()->wheel_of = NULL;
	MODEL_CHECK(tw_reschedule_at(one.handle, WORLD_DUE_NS) == TW_RESCHEDULE_DONE);
	twi_worker_enter(world.worker);
	(void)twi_worker_expire(world.worker, CLOCK_NS / WORLD_TICK_NS);
	world.worker->self->worker = NULL;
	MODEL_CHECK(tw_timeout_state(one.handle) == TW_STATE_EXPIRED);
}

/* Does the same with two threads that keep no blocks in their stocks. */
static void open_executor(void)
{
	open_executor_keeping();
	world_thread_bare(0);
	world_thread_bare(1);
}

static void turn(void)
{
	world_turn();
}

static void execute(void)
{
	MODEL_CHECK(tw_due_run(&due) == 0);
}

static void take_two(void)
{
	world_schedule(&two, &bare_kind, TW_NEVER);
	world_schedule(&one, &bare_kind, TW_NEVER);
}

static void freed_once(void)
{
	void *node = one.handle.node;

	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
	twi_stock_init(&twi_thread()->stock, true);
	take_two();
	MODEL_CHECK(two.handle.node == node && one.handle.node != node);
	world_close();
}

MODEL_HARNESS(reschedule_executor,
	      .proves = "a node in the queue at the end of a run is freed once",
	      .setup = open_executor, .thread = {execute, turn}, .finish = freed_once,
	      .preemptions = 2, .weak = 2, .random_runs = 500);

static void turn_and_take(void)
{
	world_turn();
	world_schedule(&two, &bare_kind, TW_NEVER);
}

/*
 * Looks at the timeout. If the generation shows that another timeout uses the node, this thread
 * must also see what the callback wrote.
 */
static void look_if_stale(void)
{
	if (tw_timeout_state(one.handle) == -ESTALE)
		MODEL_CHECK(one.ran == 1);
}

MODEL_HARNESS(reschedule_executor_stale,
	      .proves = "a thread that sees its node used again sees the callback's writes",
	      .setup = open_executor_keeping, .thread = {execute, turn_and_take, look_if_stale},
	      .finish = world_close, .preemptions = 1, .weak = 1, .random_runs = 500);
