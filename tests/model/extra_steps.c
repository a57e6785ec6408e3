/* SPDX-License-Identifier: MIT */
/*
 * Covers steps of the protocols that no other harness covers. Surviving mutants have shown that
 * these steps were missing.
 *
 * - Slabs: none is lost, none is made beyond the cap, and one that could not be made is not
 *   counted.
 * - Counts: two threads at once change the counts of pending timeouts, units, lanes and engines.
 * - Ends: the thread that an engine's start creates ends in a hand-back, before its first turn.
 *   Flush returns although the worker has died.
 * - Nodes: a node goes back to the pool only when no thread will change its state word any more.
 *   Cancel counts the timeouts that it cancels, and the worker dispatches none of them.
 *
 * Seen to fail with these defects:
 * - slab_install() installs a slab, or count_take() counts one, by a load and a store;
 * - alive_count() reports too many engines by a load and a store instead of a swap;
 * - the counts of slabs after a failure, of pending timeouts, units, lanes or engines are changed
 *   by a load and a store;
 * - the thread that loses the race to install a slab does not keep its slab as a spare one;
 * - the new worker does not step from STOPPING_STARTING to STOPPING;
 * - twi_worker_died() does not notify flushers;
 * - a node is given back to the pool before its timeout has ended;
 * - cancel counts before its swap;
 * - cancel pushes the node before it counts;
 * - tw_cancel_many ignores that its swap has failed.
 */
#include "ingress/push.h"
#include "memory/memory.h"
#include "memory/slab.h"
#include "world.h"

#include <errno.h>

static struct probe one, two;
static struct tw_due due;
static size_t due_count;

static struct twi_slab *slab_of(const void *block)
{
	return twi_slab_table[twi_block_index(block) / TWI_SLAB_BLOCKS];
}

static struct twi_slab *carve_one(void)
{
	char *first;

	return twi_slab_carve(&first) > 0 ? slab_of(first) : NULL;
}

static void slab_use_up(struct twi_slab *slab)
{
	MODEL_CHECK(slab != NULL);
	twi_store_relaxed(&slab->run_count, TWI_SLAB_RUNS);
}

/* Opens with one slab that is used up. The cap allows two more. */
static void open_used_up(void)
{
	slab_use_up(carve_one());
	twi_slab_cap_set(3 * (uint64_t)TWI_SLAB_BYTES);
}

static void carve(void)
{
	MODEL_CHECK(carve_one() != NULL);
}

static void none_lost(void)
{
	slab_use_up(carve_one());
	if (twi_slab_bytes() == 3 * (uint64_t)TWI_SLAB_BYTES)
		MODEL_CHECK(carve_one() != NULL);
}

static void open_one_more(void)
{
	MODEL_CHECK(carve_one() != NULL);
	twi_slab_cap_set(2 * (uint64_t)TWI_SLAB_BYTES);
}

static void reserve_two(void)
{
	int result = twi_slab_reserve(1);

	MODEL_CHECK(result == 0 || result == -ENOMEM);
}

static void cap_kept(void)
{
	MODEL_CHECK(twi_slab_bytes() == 2 * (uint64_t)TWI_SLAB_BYTES);
}

static bool memory_is_out;
static const struct tw_allocator *built_in;

static void *fail_or_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	return memory_is_out ? NULL : built_in->allocate(built_in->context, bytes, align);
}

static void release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	built_in->release(built_in->context, memory, bytes, align);
}

/* Does the same as open_used_up, but lets the allocator fail until none_counted. */
static void open_out(void)
{
	static const struct tw_allocator allocator = {fail_or_allocate, release, NULL};

	open_used_up();
	built_in = twi_allocator();
	MODEL_CHECK(tw_memory_allocator_set(&allocator) == 0);
	memory_is_out = true;
}

static void carve_fails(void)
{
	MODEL_CHECK(carve_one() == NULL);
}

/* Checks that the failed attempts are not counted: two more slabs can be made. */
static void none_counted(void)
{
	memory_is_out = false;
	slab_use_up(carve_one());
	slab_use_up(carve_one());
	MODEL_CHECK(carve_one() == NULL);
}

static void exit_once(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		      int64_t remaining_ns)
{
	probe_hand_back(context, handle, kind, arg, remaining_ns);
	if (one.unexpired + two.unexpired == 1)
		pthread_exit(NULL);
}

/* Opens an engine whose start failed, with two timeouts that wait. */
static void open_stalled(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
	world_life(TW_ENGINE_STALLED);
}

static void start(void)
{
	int error = tw_engine_start(world.engine);

	MODEL_CHECK(error == 0 || error == -ESHUTDOWN);
}

static void stop_exit(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, exit_once, NULL, TW_NEVER) == 0);
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_UNEXPIRED);
}

static void destroy(void)
{
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void open_virtual(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
}

/* Schedules a timeout whose callback ends the worker's thread. */
static void schedule_exit(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_exit_kind, &one, NULL) == 0);
}

static void flush(void)
{
	int result = tw_engine_flush(world.engine, TW_NEVER);

	MODEL_CHECK(result == 0 || result == -ESHUTDOWN);
}

static void stop_dead(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
	(void)probe_end(&one);
	destroy();
}

static unsigned told;

static void log_line(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)text;
	if (level == TW_LOG_WARNING)
		__atomic_fetch_add(&told, 1, __ATOMIC_RELAXED);
}

static struct tw_engine *create(void)
{
	struct tw_options options;
	struct tw_engine *engine;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	MODEL_CHECK(tw_engine_create(&options, &engine) == 0);
	return engine;
}

static void create_many(unsigned count)
{
	static const struct tw_log hook = {log_line, NULL};

	MODEL_CHECK(tw_log_set(&hook) == 0);
	for (unsigned i = 0; i < count; i++)
		(void)create();
	MODEL_CHECK(told == 0);
}

static struct tw_engine *gone[2];

static void create_some_to_destroy(void)
{
	create_many(TWI_ENGINES_USUAL - 2);
	for (unsigned i = 0; i < 2; i++)
		gone[i] = create();
}

static void destroy_mine(void)
{
	MODEL_CHECK(tw_engine_destroy(gone[model_self() - 1]) == 0);
}

static void told_by_the_third(void)
{
	(void)create();
	(void)create();
	MODEL_CHECK(told == 0);
	(void)create();
	MODEL_CHECK(told == 1);
}

static void create_one(void)
{
	(void)create();
}

static void create_all_but_one(void)
{
	create_many(TWI_ENGINES_USUAL - 1);
}

static void create_usual(void)
{
	create_many(TWI_ENGINES_USUAL);
}

static void told_once(void)
{
	MODEL_CHECK(told == 1);
}

static void make_due(void)
{
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	world_time_goes_on();
}

/*
 * Opens an engine with a timeout in the wheel that is due. Neither thread keeps a block, so the
 * next schedule must take one from the depot.
 */
static void open_due(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_thread_bare(0);
	world_life(TW_ENGINE_RUNNING);
	make_due();
}

static size_t accept(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	due = batch[0];
	due_count = count;
	return count;
}

static void open_dispatch(void)
{
	struct tw_options options = world_options();

	options.dispatch = accept;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	make_due();
}

static void turn(void)
{
	world_turn();
}

static void schedule_two(void)
{
	world_schedule(&two, &probe_kind, TW_NEVER);
}

static void schedule_one(void)
{
	world_schedule(&one, &probe_kind, TW_NEVER);
}

static void open_empty(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
}

/* Makes each thread's next schedule complete a unit of 64 timeouts. */
static void unit_ends(void)
{
	struct twi_lane *lane = &world.worker->near.lane[twi_thread()->lane];

	twi_store_relaxed(&lane->scheduled_count, TWI_UNIT_TIMEOUTS - 1);
}

static void open_units(void)
{
	open_empty();
	model_as(0, unit_ends);
	model_as(1, unit_ends);
}

static void both_noted(void)
{
	MODEL_CHECK(twi_load_relaxed(&world.worker->units_pending) == 2);
	world_close();
}

static void look_at_counts(struct tw_handle self, void *arg)
{
	struct tw_stats stats = {.size = sizeof stats};

	(void)self;
	(void)arg;
	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.scheduled == 1);
}

static void schedule_look(void)
{
	static const struct tw_kind kind = TW_KIND(look_at_counts, NULL);

	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &kind, &one, NULL) == 0);
}

static void both_transferred(void)
{
	world_turn();
	MODEL_CHECK(twi_load_relaxed(&world.worker->transferred_count) == 2);
	world_close();
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
}

static void open_limited(void)
{
	struct tw_options options = world_options();

	options.pending_limit = 2;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
}

static void cancel_two(void)
{
	two.outcome = tw_cancel(two.handle);
}

static void places_given(void)
{
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE && two.outcome == TW_CANCEL_DONE);
	MODEL_CHECK(twi_load_relaxed(&world.worker->slots_taken) == 0);
	world_close();
}

static void two_pending(void)
{
	MODEL_CHECK(tw_timeout_state(two.handle) == TW_STATE_INIT);
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_CANCELLED);
}

static void accounted(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	world_turn();
	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.cancelled == (one.outcome == TW_CANCEL_DONE));
	MODEL_CHECK(stats.expired == (one.outcome != TW_CANCEL_DONE));
	world_close();
}

static void dispatched_or_cancelled(void)
{
	MODEL_CHECK(due_count == (one.outcome != TW_CANCEL_DONE));
	if (due_count > 0)
		MODEL_CHECK(tw_due_run(&due) == 0);
	accounted();
	(void)probe_end(&one);
}

MODEL_HARNESS(step_slab, .proves = "if two threads create slabs at once, both slabs are used",
	      .setup = open_used_up, .thread = {carve, carve}, .finish = none_lost,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_cap, .proves = "two threads at the cap create one slab", .setup = open_one_more,
	      .thread = {reserve_two, reserve_two}, .finish = cap_kept, .preemptions = 2, .weak = 0,
	      .random_runs = 200);
MODEL_HARNESS(step_out, .proves = "slabs that could not be created are not counted",
	      .setup = open_out, .thread = {carve_fails, carve_fails}, .finish = none_counted,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_limit, .proves = "two concurrent cancels give back two places of the limit",
	      .setup = open_limited, .thread = {cancel, cancel_two}, .finish = places_given,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_exit, .proves = "a worker that is stopped as it begins may end in a hand-back",
	      .setup = open_stalled, .thread = {start, stop_exit}, .finish = destroy,
	      .preemptions = 1, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_died, .proves = "flush returns if the worker's thread ends",
	      .setup = open_virtual, .thread = {schedule_exit, flush}, .finish = stop_dead,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_count, .proves = "two threads that create engines are both counted",
	      .setup = create_all_but_one, .thread = {create_one, create_one}, .finish = told_once,
	      .preemptions = 2, .weak = 0, .random_runs = 50);
MODEL_HARNESS(step_gone, .proves = "two threads that free engines are both counted",
	      .setup = create_some_to_destroy, .thread = {destroy_mine, destroy_mine},
	      .finish = told_by_the_third, .preemptions = 2, .weak = 0, .random_runs = 50);
MODEL_HARNESS(step_told, .proves = "too many engines are reported once", .setup = create_usual,
	      .thread = {create_one, create_one}, .finish = told_once, .preemptions = 2, .weak = 0,
	      .random_runs = 50);
MODEL_HARNESS(step_units, .proves = "units of two threads are both counted", .setup = open_units,
	      .thread = {schedule_one, schedule_two}, .finish = both_noted, .preemptions = 2,
	      .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_begun, .proves = "a callback runs only after its timeout was counted",
	      .setup = open_empty, .thread = {schedule_look, turn}, .finish = world_close,
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(step_join, .proves = "the worker looks at both of two lanes that are joined at once",
	      .setup = open_empty, .thread = {schedule_one, schedule_two},
	      .finish = both_transferred, .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_end, .proves = "a node is used again only after its timeout's end is written",
	      .setup = open_due, .thread = {turn, schedule_two}, .finish = two_pending,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_account, .proves = "cancel counts each timeout that it has cancelled",
	      .setup = open_due, .thread = {turn, cancel}, .finish = accounted, .preemptions = 2,
	      .weak = 0, .random_runs = 200);
MODEL_HARNESS(step_dispatch,
	      .proves = "a timeout that was cancelled is not passed to the dispatch hook",
	      .setup = open_dispatch, .thread = {turn, cancel}, .finish = dispatched_or_cancelled,
	      .preemptions = 2, .weak = 0, .random_runs = 200);
