/* SPDX-License-Identifier: MIT */
/*
 * Timeouts with a date (expiry/wall.c): the worker computes their deadlines anew, while another
 * thread cancels or reschedules them, frees their kind, or uses their blocks again (E4). A step of
 * the wall clock that the worker has counted must also be in the time that it reads (E8).
 *
 * Seen to fail with these defects:
 * - filed_ns() reads the slack from the kind of a timeout that may have been cancelled;
 * - step_take() loads the count of steps relaxed;
 * - entry_refile() loads the state word relaxed;
 * - deadline_set() reads and changes the two words in two steps.
 */
#include "expiry/wall.h"
#include "turn/turn.h"
#include "worker/role.h"
#include "world.h"

#define DATE_NS (100 * WORLD_NOW_NS)
/* A date before that one. If the wall clock is set to it, the deadline becomes earlier. */
#define NEARER_NS (50 * WORLD_NOW_NS)
#define LATER_NS (200 * WORLD_NOW_NS)

static struct probe one, two;
/* A kind that its owner frees when its only timeout has ended. This is ordinary memory. */
static struct tw_kind own_kind;

static void open_pushed(const struct tw_kind *kind)
{
	struct tw_options options = world_options();

	options.check = TW_CHECK_FULL;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	MODEL_CHECK(tw_schedule_wall(world.engine, DATE_NS, kind, &one, &one.handle) == 0);
}

static void wall_set(int64_t wall_ns)
{
	MODEL_CHECK(tw_clock_set_wall(world.clock, wall_ns) == 0);
}

/* Opens with the timeout in the list of dates. */
static void open_listed(void)
{
	open_pushed(&probe_kind);
	world_turn();
}

/* Opens with work for entry_refile: the wall clock was stepped forward, but not to the date. */
static void open_nearer(void)
{
	open_listed();
	wall_set(NEARER_NS);
}

/* Opens with work for node_early: the timeout is due, but the wall clock was set back. */
static void open_early(void)
{
	open_listed();
	MODEL_CHECK(tw_clock_set(world.clock, DATE_NS + 3 * WORLD_TICK_NS) == 0);
	wall_set(WORLD_NOW_NS);
}

static void turn(void)
{
	world_turn();
}

static void cancel(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void later(void)
{
	MODEL_CHECK(tw_reschedule_at(one.handle, LATER_NS) == TW_RESCHEDULE_DONE);
}

static void at_once(void)
{
	MODEL_CHECK(tw_reschedule_at(one.handle, WORLD_DUE_NS) == TW_RESCHEDULE_DONE);
}

static void close_whole(void)
{
	/* RELAXED: no other thread is left. */
	MODEL_CHECK(twi_load_relaxed(&world.worker->check_failure_count) == 0);
	world_close();
}

static void cancelled(void)
{
	world_turn();
	wall_set(DATE_NS);
	world_turn();
	close_whole();
	MODEL_CHECK(probe_end(&one) == TW_END_CANCELLED);
}

/* The timeout must follow its new deadline, whatever the wall clock does. */
static void ran_later(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	wall_set(2 * LATER_NS);
	world_turn();
	MODEL_CHECK(one.ran == 0);
	MODEL_CHECK(tw_timeout_get(one.handle, &seen) == 0 && seen.deadline_ns == LATER_NS);
	MODEL_CHECK(tw_clock_set(world.clock, LATER_NS + 3 * WORLD_TICK_NS) == 0);
	world_turn();
	MODEL_CHECK(one.ran == 1);
	close_whole();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void ran_at_once(void)
{
	world_turn();
	MODEL_CHECK(one.ran == 1);
	world_turn();
	close_whole();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

MODEL_HARNESS(date_nearer_cancel, .proves = "cancel, and a step forward: one end",
	      .setup = open_nearer, .thread = {cancel, turn}, .finish = cancelled, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_nearer_later, .proves = "a later deadline set beside a step forward holds",
	      .setup = open_nearer, .thread = {later, turn}, .finish = ran_later, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_nearer_at_once, .proves = "an earlier time set beside a step forward holds",
	      .setup = open_nearer, .thread = {at_once, turn}, .finish = ran_at_once,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_early_cancel, .proves = "cancel, and a date that is not yet reached: one end",
	      .setup = open_early, .thread = {cancel, turn}, .finish = cancelled, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_early_later, .proves = "a later deadline set beside a step back holds",
	      .setup = open_early, .thread = {later, turn}, .finish = ran_later, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_early_at_once, .proves = "an earlier time set beside a step back holds",
	      .setup = open_early, .thread = {at_once, turn}, .finish = ran_at_once,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * In the next harnesses, the owner of a kind frees it as soon as its only timeout is cancelled. The
 * worker may be about to file this timeout.
 */

static void open_own_pushed(void)
{
	own_kind = bare_kind;
	open_pushed(&own_kind);
}

static void open_own_nearer(void)
{
	open_own_pushed();
	world_turn();
	wall_set(NEARER_NS);
}

static void cancel_and_free(void)
{
	cancel();
	own_kind.slack_ns = 1;
}

static void not_ran(void)
{
	world_turn();
	MODEL_CHECK(one.ran == 0);
	close_whole();
}

MODEL_HARNESS(date_kind, .proves = "after a cancel the worker does not use the timeout's kind",
	      .setup = open_own_pushed, .thread = {cancel_and_free, turn}, .finish = not_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(date_kind_nearer, .proves = "the same while a step makes deadlines earlier",
	      .setup = open_own_nearer, .thread = {cancel_and_free, turn}, .finish = not_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harness, the worker counts a step while another thread makes it. */

static void reach(void)
{
	wall_set(DATE_NS);
}

MODEL_HARNESS(date_step, .proves = "a turn that counts a step of the wall clock reads the new time",
	      .setup = open_listed, .thread = {reach, turn}, .finish = ran_at_once,
	      .any_order = true, .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * In the next harness, the list of `world` has an entry of an ended timeout, and by chance a later
 * timeout of another engine matches it: the node was used 2^32 times in between. The worker of
 * `world` must leave this timeout alone.
 */

static struct tw_engine *other;

static void other_open(void)
{
	struct tw_options options;
	struct tw_clock *clock;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.wheel = TW_WHEEL_HASHED;
	options.slots = 1;
	options.tick_ns = WORLD_TICK_NS;
	MODEL_CHECK(tw_clock_create_virtual(WORLD_NOW_NS, &clock) == 0);
	options.clock = clock;
	MODEL_CHECK(tw_engine_create(&options, &other) == 0);
	MODEL_CHECK(twi_engine_wall(other) == 0);
	twi_store_relaxed(&other->worker.state, TW_ENGINE_RUNNING);
}

/*
 * Lets the next timeout with a date take the free node as its node, in a generation that matches
 * the entry of `one`. The other block that was freed becomes the chain's.
 */
static void node_age(void)
{
	struct twi_stock *stock = &twi_thread()->stock;
	struct twi_node *node = twi_pool_take(stock);
	void *block = twi_pool_take(stock);
	uint64_t generation = one.handle.generation + (UINT64_C(1) << 32) * TWI_WORD_GENERATION;

	MODEL_CHECK(node == one.handle.node);
	twi_pool_give(stock, node);
	twi_pool_give(stock, block);
	twi_store_relaxed(&node->word,
			  twi_word_to(generation - TWI_WORD_GENERATION, TWI_WORD_CANCELLED));
}

static void open_aged(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_thread_bare(0);
	world_life(TW_ENGINE_RUNNING);
	other_open();
	twi_stock_init(&twi_thread()->stock, true);
	MODEL_CHECK(tw_schedule_wall(world.engine, DATE_NS, &probe_kind, &one, &one.handle) == 0);
	world_turn();
	cancel();
	world_turn();
	node_age();
	wall_set(2 * DATE_NS);
}

static void other_turn(void)
{
	struct twi_worker *worker = &other->worker;

	twi_worker_enter(worker);
	(void)twi_worker_turn(worker);
	worker->self->worker = NULL;
	twi_worker_disown(worker);
}

static void schedule_other(void)
{
	MODEL_CHECK(tw_schedule_wall(other, DATE_NS, &bare_kind, &two, &two.handle) == 0);
	MODEL_CHECK(two.handle.node == one.handle.node);
	other_turn();
}

static void other_waits(void)
{
	MODEL_CHECK(twi_wall_of(&world.engine->worker)->listed_count == 1);
	MODEL_CHECK(two.ran == 0);
	MODEL_CHECK(twi_node_deadline_ns(two.handle.node) / WORLD_TICK_NS ==
		    DATE_NS / WORLD_TICK_NS);
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
	other_turn();
	world_close();
}

MODEL_HARNESS(date_aged, .proves = "an outdated entry files no timeout of another engine",
	      .setup = open_aged, .thread = {schedule_other, turn}, .finish = other_waits,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
