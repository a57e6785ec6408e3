/* SPDX-License-Identifier: MIT */
/*
 * The pin that a thread sets on an engine while it reschedules a timeout to a later time (E100; see
 * thread/pin.h). After its swap the thread counts the reschedule in the engine. Meanwhile the
 * engine may be stopped, freed and created again at the same address. However the timeout ends, the
 * count must be in the engine's counters when stop returns, and no later engine may get it.
 *
 * Seen to fail with these defects:
 * - twi_worker_finish() does not call twi_pins_wait(), or calls it before the sweep or before the
 *   second grace period;
 * - quick_postpone() sets the pin after the swap, or never;
 * - quick_postpone() clears the pin relaxed, not at all, or before it counts;
 * - pin_wait() looks only once, or loads the pin relaxed;
 * - twi_pin_set() stores relaxed while the pin still holds an earlier engine;
 * - pair_swap() is without release;
 * - a cancel, by the worker or by another thread, or a hand-back is without acquire;
 * - quick_postpone() is called twice.
 */
#include "world.h"

#include "turn/finish.h"

#include <errno.h>
#include <string.h>

#define LATER_NS (WORLD_NOW_NS + 10 * WORLD_TICK_NS)

static struct probe one, two;
static struct tw_engine *bystander;
static int told;
static bool moved; /* whether the engine's counters showed the reschedule after its stop */
static bool back_for_ever;

/* One block of memory that each engine gets in turn. Other allocations get pages. */
static struct {
	_Alignas(TWI_CACHE_LINE) char bytes[sizeof(struct tw_engine)];
} block;
static bool block_given;

static void *block_allocate(void *context, size_t bytes, size_t align)
{
	if (block_given || bytes != sizeof(struct tw_engine))
		return world_pages.allocate(context, bytes, align);
	block_given = true;
	return block.bytes;
}

/* Overwrites the memory, as its next user would. A count that is written later is a race. */
static void block_release(void *context, void *memory, size_t bytes, size_t align)
{
	if (memory != block.bytes) {
		world_pages.release(context, memory, bytes, align);
		return;
	}
	memset(memory, 0xA5, bytes);
	block_given = false;
}

static const struct tw_allocator one_block = {block_allocate, block_release, NULL};

static void open_block(int64_t deadline_ns)
{
	struct tw_options options = world_options();

	MODEL_CHECK(tw_memory_allocator_set(&one_block) == 0);
	world_open(&options);
	MODEL_CHECK((char *)world.engine == block.bytes);
	world_threads(4, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, deadline_ns);
	world_turn();
}

static void open_pending(void)
{
	open_block(LATER_NS);
	one.outcome = TW_CANCEL_CANCELLED;
}

/* Opens with a timeout that is due after the setup. */
static void open_due(void)
{
	open_block(WORLD_NOW_NS + WORLD_TICK_NS);
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 4 * WORLD_TICK_NS) == 0);
}

/* Opens a second engine, which is never stopped. */
static void open_two(void)
{
	open_pending();
	MODEL_CHECK(tw_engine_create(NULL, &bystander) == 0);
	twi_store_relaxed(&bystander->worker.state, (uint32_t)TW_ENGINE_RUNNING);
	MODEL_CHECK(tw_schedule_at(bystander, LATER_NS, &bare_kind, &two, &two.handle) == 0);
}

static void later(void)
{
	told = tw_reschedule_at(one.handle, TW_NEVER);
}

static void still_due(void)
{
	told = tw_reschedule_at(one.handle, WORLD_NOW_NS + 2 * WORLD_TICK_NS);
}

static void later_twice(void)
{
	later();
	MODEL_CHECK(tw_reschedule_at(two.handle, TW_NEVER) == TW_RESCHEDULE_DONE);
}

static uint64_t counted(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	return stats.rescheduled;
}

/*
 * Destroys the engine and makes the next one, at the same address. The new engine's counters must
 * begin at zero and stay there.
 */
static void destroy_and_make(void)
{
	struct tw_options options = {.size = 0};

	moved = counted() == 1;
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.wheel = TW_WHEEL_HASHED;
	options.slots = 1;
	MODEL_CHECK(tw_engine_create(&options, &world.engine) == 0);
	MODEL_CHECK((char *)world.engine == block.bytes);
}

static void note_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			   void *arg, int64_t remaining_ns)
{
	back_for_ever = remaining_ns == TW_NEVER;
	probe_hand_back(context, handle, kind, arg, remaining_ns);
}

/* Makes the steps by which the worker finishes a stopped engine. */
static void finish_and_again(void)
{
	world.worker->on_unexpired = note_hand_back;
	twi_store_relaxed(&world.worker->state, (uint32_t)TW_ENGINE_STOPPING);
	MODEL_CHECK(twi_worker_finish(world.worker, TW_NEVER));
	destroy_and_make();
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
}

/*
 * Cancels like a callback: the worker takes the timeout out of its own wheel. Then it finishes the
 * engine.
 */
static void own_cancel_and_again(void)
{
	world_turn();
	cancel();
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE);
	finish_and_again();
}

static void told_and_counted(void)
{
	MODEL_CHECK(told == TW_RESCHEDULE_DONE || told == TW_RESCHEDULE_CANCELLED ||
		    told == TW_RESCHEDULE_RUNNING || told == TW_RESCHEDULE_EXPIRED ||
		    told == -ESTALE);
	MODEL_CHECK(moved == (told == TW_RESCHEDULE_DONE));
	if (one.unexpired == 1)
		MODEL_CHECK(back_for_ever == moved);
	MODEL_CHECK(counted() == 0);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
	(void)probe_end(&one);
}

/* Makes a turn. The timeout is due, both at its old deadline and at its new one. */
static void turn_and_again(void)
{
	world_turn();
	finish_and_again();
}

MODEL_HARNESS(pin_finish,
	      .proves = "a worker's count is in its engine, and visible when stop has ended",
	      .setup = open_pending, .thread = {later, finish_and_again},
	      .finish = told_and_counted, .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(pin_cancel, .proves = "a count before another thread's cancel is in its engine",
	      .setup = open_pending, .thread = {later, cancel, finish_and_again},
	      .finish = told_and_counted, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(pin_own_cancel, .proves = "a count before the worker's own cancel is in its engine",
	      .setup = open_pending, .thread = {later, own_cancel_and_again},
	      .finish = told_and_counted, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(pin_expire, .proves = "a count before the expiry is in its engine", .setup = open_due,
	      .thread = {still_due, turn_and_again}, .finish = told_and_counted, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(pin_again, .proves = "a thread's later pin does not hide its earlier count",
	      .setup = open_two, .thread = {later_twice, finish_and_again},
	      .finish = told_and_counted, .preemptions = 2, .weak = 1, .random_runs = 500);
