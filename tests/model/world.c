/* SPDX-License-Identifier: MIT */
#include "world.h"

#include "thread/futex.h"
#include "turn/thread.h"
#include "turn/turn.h"
#include "worker/role.h"

#include <sys/mman.h>

/*
 * If the worker did not see a push's link, it looks again each millisecond; this many looks
 * suffice.
 */
enum { SECOND_LOOKS = 20 };

struct world world;

static void probe_run(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;

	(void)self;
	probe->ran++;
}

static void probe_finalise(void *arg, enum tw_end end)
{
	struct probe *probe = arg;

	probe->ended[end]++;
}

static void probe_run_and_exit(struct tw_handle self, void *arg)
{
	probe_run(self, arg);
	pthread_exit(NULL);
}

const struct tw_kind probe_kind = TW_KIND(probe_run, probe_finalise);
const struct tw_kind probe_exit_kind = TW_KIND(probe_run_and_exit, probe_finalise);
const struct tw_kind bare_kind = TW_KIND(probe_run, NULL);

void probe_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		     int64_t remaining_ns)
{
	struct probe *probe = arg;

	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	probe->unexpired++;
}

struct tw_options world_options(void)
{
	struct tw_options options;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	/* The smallest wheel, with one slot. */
	options.wheel = TW_WHEEL_HASHED;
	options.slots = 1;
	options.tick_ns = WORLD_TICK_NS;
	MODEL_CHECK(tw_clock_create_virtual(0, &world.clock) == 0);
	options.clock = world.clock;
	return options;
}

void world_open(const struct tw_options *options)
{
	struct tw_options defaults = options != NULL ? *options : world_options();

	MODEL_CHECK(tw_engine_create(&defaults, &world.engine) == 0);
	world.worker = &world.engine->worker;
	if (defaults.clock == NULL)
		world.clock = NULL;
	else
		MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS) == 0);
}

void world_life(uint32_t life)
{
	twi_store_relaxed(&world.worker->state, (uint32_t)life);
	world.has_worker = life == TW_ENGINE_STARTING;
}

static void attach(void)
{
	(void)twi_thread();
}

static void attach_filled(void)
{
	MODEL_CHECK(tw_thread_attach() == 0);
}

static void attach_bare(void)
{
	twi_stock_init(&twi_thread()->stock, true);
}

void world_threads(unsigned count, enum world_stock stock)
{
	for (unsigned i = 0; i < count; i++)
		model_as(i, stock == WORLD_STOCK_FILLED ? attach_filled : attach);
}

void world_thread_bare(unsigned thread)
{
	model_as(thread, attach_bare);
}

static void *pages_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	(void)align;
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void pages_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)align;
	(void)munmap(memory, bytes);
}

const struct tw_allocator world_pages = {pages_allocate, pages_release, NULL};

void world_open_layer(void)
{
	world_open(NULL);
	world_threads(4, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
}

void world_time_goes_on(void)
{
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 3 * WORLD_TICK_NS) == 0);
}

void world_schedule(struct probe *probe, const struct tw_kind *kind, int64_t deadline_ns)
{
	MODEL_CHECK(tw_schedule_at(world.engine, deadline_ns, kind, probe, &probe->handle) == 0);
}

void world_turn(void)
{
	twi_worker_enter(world.worker);
	(void)twi_worker_turn(world.worker);
	world.worker->self->worker = NULL;
	/* Lets another thread make the next turn. */
	twi_worker_disown(world.worker);
}

void world_work(void)
{
	twi_worker_run(world.worker);
}

static void *worker_body(void *argument)
{
	(void)argument;
	world_work();
	return NULL;
}

void world_await_pending(int64_t count)
{
	static _Atomic uint32_t nobody;

	model_wait_idle();
	for (int looks = 0; looks < SECOND_LOOKS && tw_engine_pending(world.engine) > count;
	     looks++) {
		(void)twi_futex_wait(&nobody, 0, twi_until_ns(2 * WORLD_TICK_NS));
		model_wait_idle();
	}
	MODEL_CHECK(tw_engine_pending(world.engine) == count);
}

void world_close(void)
{
	pthread_t thread;

	if (!world.has_worker && tw_engine_state(world.engine) == TW_ENGINE_RUNNING)
		MODEL_CHECK(pthread_create(&thread, NULL, worker_body, NULL) == 0);
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

enum tw_end probe_end(const struct probe *probe)
{
	const unsigned *ended = probe->ended;

	MODEL_CHECK(ended[0] + ended[1] + ended[2] + ended[3] == 1);
	MODEL_CHECK(probe->ran == ended[TW_END_EXPIRED]);
	MODEL_CHECK(probe->unexpired == ended[TW_END_UNEXPIRED]);
	if (ended[TW_END_EXPIRED] == 1)
		return TW_END_EXPIRED;
	if (ended[TW_END_DROPPED] == 1)
		return TW_END_DROPPED;
	return ended[TW_END_CANCELLED] == 1 ? TW_END_CANCELLED : TW_END_UNEXPIRED;
}
