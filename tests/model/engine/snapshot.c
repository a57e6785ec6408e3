/* SPDX-License-Identifier: MIT */
/*
 * A thread asks the worker for a snapshot, while the worker turns, another thread asks too, and a
 * thread stops the engine (E71). The call must always return: with a complete answer, or with an
 * error after which no thread writes to the caller's memory. In loop mode a poll must answer before
 * it runs timeouts, so that the answer shows those that are due.
 *
 * Seen to fail with these defects:
 * - the request (`worker->snapshot`) is published, taken or answered relaxed;
 * - twi_snapshot_serve() takes the request by a load and a store;
 * - the asking thread reads the engine's state before it takes its flush ticket, or takes no
 *   ticket;
 * - a thread that gives up does not withdraw its request;
 * - a thread that gives up does not wait for an answer that the worker has begun;
 * - a thread waits until another thread has its answer, and is not notified;
 * - a poll does not answer, or answers after its turn.
 */
#include "turn/snapshot.h"
#include "thread/futex.h"
#include "worker/role.h"
#include "world.h"

#include <errno.h>

static struct probe one;
static struct twi_snapshot place[MODEL_FIBERS];
static _Atomic uint32_t answered;

static void open_running(void)
{
	world_open(NULL);
	world_threads(4, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
}

static void open_starting(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

/*
 * Asks for a snapshot, in which `count` timeouts are expected. After the call the memory for the
 * answer belongs to the caller again, so a late write by the worker is a race.
 */
static int look(int64_t until_ns, uint64_t count)
{
	struct twi_snapshot *own = &place[model_self()];
	int error = twi_snapshot_ask(world.worker, own, until_ns);

	if (error == 0)
		MODEL_CHECK(own->count + own->ingress.ring == count &&
			    own->wheel.now_ns == WORLD_NOW_NS);
	own->count = own->tick = 0;
	return error;
}

static void ask(void)
{
	MODEL_CHECK(look(INT64_MAX, 0) == 0);
}

static void schedule_and_ask(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, &one, NULL) == 0);
	MODEL_CHECK(look(INT64_MAX, 1) == 0);
}

/*
 * Asks for a snapshot and may give up: the worker answers only when all threads wait, and then this
 * call's time is up.
 */
static void ask_in_vain(void)
{
	int error = look(twi_until_ns(WORLD_TICK_NS), 0);

	MODEL_CHECK(error == 0 || error == -ETIMEDOUT);
}

static void ask_patiently(void)
{
	ask();
	twi_store_relaxed(&answered, 1);
}

static void serve_late(void)
{
	twi_worker_enter(world.worker);
	while (twi_load_relaxed(&answered) == 0) {
		(void)twi_futex_wait(&answered, 0, twi_until_ns(10 * WORLD_TICK_NS));
		twi_snapshot_look(world.worker);
	}
	world.worker->self->worker = NULL;
}

static void own_with_due(void)
{
	MODEL_CHECK(tw_loop_enter(world.engine) == 0);
	world_schedule(&one, &probe_kind, WORLD_DUE_NS);
}

/* Opens a loop. Its owner, the second thread, has a timeout that is due. */
static void open_loop(void)
{
	struct tw_options options = world_options();

	options.flags = TW_ENGINE_LOOP;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world.has_worker = true;
	model_as(1, own_with_due);
}

static void ask_before_the_run(void)
{
	MODEL_CHECK(look(INT64_MAX, 1) == 0);
}

/* Polls when the other thread waits for its answer. */
static void poll_when_asked(void)
{
	model_wait_idle();
	MODEL_CHECK(tw_engine_poll(world.engine, 0) == 1);
	MODEL_CHECK(tw_loop_exit(world.engine) == 0);
}

static void ask_at_the_end(void)
{
	int error = look(INT64_MAX, 0);

	MODEL_CHECK(error == 0 || error == -ESHUTDOWN);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

static void close_it(void)
{
	MODEL_CHECK(twi_load_relaxed(&world.worker->snapshot) == NULL);
	world_close();
}

MODEL_HARNESS(snapshot_sees, .proves = "a snapshot is complete and has what its caller did before",
	      .setup = open_starting, .thread = {schedule_and_ask}, .worker = world_work,
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(snapshot_two, .proves = "two concurrent requests for a snapshot are both answered",
	      .setup = open_starting, .thread = {ask, ask}, .worker = world_work,
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(snapshot_vain,
	      .proves = "a request that gave up writes no memory, and others can ask",
	      .setup = open_running, .thread = {ask_in_vain, ask_patiently, serve_late},
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(snapshot_loop, .proves = "a poll answers a request before it runs timeouts",
	      .setup = open_loop, .thread = {ask_before_the_run, poll_when_asked},
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 100);
MODEL_HARNESS(snapshot_stop, .proves = "a request for a snapshot returns, whatever stop does",
	      .setup = open_starting, .thread = {ask_at_the_end, stop}, .worker = world_work,
	      .finish = close_it, .preemptions = 1, .weak = 1, .random_runs = 1000);
