/* SPDX-License-Identifier: MIT */
/*
 * A thread uses a handle whose node has become another timeout. The handle must not cancel that
 * timeout, and must report nothing about it (E4).
 *
 * Seen to fail with these defects: any one field of the node is stored relaxed, or is loaded
 * relaxed; twi_node_begin() does not raise the generation.
 */
#include "world.h"

#include <errno.h>

static struct probe one, two;
static struct tw_timeout got;
static int got_result;
/* the second timeout's engine: every field of the two timeouts differs */
static struct tw_engine *other;

static void open_other(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	MODEL_CHECK(tw_engine_create(&options, &other) == 0);
	twi_store_relaxed(&other->worker.state, (uint32_t)TW_ENGINE_RUNNING);
}

/*
 * Opens both engines, with `one` in the first engine's wheel and due. The second thread makes the
 * worker's turns. When it has freed the block of `one`, its next timeout gets this block.
 */
static void open_due(void)
{
	open_other();
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 3 * WORLD_TICK_NS) == 0);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule(other, TW_NEVER, &bare_kind, &two, &two.handle) == 0);
}

static void expire_and_reuse(void)
{
	world_turn();
	schedule_two();
	if (one.ended[TW_END_EXPIRED] == 1)
		MODEL_CHECK(two.handle.node == one.handle.node);
}

static void cancel_and_reuse(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
	world_turn();
	schedule_two();
	MODEL_CHECK(two.handle.node == one.handle.node);
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
	if (one.outcome == TW_CANCEL_EXPIRED)
		MODEL_CHECK(one.ran == 1);
}

static void get(void)
{
	got.size = sizeof got;
	got_result = tw_timeout_get(one.handle, &got);
	if (got_result == -ESTALE)
		return;
	MODEL_CHECK(got_result == 0);
	MODEL_CHECK(got.engine == world.engine && got.kind == &probe_kind && got.arg == &one);
	MODEL_CHECK(got.deadline_ns == WORLD_NOW_NS + WORLD_TICK_NS);
	if (got.state == TW_STATE_EXPIRED && tw_timeout_state(one.handle) == TW_STATE_EXPIRED &&
	    tw_cancel(one.handle) == TW_CANCEL_EXPIRED)
		MODEL_CHECK(one.ran == 1);
}

static void state(void)
{
	int seen = tw_timeout_state(one.handle);

	MODEL_CHECK(seen == -ESTALE || seen == TW_STATE_INIT || seen == TW_STATE_CANCELLED ||
		    seen == TW_STATE_EXPIRED);
}

/* Checks that one of the threads has ended `one`, once, and that `two` is not affected. */
static void two_lives_on(void)
{
	MODEL_CHECK(tw_timeout_state(two.handle) == TW_STATE_INIT);
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
	world_close();
	(void)probe_end(&one);
	MODEL_CHECK(two.ran == 0);
}

MODEL_HARNESS(reuse_cancel, .proves = "a stale handle cancels no timeout during expiry and reuse",
	      .setup = open_due, .thread = {cancel, expire_and_reuse}, .finish = two_lives_on,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reuse_get,
	      .proves = "tw_timeout_get describes the timeout of the handle, not the next one",
	      .setup = open_due, .thread = {get, expire_and_reuse}, .finish = two_lives_on,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reuse_state,
	      .proves = "tw_timeout_state is right for a timeout whose node is used again",
	      .setup = open_due, .thread = {state, cancel_and_reuse}, .finish = two_lives_on,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
