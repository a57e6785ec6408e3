/* SPDX-License-Identifier: MIT */
/*
 * Covers cases of ordering edges that no other harness covers. Surviving mutants have shown that
 * these cases were missing.
 *
 * - E12: a thread learns by destroy or by tw_engine_state that an engine has stopped. A stop
 *   finishes an engine with the hook that another stop has stored. The thread that adopted an
 *   engine has ended, or the engine's worker is about to end. A start follows a start that failed.
 * - E7: a lane passes from one thread to the next, and nothing else orders the two threads.
 * - E4: another engine uses the node of an old handle. A cancel comes before the transfer, or after
 *   it.
 * - E9: a clock wakes an engine in reused memory. The second engine of a clock frees it.
 *
 * Seen to fail with these defects:
 * - tw_engine_destroy or tw_engine_state loads the engine's state relaxed;
 * - start_failed() does not acquire if its swap to STALLED fails;
 * - start_failed() stores STALLED without release;
 * - twi_engine_start() swaps the state to STARTING relaxed;
 * - orphan_take() adopts the engine by a relaxed swap;
 * - twi_worker_died() makes its last wake outside its critical section;
 * - a thread gives back or takes a lane's number relaxed;
 * - the node's field `engine` is stored or loaded relaxed;
 * - pending_cancel() cancels a timeout in ingress, or in the wheel, without release;
 * - tw_timeout_get loads the state word relaxed;
 * - twi_node_begin() stores the state word relaxed;
 * - virtual_attach() swaps `sleeper` without release, or without acquire;
 * - virtual_busy() loads `sleeper` relaxed.
 */
#include "memory/memory.h"
#include "worker/state.h"
#include "world.h"

#include <errno.h>
#include <string.h>

enum { ARENA_BYTES = 1 << 16, ARENA_BLOCKS = 8 };

static struct probe one, two;
static struct tw_clock *the_clock;
static struct tw_engine *first_engine;

/* A user's allocator whose memory is not zero when given, and is overwritten when released. */
static struct {
	_Alignas(TWI_CACHE_LINE) char block[ARENA_BLOCKS][ARENA_BYTES];
	unsigned used;
} arena;

static const struct tw_allocator *built_in; /* the allocator that allocates the slabs */

static void *arena_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	if (bytes > ARENA_BYTES)
		return built_in->allocate(built_in->context, bytes, align);
	MODEL_CHECK(arena.used < ARENA_BLOCKS);
	return memset(arena.block[arena.used++], 1, bytes);
}

static void arena_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)align;
	(void)memset(memory, 1, bytes);
}

static void arena_begin(void)
{
	static const struct tw_allocator allocator = {arena_allocate, arena_release, NULL};

	built_in = twi_allocator();
	MODEL_CHECK(tw_memory_allocator_set(&allocator) == 0);
}

/*
 * Closes the engine like a stop that does not wait for the end. The worker is about to finish the
 * engine.
 */
static void open_closed(void)
{
	struct tw_options options;

	arena_begin();
	options = world_options();
	options.clock = NULL;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world.worker->on_unexpired = probe_hand_back;
	world_life(TWI_STATE_STOPPING_STARTING);
}

static void destroy_if_stopped(void)
{
	int result = tw_engine_destroy(world.engine);

	MODEL_CHECK(result == 0 || result == -EBUSY);
	if (result == 0)
		MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
}

static void look_if_stopped(void)
{
	if (tw_engine_state(world.engine) == TW_ENGINE_STOPPED)
		MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
}

/* Stands for the user's hook that creates threads. It never joins a thread that it has created. */
static int thread_of_mine(void *context, void *(*body)(void *arg), void *arg)
{
	pthread_t thread;

	(void)context;
	return pthread_create(&thread, NULL, body, arg);
}

static void open_arena(void)
{
	struct tw_options options;

	arena_begin();
	options = world_options();
	options.thread = thread_of_mine;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
}

/* Schedules a timeout whose callback ends the worker's thread. */
static void schedule_exit(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_exit_kind, &one, NULL) == 0);
}

static void exit_stop_and_destroy(void)
{
	schedule_exit();
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static int no_thread(void *context, void *(*body)(void *arg), void *arg)
{
	(void)context;
	(void)body;
	(void)arg;
	return EAGAIN;
}

static void open_threadless(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	options.thread = no_thread;
	world_open(&options);
	world_threads(3, WORLD_STOCK_FILLED);
}

/* Opens an engine whose start has failed. One timeout has been waiting since that start. */
static void open_stalled(void)
{
	open_threadless();
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_life(TW_ENGINE_STALLED);
}

static void start(void)
{
	int error = tw_engine_start(world.engine);

	MODEL_CHECK(error == -ENOMEM || error == -ESHUTDOWN);
}

static unsigned tries;

/*
 * Stands for a user's hook that counts its calls and creates no thread. The count needs no atomics,
 * because the library makes one start at a time.
 */
static int no_thread_counted(void *context, void *(*body)(void *arg), void *arg)
{
	tries++;
	return no_thread(context, body, arg);
}

static void open_new(void)
{
	struct tw_options options = world_options();

	options.clock = NULL;
	options.thread = no_thread_counted;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
}

static void start_or_leave_it(void)
{
	int error = tw_engine_start(world.engine);

	MODEL_CHECK(error == 0 || error == -ENOMEM);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

static void exit_once(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		      int64_t remaining_ns)
{
	probe_hand_back(context, handle, kind, arg, remaining_ns);
	if (one.unexpired + two.unexpired == 1)
		pthread_exit(NULL);
}

/*
 * Opens an engine that has no worker. The thread that finishes the engine calls pthread_exit in its
 * first hand-back.
 */
static void open_orphan(void)
{
	open_threadless();
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
	world.worker->on_unexpired = exit_once;
	twi_store_relaxed(&world.engine->stop_claimed, true);
	world_life(TWI_STATE_ORPHAN);
}

static void both_back(void)
{
	stop();
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	MODEL_CHECK(probe_end(&two) == TW_END_UNEXPIRED);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

static void open_starting(void)
{
	world_open(NULL);
	world_threads(3, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_STARTING);
}

static void flush(void)
{
	MODEL_CHECK(tw_engine_flush(world.engine, TW_NEVER) == 0);
}

/* Schedules and flushes while another thread flushes too. Each thread must get its own ticket. */
static void schedule_and_flush(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL) == 0);
	flush();
	MODEL_CHECK(one.ran == 1);
}

static unsigned before_cancel;

static void open_ingress(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &bare_kind, TW_NEVER);
}

static void open_wheel(void)
{
	open_ingress();
	world_turn();
}

static void mark_and_cancel(void)
{
	before_cancel = 1;
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void look_if_cancelled(void)
{
	if (tw_timeout_state(one.handle) == TW_STATE_CANCELLED)
		MODEL_CHECK(before_cancel == 1);
}

static void get_if_cancelled(void)
{
	struct tw_timeout got = {.size = sizeof got};

	MODEL_CHECK(tw_timeout_get(one.handle, &got) == 0);
	if (got.state == TW_STATE_CANCELLED)
		MODEL_CHECK(before_cancel == 1);
}

/*
 * Opens an engine with a due timeout. The thread that runs the timeout takes the timeout's node for
 * the next one.
 */
static void open_due(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &bare_kind, WORLD_DUE_NS);
}

static void run_and_reuse(void)
{
	world_turn();
	MODEL_CHECK(tw_schedule(world.engine, TW_NEVER, &bare_kind, &two, &two.handle) == 0);
	MODEL_CHECK(two.handle.node == one.handle.node);
}

static void look_if_stale(void)
{
	if (tw_timeout_state(one.handle) == -ESTALE)
		MODEL_CHECK(one.ran == 1);
}

/* Opens a second engine, whose timeouts get the blocks that the first engine's timeouts had. */
static void open_two(void)
{
	struct tw_options options;

	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, WORLD_DUE_NS);
	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	MODEL_CHECK(tw_engine_create(&options, &first_engine) == 0);
	twi_store_relaxed(&first_engine->worker.state, TW_ENGINE_RUNNING);
}

static void get(void)
{
	struct tw_timeout got = {.size = sizeof got};
	int result = tw_timeout_get(one.handle, &got);

	MODEL_CHECK(result == 0 || result == -ESTALE);
	if (result == 0)
		MODEL_CHECK(got.engine == world.engine);
}

static void reuse_in_other(void)
{
	world_turn();
	MODEL_CHECK(tw_schedule(first_engine, TW_NEVER, &probe_kind, &two, &two.handle) == 0);
	MODEL_CHECK(two.handle.node == one.handle.node);
}

static struct tw_engine *engine_make(void)
{
	struct tw_engine *engine = NULL;
	struct tw_options options;
	int result;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	options.clock = the_clock;
	result = tw_engine_create(&options, &engine);
	MODEL_CHECK(result == 0 || result == -EBUSY);
	return engine;
}

static void make_clock(void)
{
	arena_begin();
	MODEL_CHECK(tw_clock_create_virtual(0, &the_clock) == 0);
}

static void make_clock_and_engine(void)
{
	make_clock();
	first_engine = engine_make();
}

static void create(void)
{
	MODEL_CHECK(engine_make() != NULL);
}

static void set_clock(void)
{
	MODEL_CHECK(tw_clock_set(the_clock, 1) == 0);
}

static void destroy_first(void)
{
	MODEL_CHECK(tw_engine_destroy(first_engine) == 0);
}

static void use_and_free_clock(void)
{
	struct tw_engine *engine = engine_make();

	if (engine == NULL)
		return;
	MODEL_CHECK(tw_engine_destroy(engine) == 0);
	MODEL_CHECK(tw_clock_destroy(the_clock) == 0);
}

static void free_clock(void)
{
	int result = tw_clock_destroy(the_clock);

	MODEL_CHECK(result == 0 || result == -EBUSY);
}

static void open_cancels(void)
{
	world_open(NULL);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_schedule(&two, &probe_kind, TW_NEVER);
}

/*
 * Cancels one timeout. Neither thread takes a block, so only the lane's number passes from one
 * thread to the other.
 */
static void cancel_one(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
}

static void cancel_two(void)
{
	MODEL_CHECK(tw_cancel(two.handle) == TW_CANCEL_DONE);
}

static void both_counted(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.cancelled == 2);
	world_close();
}

MODEL_HARNESS(edge_destroy,
	      .proves = "a thread that may destroy an engine sees everything that the engine did",
	      .setup = open_closed, .thread = {destroy_if_stopped}, .worker = world_work,
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_state,
	      .proves = "a thread that sees STOPPED sees everything that the engine did",
	      .setup = open_closed, .thread = {look_if_stopped}, .worker = world_work,
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_tickets, .proves = "two flushers get different tickets", .setup = open_starting,
	      .thread = {schedule_and_flush, flush}, .worker = world_work, .finish = world_close,
	      .preemptions = 1, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_died,
	      .proves = "an engine may be freed as soon as its dying worker has let go of it",
	      .setup = open_arena, .thread = {exit_stop_and_destroy}, .preemptions = 2, .weak = 0,
	      .random_runs = 200);
MODEL_HARNESS(edge_hook,
	      .proves = "a stop finishes an engine with the hook of the stop that closed it",
	      .setup = open_stalled, .thread = {start, stop, stop}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
MODEL_HARNESS(edge_restart, .proves = "a start sees what an earlier, failed start did",
	      .setup = open_new, .thread = {start_or_leave_it, start_or_leave_it}, .preemptions = 2,
	      .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_orphan,
	      .proves = "an engine is adopted again after the end of its adopting thread",
	      .setup = open_orphan, .thread = {stop, stop}, .finish = both_back, .preemptions = 2,
	      .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_cancelled,
	      .proves = "a thread that sees CANCELLED in ingress sees what came before",
	      .setup = open_ingress, .thread = {mark_and_cancel, look_if_cancelled},
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_wheeled,
	      .proves = "a thread that sees CANCELLED in the wheel sees what came before",
	      .setup = open_wheel, .thread = {mark_and_cancel, look_if_cancelled}, .preemptions = 2,
	      .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_get,
	      .proves = "a thread that reads of a cancel by tw_timeout_get sees what came before",
	      .setup = open_wheel, .thread = {mark_and_cancel, get_if_cancelled}, .preemptions = 2,
	      .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_reborn,
	      .proves = "a thread that sees its node used again sees the callback's writes",
	      .setup = open_due, .thread = {run_and_reuse, look_if_stale}, .preemptions = 2,
	      .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_engine,
	      .proves = "tw_timeout_get returns the engine of the timeout that it describes",
	      .setup = open_two, .thread = {get, reuse_in_other}, .preemptions = 1, .weak = 2,
	      .random_runs = 200);
MODEL_HARNESS(edge_attach,
	      .proves = "a thread that moves a clock sees the clock's engine initialised",
	      .setup = make_clock, .thread = {create, set_clock}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
MODEL_HARNESS(edge_lane,
	      .proves = "a lane's counts continue, although only its number is handed over",
	      .setup = open_cancels, .thread = {cancel_one, cancel_two}, .finish = both_counted,
	      .threads_end = true, .preemptions = 1, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_free, .proves = "a clock may be freed after its engine has read it",
	      .setup = make_clock_and_engine, .thread = {destroy_first, free_clock},
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(edge_second,
	      .proves = "the second engine of a clock may free it after the first has left",
	      .setup = make_clock_and_engine, .thread = {destroy_first, use_and_free_clock},
	      .preemptions = 2, .weak = 1, .random_runs = 200);
