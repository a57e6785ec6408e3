/* SPDX-License-Identifier: MIT */
/*
 * Makes and frees engines. Start makes the thread.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "expiry/measure.h"
#include "expiry/slow.h"
#include "ingress/lanes.h"
#include "memory/memory.h"
#include "thread/log.h"
#include "thread/rcu.h"
#include "turn/fresh.h"

#include <errno.h>
#include <string.h>

static _Atomic uint32_t engines_alive; /* [atomic] */
static _Atomic bool many_reported;     /* [atomic] */

/*
 * Counts a new engine. Logs once per process if there are more than TWI_ENGINES_USUAL. `loop`: the
 * new engine is in loop mode. It has no thread, so its creation is no reason to log. RELAXED, all:
 * these counters publish nothing.
 */
static void alive_count(bool loop)
{
	uint32_t before = twi_fetch_add_relaxed(&engines_alive, 1);
	bool reported = false;

	if (before < TWI_ENGINES_USUAL || loop)
		return;
	if (twi_cas_relaxed(&many_reported, &reported, true))
		twi_log(TW_LOG_WARNING, "more than 64 engines are alive; each owns a thread, and "
					"one serves millions of timeouts");
}

/*
 * Calls the dispatch hook under ThreadSanitizer. Before that, reports the edge from the threads
 * that scheduled the timeouts, because the hook may read memory that those threads have written.
 */
static size_t tsan_dispatch(void *context, const struct tw_due *due, size_t count)
{
	const struct tw_options *options = context;

	for (size_t i = 0; i < count; i++)
		twi_handle_acquire(due[i].handle);
	return options->dispatch(options->dispatch_context, due, count);
}

/*
 * Under ThreadSanitizer, makes every run and every dispatch take a path that reports edges
 * (base/tsan.h).
 */
static void tsan_hooks_set(struct twi_worker *worker)
{
	struct tw_engine *engine = TWI_CONTAINER_OF(worker, struct tw_engine, worker);

	worker->runs_checked = true;
	if (worker->dispatch == NULL)
		return;
	worker->dispatch = tsan_dispatch;
	worker->dispatch_context = &engine->options;
}

TWI_WORKER_UNCHECKED void twi_engine_worker_init(struct twi_worker *worker,
						 const struct tw_options *options)
{
	/*
	 * The memory is zeroed. RELAXED, here and in the inits: no other thread has the engine yet.
	 */
	twi_store_relaxed(&worker->state, TW_ENGINE_NEW);
	worker->fork_epoch = twi_fork_epoch;
	worker->tick_ns = options->tick_ns;
	worker->pending_limit = options->pending_limit;
	worker->transfer_batch = options->transfer_batch;
	worker->dispatch = options->dispatch;
	worker->dispatch_context = options->dispatch_context;
	worker->check = options->check;
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->marks,
			  (options->check != TW_CHECK_NONE ? TWI_MARK_CHECK : 0U) |
				  (options->dispatch != NULL ? TWI_MARK_DISPATCH : 0U));
	worker->late_ns = (int64_t)options->late_ns;
	worker->on_late = options->on_late;
	worker->late_context = options->late_context;
	worker->rejection = options->rejection;
	worker->on_drop = options->on_drop;
	worker->drop_context = options->drop_context;
	worker->runs_checked = options->late_ns != 0 || options->slow_ns != 0 ||
			       options->measure != TW_MEASURE_NOTHING;
	if (twi_tsan_there())
		tsan_hooks_set(worker);
	worker->spin_ns = (int64_t)options->spin_ns;
	worker->loop = (options->flags & TW_ENGINE_LOOP) != 0;
	worker->ordered = (options->flags & (TW_ENGINE_ORDERED | TW_ENGINE_LOOP)) != 0;
	worker->quick = !worker->ordered && options->pending_limit == 0;
	worker->expire_stop = worker->expire_end = UINT64_MAX;
	worker->expire_until_ns = INT64_MAX;
	worker->direct_from_ns = INT64_MIN;
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->wake_before_ns, TWI_WAKE_NOBODY);
	twi_fresh_update(worker);
	worker->given_up_ns = INT64_MAX;
	twi_park_init(&worker->park);
	for (uint32_t number = 0; number < TWI_LANES; number++)
		twi_lane_init(&worker->near.lane[number], number);
}

/*
 * Returns how many bytes of a name the system takes. If the limit falls inside a UTF-8 character,
 * leaves out the whole character, because tools would show half of it as garbage.
 */
static size_t thread_name_bytes(const char *name)
{
	size_t bytes = strnlen(name, TWI_THREAD_NAME_BYTES + 1);
	size_t begin = TWI_THREAD_NAME_BYTES;

	if (bytes <= TWI_THREAD_NAME_BYTES)
		return bytes;
	while ((name[begin] & 0xC0) == 0x80 && begin > TWI_THREAD_NAME_BYTES - 3)
		begin--;
	/*
	 * Four continuation bytes in a row mean that the name is not UTF-8. Then it is cut at the
	 * limit.
	 */
	return (name[begin] & 0xC0) == 0x80 ? TWI_THREAD_NAME_BYTES : begin;
}

static void thread_options_copy(struct tw_engine *engine, const struct tw_options *options)
{
	engine->thread_hook = options->thread;
	engine->thread_context = options->thread_context;
	engine->scheduling_policy = options->scheduling_policy;
	engine->scheduling_priority = options->scheduling_priority;
	engine->cpu_set_bytes = options->cpu_set_bytes;
	if (options->cpu_set != NULL)
		memcpy(&engine->cpu_set, options->cpu_set, options->cpu_set_bytes);
	if (options->thread_name != NULL)
		memcpy(engine->thread_name, options->thread_name,
		       thread_name_bytes(options->thread_name));
}

struct twi_wheel *twi_engine_wheel(const struct tw_engine *engine)
{
	const struct tw_options *options = &engine->options;
	const struct twi_worker *worker = &engine->worker;
	struct twi_wheel *wheel;

	if (options->wheel == TW_WHEEL_HIERARCHICAL)
		wheel = twi_wheel_create_hierarchical(worker->allocator, options->tick_ns,
						      worker->epoch_ns);
	else
		wheel = twi_wheel_create_hashed(worker->allocator, options->slots, options->tick_ns,
						worker->epoch_ns);
	if (wheel == NULL)
		return NULL;
	wheel->owner = worker;
	if (!worker->ordered || twi_wheel_order(wheel, worker->loop))
		return wheel;
	twi_wheel_destroy(wheel);
	return NULL;
}

/*
 * Returns the epoch, at which tick 0 ends. That is one tick before now or, if ticks are aligned to
 * multiples of their length, before the latest multiple. So tick 1 is already over, and a past
 * deadline has a tick to lie in (worker/at_once.h).
 */
static int64_t epoch_of(const struct tw_options *options, int64_t now_ns)
{
	int64_t tick_ns = (int64_t)options->tick_ns;

	if ((options->flags & TW_ENGINE_ALIGNED) != 0)
		now_ns -= now_ns % tick_ns;
	return now_ns - tick_ns;
}

static int clock_attach(struct tw_engine *engine, const struct tw_options *options)
{
	struct twi_worker *worker = &engine->worker;

	worker->clock = options->clock;
	if (worker->clock == NULL)
		worker->clock =
			twi_clock_auto(&engine->own_clock, options->tick_ns, options->spin_ns);
	return worker->clock->ops->attach != NULL
		       ? worker->clock->ops->attach(worker->clock, &worker->park)
		       : 0;
}

static void clock_detach(struct twi_worker *worker)
{
	/* The ops table is read first, because the clock may be freed as soon as it is detached. */
	const struct twi_clock_ops *ops = worker->clock->ops;

	if (ops->detach == NULL)
		return;
	ops->detach(worker->clock, &worker->park);
	/*
	 * E10: waits for a thread that moves the clock and may be about to wake this worker. A
	 * forked child has no such thread.
	 */
	if (ops->moved && worker->fork_epoch == twi_fork_epoch)
		twi_rcu_synchronize();
}

/* Allocates the watch for slow runs, and the measurements, if the options ask for them. */
static int watchers_make(struct twi_worker *worker, const struct tw_options *options)
{
	if (options->slow_ns != 0) {
		worker->watch = twi_watch_create(worker->allocator, options);
		if (worker->watch == NULL)
			return -ENOMEM;
	}
	if (options->measure != TW_MEASURE_NOTHING) {
		worker->measure = twi_measure_create(worker->allocator, options);
		if (worker->measure == NULL)
			return -ENOMEM;
	}
	return 0;
}

static void seats_free(struct tw_engine *engine)
{
	const struct tw_allocator *allocator = engine->worker.allocator;
	struct twi_seat *seat =
		twi_load_relaxed(&engine->seats); /* RELAXED: as in twi_engine_free. */

	while (seat != NULL) {
		struct twi_seat *next = seat->next;

		twi_release(allocator, seat, sizeof *seat, TWI_CACHE_LINE);
		seat = next;
	}
}

static void memory_release(struct tw_engine *engine)
{
	const struct tw_allocator *allocator = engine->worker.allocator;

	seats_free(engine);
	twi_lanes_free(&engine->worker);
	twi_watch_free(allocator, engine->worker.watch);
	twi_measure_free(allocator, engine->worker.measure);
	twi_release(allocator, engine, sizeof *engine, TWI_CACHE_LINE);
}

TWI_WORKER_UNCHECKED int twi_engine_create(const struct tw_options *options,
					   struct tw_engine **ret_engine)
{
	const struct tw_allocator *allocator = twi_allocator();
	struct tw_engine *engine = twi_allocate_zeroed(allocator, sizeof *engine, TWI_CACHE_LINE);
	struct twi_worker *worker;
	int error;

	if (engine == NULL)
		return -ENOMEM;
	worker = &engine->worker;
	worker->allocator = allocator;
	engine->options = *options;
	twi_engine_worker_init(worker, options);
	thread_options_copy(engine, options);
	error = watchers_make(worker, options);
	if (error == 0)
		error = clock_attach(engine, options);
	if (error != 0) {
		memory_release(engine);
		return error;
	}
	worker->epoch_ns = epoch_of(options, twi_clock_now_ns(worker->clock));
	worker->wheel = twi_engine_wheel(engine);
	if (worker->wheel == NULL) {
		clock_detach(worker);
		memory_release(engine);
		return -ENOMEM;
	}
	/* RELAXED: no other thread has the engine yet. */
	twi_store_relaxed(&worker->wheel_bytes, twi_wheel_bytes(worker->wheel));
	twi_fork_watch();
	alive_count(worker->loop);
	*ret_engine = engine;
	return 0;
}

TWI_WORKER_UNCHECKED void twi_engine_free(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;

	/*
	 * Ends the wall clock's watch first, because the watch must not wake a freed park. RELAXED:
	 * no other thread uses the engine any more.
	 */
	twi_wall_destroy(twi_load_relaxed(&worker->wall), twi_engine_of_parent(engine));
	clock_detach(worker);
	twi_wheel_destroy(engine->worker.wheel);
	/*
	 * The timer is closed only now: until the detach, a thread that moved the clock could still
	 * set it.
	 */
	twi_timer_fd_close(engine->worker.park.timer_fd);
	memory_release(engine);
	/* RELAXED: a count that publishes nothing. */
	(void)twi_fetch_add_relaxed(&engines_alive, (uint32_t)-1);
}
