/* SPDX-License-Identifier: MIT */
/*
 * Stale entries of rings (ingress/collect.c). If a thread cancels a timeout before the timeout
 * reaches the wheel, the thread gets the node at once. So when the worker finds the old entry, the
 * node may serve another timeout: of this engine or of another one, in the ring or in the link
 * queue, or one that was rejected (E21). Each timeout must end once, at its own deadline, and each
 * node must be freed once.
 *
 * Seen to fail with these defects:
 * - twi_node_offer() stores the state word relaxed;
 * - twi_node_begin() makes the node pending in the step that gives it its generation;
 * - node_transfer() loads the state word relaxed;
 * - the swap of node_transfer() is relaxed, is a load and a store, or is assumed to succeed;
 * - node_transfer() does not check the node's engine, or does not check that the state is INIT;
 * - twi_lane_collect() gives a ring entry back to the producer before it reads the entry.
 */
#include "world.h"

#include "turn/turn.h"
#include "worker/role.h"

#include <errno.h>

static struct probe one, two, three;
static struct tw_engine *other;

/* Returns options with which the worker checks its whole wheel after each turn. */
static struct tw_options options_checked(void)
{
	struct tw_options options = world_options();

	options.check = TW_CHECK_FULL;
	return options;
}

static void open_with(const struct tw_options *options)
{
	world_open(options);
	world_threads(3, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
}

static void open_checked(void)
{
	struct tw_options options = options_checked();

	open_with(&options);
}

static void schedule_one(void)
{
	world_schedule(&one, &probe_kind, TW_NEVER);
}

static void cancel_one(void)
{
	one.outcome = tw_cancel(one.handle);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE);
}

static void schedule_two(void)
{
	world_schedule(&two, &probe_kind, WORLD_DUE_NS);
}

static void turn(void)
{
	world_turn();
}

static void turn_twice(void)
{
	world_turn();
	world_turn();
}

/* Opens with the timeout in the ring of the first thread. */
static void open_scheduled(void)
{
	open_checked();
	model_as(0, schedule_one);
}

/*
 * Cancels `one` and schedules `two`. The worker may find the node of `two` through the ring's first
 * entry, which was made for `one`. If the worker has already taken that entry, `two` may get
 * another node.
 */
static void cancel_and_reuse(void)
{
	cancel_one();
	schedule_two();
}

static void check_clean(void)
{
	/* RELAXED: no other thread is left. */
	MODEL_CHECK(twi_load_relaxed(&world.worker->check_failure_count) == 0);
}

/* Checks that no node is in two queues: the next timeouts must all get different nodes. */
static void nodes_distinct(void)
{
	struct tw_handle handle[3];

	for (int i = 0; i < 3; i++)
		MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &bare_kind, &three,
					   &handle[i]) == 0);
	MODEL_CHECK(handle[0].node != handle[1].node && handle[1].node != handle[2].node &&
		    handle[2].node != handle[0].node);
}

static void two_ran(void)
{
	world_turn();
	MODEL_CHECK(two.ran == 1);
	nodes_distinct();
	check_clean();
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_CANCELLED);
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

MODEL_HARNESS(collect_reborn,
	      .proves = "through a stale entry, the worker runs the node's next timeout once",
	      .setup = open_scheduled, .thread = {cancel_and_reuse, turn_twice}, .finish = two_ran,
	      .preemptions = 2, .weak = 0, .random_runs = 1000);

/*
 * Schedules `three` on the thread whose ring has the entry for `one`. Meanwhile another thread
 * cancels `one`, and puts the node of `one` into a lane of its own.
 */
static void schedule_three(void)
{
	world_schedule(&three, &bare_kind, TW_NEVER);
}

MODEL_HARNESS(collect_taken,
	      .proves = "a stale entry may name a node that another thread cancelled and uses",
	      .setup = open_scheduled, .thread = {schedule_three, cancel_and_reuse, turn},
	      .finish = two_ran, .preemptions = 1, .weak = 1, .random_runs = 1000);

/* Opens with a stale entry in the first thread's ring: its timeout was cancelled. */
static void open_old_entry(void)
{
	open_scheduled();
	model_as(0, cancel_one);
}

static void schedule_two_again(void)
{
	schedule_two();
	schedule_three();
}

static void turn_and_reuse(void)
{
	static struct probe four;

	world_turn();
	world_schedule(&four, &bare_kind, TW_NEVER);
	world_turn();
}

MODEL_HARNESS(collect_old,
	      .proves = "a node that a stale entry brings is not brought again by its own entry",
	      .setup = open_old_entry, .thread = {schedule_two_again, turn_and_reuse},
	      .finish = two_ran, .preemptions = 1, .weak = 1, .random_runs = 1000);

/* Opens a second engine, whose timeouts this worker must not take. */
static void open_other(void)
{
	struct tw_options options = options_checked();

	options.clock = NULL;
	MODEL_CHECK(tw_engine_create(&options, &other) == 0);
	twi_store_relaxed(&other->worker.state, (uint32_t)TW_ENGINE_RUNNING);
	model_pass_ns(3 * WORLD_TICK_NS);
	open_scheduled();
}

static void schedule_in_other(void)
{
	MODEL_CHECK(tw_schedule_at(other, WORLD_DUE_NS, &probe_kind, &two, &two.handle) == 0);
}

static void cancel_and_reuse_in_other(void)
{
	cancel_one();
	schedule_in_other();
}

static void ran_in_other(void)
{
	struct twi_node *node = two.handle.node;

	world_turn();
	MODEL_CHECK(twi_word_state(twi_load_relaxed(&node->word)) == TWI_WORD_INIT);
	twi_worker_enter(&other->worker);
	(void)twi_worker_turn(&other->worker);
	other->worker.self->worker = NULL;
	MODEL_CHECK(twi_load_relaxed(&other->worker.transferred_count) == 1);
	two_ran();
}

MODEL_HARNESS(collect_other,
	      .proves = "a stale entry moves no timeout of another engine into this wheel",
	      .setup = open_other, .thread = {cancel_and_reuse_in_other, turn_twice},
	      .finish = ran_in_other, .preemptions = 1, .weak = 2, .random_runs = 1000);

/*
 * Uses the node in `other`, and then in this engine again. The worker may have seen the node while
 * it was in `other`.
 */
static void there_and_back(void)
{
	cancel_one();
	MODEL_CHECK(tw_schedule_at(other, TW_NEVER, &probe_kind, &one, &one.handle) == 0);
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
	schedule_two();
}

static void back_and_ran(void)
{
	world_turn();
	MODEL_CHECK(two.ran == 1 && one.ran == 0 && one.ended[TW_END_CANCELLED] == 2);
	nodes_distinct();
	check_clean();
	world_close();
}

MODEL_HARNESS(collect_back, .proves = "a node may go to another engine and come back",
	      .setup = open_other, .thread = {there_and_back, turn_twice}, .finish = back_and_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 1000);

/*
 * Opens an engine that has as many timeouts as its limit allows. The first thread has a stale entry
 * in its ring, and the entry's node in its stock.
 */
static void open_no_place(void)
{
	struct tw_options options = options_checked();

	options.pending_limit = 1;
	open_with(&options);
	model_as(0, schedule_one);
	model_as(0, cancel_one);
	world_schedule(&three, &bare_kind, TW_NEVER);
}

static void schedule_rejected(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == -EAGAIN);
}

static void none_transferred(void)
{
	world_turn();
	MODEL_CHECK(twi_load_relaxed(&world.worker->transferred_count) == 1);
	MODEL_CHECK(two.ran == 0);
	check_clean();
	world_close();
}

MODEL_HARNESS(collect_rejected, .proves = "a stale entry brings no timeout that was rejected",
	      .setup = open_no_place, .thread = {schedule_rejected, turn},
	      .finish = none_transferred, .preemptions = 1, .weak = 1, .random_runs = 500);

/* Fills the ring of the first thread with old entries of one node. */
static void fill(void)
{
	for (int i = 0; i < TWI_RING_ENTRIES; i++) {
		schedule_one();
		MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
	}
	one.ended[TW_END_CANCELLED] = 1;
}

static void open_full(void)
{
	open_checked();
	model_as(0, fill);
}

MODEL_HARNESS(collect_linked, .proves = "a stale entry may name a node that is in the link queue",
	      .setup = open_full, .thread = {schedule_two, turn_twice}, .finish = two_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

static void schedule_and_cancel_two(void)
{
	schedule_two();
	two.outcome = tw_cancel(two.handle);
}

static void two_ended(void)
{
	world_turn();
	MODEL_CHECK((two.ran == 1) == (two.outcome != TW_CANCEL_DONE));
	nodes_distinct();
	check_clean();
	world_close();
	(void)probe_end(&two);
}

MODEL_HARNESS(collect_linked_cancel,
	      .proves = "a stale entry's node is freed once if it is cancelled in the link queue",
	      .setup = open_full, .thread = {schedule_and_cancel_two, turn_twice},
	      .finish = two_ended, .preemptions = 1, .weak = 1, .random_runs = 500);

/* Opens with `three` in the wheel, and with a full ring. */
static void open_full_wheeled(void)
{
	open_checked();
	world_schedule(&three, &probe_kind, TW_NEVER);
	world_turn();
	model_as(0, fill);
}

static void cancel_three(void)
{
	MODEL_CHECK(tw_cancel(three.handle) == TW_CANCEL_DONE);
}

static void three_out(void)
{
	world_turn();
	/* Only `three` counts as reclaimed. The stale entries of `one` do not count. */
	MODEL_CHECK(world.worker->wheel->count == 0);
	MODEL_CHECK(twi_load_relaxed(&world.worker->reclaimed_count) == 1);
	MODEL_CHECK(probe_end(&three) == TW_END_CANCELLED);
	nodes_distinct();
	check_clean();
	world_close();
}

MODEL_HARNESS(collect_full_cancel,
	      .proves = "a timeout cancelled in the wheel is reclaimed although the ring is full",
	      .setup = open_full_wheeled, .thread = {cancel_three, turn}, .finish = three_out,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * Opens with a timeout in the wheel. When it is cancelled, its node goes to the worker through the
 * ring.
 */
static void open_wheeled(void)
{
	open_checked();
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_turn();
}

static void turn_and_schedule_two(void)
{
	world_turn();
	schedule_two();
	world_turn();
}

MODEL_HARNESS(collect_cancelled,
	      .proves = "a timeout cancelled in the wheel goes through the ring and is freed once",
	      .setup = open_wheeled, .thread = {cancel_and_reuse, turn_twice}, .finish = two_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(collect_cancelled_reuse,
	      .proves = "a timeout cancelled in the wheel is freed once if the worker reuses it",
	      .setup = open_wheeled, .thread = {cancel_one, turn_and_schedule_two},
	      .finish = two_ran, .preemptions = 1, .weak = 1, .random_runs = 500);
