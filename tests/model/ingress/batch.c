/* SPDX-License-Identifier: MIT */
/*
 * Races batches of schedules (ingress/batch.h) and of cancels against the worker's turns and its
 * sleep, against stop, and against each other. Each item must end once. No item may be lost if the
 * ring is too small for all of them, or if threads share the lane. A timeout that a batch cancels
 * must be freed once. Rings have four places in this build.
 *
 * Seen to fail with these defects:
 * - a batch sets a node's state INIT after the node's ring entry is visible;
 * - twi_batch_end() does not raise the ring's tail;
 * - a batch does not check whether the ring has room;
 * - a batch does not push the chain of nodes that found no room in the ring;
 * - span_report() does not wake the sleeping worker, or compares only the last item's deadline;
 * - tw_cancel_many changes a state word by a load and a store;
 * - tw_cancel_many has no critical section.
 */
#include "world.h"

#include <errno.h>

enum { FEW = 2, MANY = TWI_RING_ENTRIES + 2 };

#define LATER_NS (WORLD_NOW_NS + WORLD_TICK_NS)

static struct probe probes[MANY], others[FEW];
static struct tw_handle handles[FEW];
static int outcomes[MODEL_FIBERS][FEW];
static int scheduled;

static int many(struct probe *probe, int count, int64_t deadline_ns)
{
	struct tw_item items[MANY];
	struct tw_handle made[MANY];
	int done;

	for (int i = 0; i < count; i++)
		items[i] = (struct tw_item){deadline_ns, &probe_kind, &probe[i]};
	done = tw_schedule_many_at(world.engine, items, (size_t)count, made, NULL);
	for (int i = 0; i < done; i++)
		probe[i].handle = made[i];
	return done;
}

static void schedule_few(void)
{
	MODEL_CHECK(many(probes, FEW, WORLD_DUE_NS) == FEW);
}

static void schedule_others(void)
{
	MODEL_CHECK(many(others, FEW, WORLD_DUE_NS) == FEW);
}

/* Schedules one item more than the ring has room for. */
static void schedule_beyond(void)
{
	MODEL_CHECK(many(probes, MANY, WORLD_DUE_NS) == MANY);
}

static void turn_twice(void)
{
	world_turn();
	world_turn();
}

static void open_running(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
}

static void all_ran(int count)
{
	for (int i = 0; i < count; i++)
		MODEL_CHECK(probe_end(&probes[i]) == TW_END_EXPIRED);
}

static void few_ran(void)
{
	world_turn();
	world_close();
	all_ran(FEW);
}

static void beyond_ran(void)
{
	world_turn();
	world_turn();
	world_close();
	all_ran(MANY);
}

MODEL_HARNESS(batch_turn, .proves = "each item of a batch that is added during turns runs once",
	      .setup = open_running, .thread = {schedule_few, turn_twice}, .finish = few_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(batch_full, .proves = "each item of a batch for which the ring has no room runs once",
	      .setup = open_running, .thread = {schedule_beyond, turn_twice}, .finish = beyond_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 1000);

/* In the next harness, stale entries of the ring already name the nodes that the batch takes. */

static void schedule_and_cancel(void)
{
	schedule_others();
	for (int i = 0; i < FEW; i++)
		MODEL_CHECK(tw_cancel(others[i].handle) == TW_CANCEL_DONE);
}

static void open_stale(void)
{
	open_running();
	model_as(0, schedule_and_cancel);
}

MODEL_HARNESS(batch_stale,
	      .proves = "each item of a batch whose nodes stale entries name runs once",
	      .setup = open_stale, .thread = {schedule_few, turn_twice}, .finish = few_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);

/*
 * In the next harness, two threads make a batch each in the shared lane. This lane has no ring, so
 * each batch pushes a chain.
 */

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
	twi_thread()->presence = NULL;
}

static void open_shared(void)
{
	open_running();
	model_as(0, share_lane);
	model_as(1, share_lane);
}

static void both_ran(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	world_turn();
	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.scheduled == 2 * FEW && stats.expired == 2 * FEW);
	world_close();
	all_ran(FEW);
	for (int i = 0; i < FEW; i++)
		MODEL_CHECK(probe_end(&others[i]) == TW_END_EXPIRED);
}

MODEL_HARNESS(batch_shared,
	      .proves = "two batches in the shared lane are chains, one after the other",
	      .setup = open_shared, .thread = {schedule_few, schedule_others, turn_twice},
	      .finish = both_ran, .preemptions = 1, .weak = 1, .random_runs = 1000);

/*
 * In the next harnesses, the worker sleeps, and a batch must wake it for the earliest of its
 * deadlines.
 */

static void open_sleep(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

static void schedule_one_due(void)
{
	struct tw_item items[FEW] = {{WORLD_DUE_NS, &probe_kind, &probes[0]},
				     {TW_NEVER, &probe_kind, &probes[1]}};

	MODEL_CHECK(tw_schedule_many_at(world.engine, items, FEW, NULL, NULL) == FEW);
}

/* Checks that the timeout ran. No other thread wakes the worker after the batch. */
static void one_due_ran(void)
{
	model_wait_idle();
	MODEL_CHECK(tw_engine_pending(world.engine) == 1);
	world_close();
	MODEL_CHECK(probe_end(&probes[0]) == TW_END_EXPIRED);
	MODEL_CHECK(probe_end(&probes[1]) == TW_END_UNEXPIRED);
}

static void all_due_ran(void)
{
	world_await_pending(0);
	world_close();
	all_ran(FEW);
}

static void open_sleep_shared(void)
{
	open_sleep();
	model_as(0, share_lane);
}

MODEL_HARNESS(batch_sleep, .proves = "a batch with a due item wakes the sleeping worker",
	      .setup = open_sleep, .thread = {schedule_one_due}, .worker = world_work,
	      .finish = one_due_ran, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(batch_sleep_chain,
	      .proves = "a batch that is pushed as a chain wakes the sleeping worker",
	      .setup = open_sleep_shared, .thread = {schedule_few}, .worker = world_work,
	      .finish = all_due_ran, .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harnesses, batches race against stop. */

static void open_stop(void)
{
	struct tw_options options = world_options();

	/*
	 * Uses CLOCK_MONOTONIC, because destroy waits for a grace period if the clock is virtual.
	 * That wait could hide that another grace period is missing.
	 */
	options.clock = NULL;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
	world_thread_bare(2);
	world_life(TW_ENGINE_STARTING);
}

static void schedule_beside_stop(void)
{
	scheduled = many(probes, FEW, TW_NEVER);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

static void stop_and_destroy(void)
{
	stop();
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/*
 * Checks that stop accepted all items of the batch or none, because the batch is one critical
 * section.
 */
static void kept_or_rejected(void)
{
	MODEL_CHECK(scheduled == 0 || scheduled == FEW);
	for (int i = 0; i < FEW; i++) {
		const unsigned *ended = probes[i].ended;

		if (scheduled == 0)
			MODEL_CHECK(ended[0] + ended[1] + ended[2] == 0);
		else
			MODEL_CHECK(probe_end(&probes[i]) == TW_END_UNEXPIRED);
	}
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

MODEL_HARNESS(batch_stop, .proves = "stop hands back all items of an accepted batch",
	      .setup = open_stop, .thread = {schedule_beside_stop, stop}, .worker = world_work,
	      .finish = kept_or_rejected, .preemptions = 1, .weak = 1, .random_runs = 500);

/* The next harnesses cancel timeouts in batches. */

static void handles_take(void)
{
	for (int i = 0; i < FEW; i++)
		handles[i] = probes[i].handle;
}

static void open_rings_at(int64_t deadline_ns)
{
	for (int i = 0; i < FEW; i++)
		world_schedule(&probes[i], &probe_kind, deadline_ns);
	handles_take();
}

/* Opens with both timeouts in the ring of the main thread. */
static void open_in_ring(void)
{
	open_running();
	open_rings_at(WORLD_DUE_NS);
}

/* Opens with both timeouts in the wheel, and due. */
static void open_in_wheel(void)
{
	open_running();
	open_rings_at(LATER_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, LATER_NS + WORLD_TICK_NS) == 0);
}

static void cancel_few(void)
{
	int *mine = outcomes[model_self() - 1];
	int cancelled = tw_cancel_many(handles, FEW, mine);

	for (int i = 0; i < FEW; i++)
		cancelled -= mine[i] == TW_CANCEL_DONE;
	MODEL_CHECK(cancelled == 0);
}

/* Checks that no node is in two queues: the next timeouts must all get different nodes. */
static void nodes_distinct(void)
{
	struct tw_handle made[3 * FEW];

	for (int i = 0; i < 3 * FEW; i++) {
		MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &bare_kind, &others[0],
					   &made[i]) == 0);
		for (int j = 0; j < i; j++)
			MODEL_CHECK(made[i].node != made[j].node);
	}
}

static void cancelled_or_ran(void)
{
	world_turn();
	world_turn();
	nodes_distinct();
	world_close();
	for (int i = 0; i < FEW; i++)
		MODEL_CHECK((probe_end(&probes[i]) == TW_END_CANCELLED) ==
			    (outcomes[0][i] == TW_CANCEL_DONE));
}

/*
 * Checks that each timeout was cancelled by one of the two calls, and that only this call reports
 * it.
 */
static void cancelled_once(void)
{
	world_turn();
	nodes_distinct();
	world_close();
	for (int i = 0; i < FEW; i++) {
		MODEL_CHECK(probe_end(&probes[i]) == TW_END_CANCELLED);
		MODEL_CHECK((outcomes[0][i] == TW_CANCEL_DONE) +
				    (outcomes[1][i] == TW_CANCEL_DONE) ==
			    1);
	}
}

static void turn(void)
{
	world_turn();
}

MODEL_HARNESS(batch_cancel_ring,
	      .proves = "a batch of cancels during the transfer ends each timeout once",
	      .setup = open_in_ring, .thread = {cancel_few, turn}, .finish = cancelled_or_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(batch_cancel_wheel,
	      .proves = "a batch of cancels during the expiry ends each timeout once",
	      .setup = open_in_wheel, .thread = {cancel_few, turn}, .finish = cancelled_or_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(batch_cancel_both,
	      .proves = "if two batches cancel the same timeouts, each ends once",
	      .setup = open_in_wheel, .thread = {cancel_few, cancel_few}, .finish = cancelled_once,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);

/*
 * In the next harness, two threads of the shared lane cancel timeouts in a ring. Both cancels are
 * counted in the same counters.
 */

static void open_shared_cancels(void)
{
	open_in_ring();
	model_as(0, share_lane);
	model_as(1, share_lane);
}

static void cancel_each(unsigned number)
{
	MODEL_CHECK(tw_cancel_many(&handles[number], 1, NULL) == 1);
}

static void cancel_first(void)
{
	cancel_each(0);
}

static void cancel_second(void)
{
	cancel_each(1);
}

static void both_counted(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.cancelled == FEW && stats.pending == 0);
	world_close();
}

MODEL_HARNESS(batch_cancel_shared,
	      .proves = "cancels of two threads of the shared lane are all counted",
	      .setup = open_shared_cancels, .thread = {cancel_first, cancel_second},
	      .finish = both_counted, .preemptions = 2, .weak = 1, .random_runs = 500);

/* Opens with one timeout in the wheel and the other in the ring. */
static void open_cancel_stop(void)
{
	open_stop();
	world_schedule(&probes[0], &probe_kind, TW_NEVER);
	world_turn();
	world_schedule(&probes[1], &probe_kind, TW_NEVER);
	handles_take();
}

static void ends_told(void)
{
	for (int i = 0; i < FEW; i++)
		MODEL_CHECK((probe_end(&probes[i]) == TW_END_CANCELLED) ==
			    (outcomes[0][i] == TW_CANCEL_DONE));
}

MODEL_HARNESS(batch_cancel_stop,
	      .proves = "a batch of cancels during stop and destroy touches no freed memory",
	      .setup = open_cancel_stop, .thread = {cancel_few, stop_and_destroy},
	      .worker = world_work, .finish = ends_told, .preemptions = 1, .weak = 1,
	      .random_runs = 1000);
