/* SPDX-License-Identifier: MIT */
/*
 * Ring entries that are used again (queue/ring.h, E163). The worker has promised not to read the
 * last entry of a lane. The lane's thread schedules with the node that this entry names, so it makes
 * no push, while the worker begins to read. The timeout must get into the wheel, or fire.
 *
 * Seen to fail with these defects:
 * - the consumer makes no barrier after it has taken its promise back, or does not take it back;
 * - twi_ring_will_read() has no compiler fence, or is called before the state becomes INIT;
 * - twi_ring_will_read() does not compare the entry with the node, or the promise with the tail;
 * - the promise begins with the entries that the consumer has just read.
 */
#include "world.h"

#include "worker/lane.h"

#include <errno.h>

/* So many stale entries at once, twice in a row, make the worker promise; see collect.c. */
enum { MANY = TWI_RING_ENTRIES - 1 };

static struct probe one, two;

static const struct twi_lane *own_lane(void)
{
	return &world.worker->near.lane[twi_thread()->lane];
}

static void pair(void)
{
	struct tw_handle handle;

	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &one, &handle) == 0);
	MODEL_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
}

static void pairs(void)
{
	for (int i = 0; i < MANY; i++)
		pair();
}

/*
 * The worker has promised not to read on. Pushes two more entries, which name the node of the next
 * timeout. Then checks that a schedule with this node makes no push.
 */
static void last_pair(void)
{
	/* RELAXED: no other thread runs. */
	uint64_t tail = twi_load_relaxed(&own_lane()->ring.tail);

	MODEL_CHECK(twi_load_relaxed(&own_lane()->ring_out.unread) == tail + 1);
	/* The second pair does not take the quick path, because it must look for room first. */
	pair();
	pair();
	MODEL_CHECK(twi_load_relaxed(&own_lane()->ring.tail) == tail + 2);
	pair();
	MODEL_CHECK(twi_load_relaxed(&own_lane()->ring.tail) == tail + 2);
}

static void open_promise(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	/* The worker promises when two large batches in a row had repeated entries. */
	for (int i = 0; i < 2; i++) {
		model_as(0, pairs);
		world_turn();
	}
	model_as(0, last_pair);
}

static void open_promise_asleep(void)
{
	open_promise();
	world_life(TW_ENGINE_STARTING);
}

static void schedule_two(void)
{
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &probe_kind, &two, &two.handle) == 0);
}

static void schedule_twice(void)
{
	pair();
	schedule_two();
}

static void schedule_due(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
}

static void two_turns(void)
{
	world_turn();
	world_turn();
}

/* One more turn must find the timeout, wherever its entry is. */
static void two_in_wheel(void)
{
	const struct twi_node *node = twi_node_of_handle(two.handle);

	world_turn();
	/* RELAXED: no other thread is left. */
	MODEL_CHECK(twi_word_state(twi_load_relaxed(&node->word)) == TWI_WORD_WHEELED);
	world_close();
	MODEL_CHECK(probe_end(&two) == TW_END_UNEXPIRED);
}

static void two_ran(void)
{
	world_await_pending(0);
	world_close();
	MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED);
}

MODEL_HARNESS(promise_turn, .proves = "a timeout without a push gets into the wheel",
	      .setup = open_promise, .thread = {schedule_two, world_turn}, .finish = two_in_wheel,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(promise_twice, .proves = "so does the second of two timeouts", .setup = open_promise,
	      .thread = {schedule_twice, two_turns}, .finish = two_in_wheel, .preemptions = 2,
	      .weak = 1, .random_runs = 1000);
MODEL_HARNESS(promise_wakes, .proves = "a timeout without a push wakes the sleeping worker",
	      .setup = open_promise_asleep, .thread = {schedule_due}, .worker = world_work,
	      .finish = two_ran, .preemptions = 2, .weak = 1, .random_runs = 500);
