/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include "ringless.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define NS_PER_MS INT64_C(1000000)

struct scene scene;

/* The thread hook fails from attempt `from` on, and works again at attempt `to`. */
static struct {
	unsigned attempts;
	unsigned from;
	unsigned to;
} unlucky;

/* The address of this variable is the argument of timeouts for executors. */
static char mark;

static void on_expire(struct tw_handle handle, void *arg)
{
	(void)handle;
	(void)arg;
	atomic_fetch_add(&scene.fired, 1);
}

const struct tw_kind scene_kind = TW_KIND(on_expire, NULL);

static void on_wheel(struct tw_handle handle, void *arg)
{
	on_expire(handle, arg);
	if (scene.clock == NULL && now_ms() + 1 < scene.begin_ms + scene.due_ms)
		fail("a timeout in the wheel was early");
	atomic_store(&scene.wheel_ended_ms, now_ms());
	atomic_fetch_add(&scene.wheel_ended, 1);
}

static const struct tw_kind wheel_kind = TW_KIND(on_wheel, NULL);

void scene_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		     int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&scene.unexpired, 1);
	if (kind != &wheel_kind)
		return;
	atomic_store(&scene.wheel_ended_ms, now_ms());
	atomic_fetch_add(&scene.wheel_ended, 1);
}

void scene_hand_back_and_end(void *context, struct tw_handle handle, const struct tw_kind *kind,
			     void *arg, int64_t remaining_ns)
{
	scene_hand_back(context, handle, kind, arg, remaining_ns);
	if (atomic_load(&scene.unexpired) == 1)
		pthread_exit(NULL);
}

/* Counts nothing: the run does not end the chain, and `fired` counts timeouts that have ended. */
static void on_chain(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind chain_kind = TW_KIND(on_chain, NULL);

static int marked_make(void)
{
	/* The chain's first run is due at once, the next one in ten hours. */
	struct tw_period period = TW_PERIOD_RATE(INT64_C(36000) * 1000 * NS_PER_MS);

	period.first_ns = 0;
	if (scene.setting == SETTING_CHAINS)
		return tw_schedule_periodic(scene.engine, &period, &chain_kind, &mark, NULL);
	return tw_schedule(scene.engine, 1, &scene_kind, &mark, NULL);
}

static void schedule_marked(void)
{
	for (int i = 0; i < DUES; i++) {
		if (marked_make() != 0)
			fail("a timeout for executors was rejected");
		atomic_fetch_add(&scene.accepted, 1);
	}
}

static int thread_hook(void *context, void *(*body)(void *), void *arg)
{
	unsigned attempt = ++unlucky.attempts;
	pthread_t thread;
	int error;

	(void)context;
	/*
	 * In SETTING_STALLED, schedules a timeout while the thread is being created. The timeout
	 * waits in ingress.
	 */
	if (attempt == 1 && scene.setting == SETTING_STALLED)
		schedule_marked();
	if (attempt >= unlucky.from && attempt < unlucky.to)
		return EAGAIN;
	error = pthread_create(&thread, NULL, body, arg);
	return error != 0 ? error : pthread_detach(thread);
}

/* Accepts timeouts whose argument is &mark. The others run on the worker. */
static size_t executor_hook(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;
	size_t at = atomic_load(&scene.due_count);

	(void)context;
	if (due[0].arg == &mark && scene.setting == SETTING_DESERTED)
		pthread_exit(NULL);
	for (; accepted < count && due[accepted].arg == &mark; accepted++)
		scene.due[at + accepted] = due[accepted];
	atomic_store(&scene.due_count, at + accepted);
	return accepted;
}

bool scene_due_run(void)
{
	size_t at = atomic_fetch_add(&scene.due_taken, 1);

	if (at >= atomic_load(&scene.due_count))
		return false;
	if (tw_due_run(&scene.due[at]) != 0)
		fail("what an executor has accepted does not run");
	return true;
}

int scene_schedule(struct tw_handle *ret_handle)
{
	int result = tw_schedule(scene.engine, TW_NEVER, &scene_kind, NULL, ret_handle);

	if (result == 0)
		atomic_fetch_add(&scene.accepted, 1);
	return result;
}

bool scene_has_worker(void)
{
	return scene.setting <= SETTING_EXECUTOR;
}

bool scene_has_wheel(void)
{
	return scene_has_worker() || scene.setting == SETTING_DESERTED;
}

static void wheel_fill(void)
{
	scene.begin_ms = now_ms();
	for (int i = 0; i < WHEELED; i++) {
		if (tw_schedule(scene.engine, scene.due_ms * NS_PER_MS, &wheel_kind, NULL, NULL) !=
		    0)
			fail("the wheel could not be filled");
		atomic_fetch_add(&scene.accepted, 1);
	}
	if (tw_engine_flush(scene.engine, TW_NEVER) != 0)
		fail("the engine did not flush");
}

static uint64_t parks(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	if (tw_stats_get(scene.engine, &stats) != 0)
		fail("no counters");
	return stats.parks;
}

/* Waits until the worker sleeps. In virtual time it then stays asleep. */
static void sleep_await(void)
{
	uint64_t before;

	do {
		before = parks();
		for (int i = 0; i < 10; i++)
			nap();
	} while (parks() != before);
}

/* Uses up the free blocks, and most of another slab. */
static void slab_use_up(void)
{
	uint64_t bytes = tw_memory_slab_bytes();
	int more = 0;

	while (more < SLAB_MOST) {
		if (scene_schedule(NULL) != 0)
			fail("no memory");
		more += tw_memory_slab_bytes() != bytes;
	}
}

static void dues_await(void)
{
	while (atomic_load(&scene.due_count) < DUES)
		nap();
}

/* Offers the marked timeouts to the hook, which ends the worker's thread. */
static void desert(void)
{
	schedule_marked();
	if (tw_engine_flush(scene.engine, TW_NEVER) != 0 ||
	    tw_clock_set(scene.clock, NS_PER_MS) != 0)
		fail("the clock does not move");
	while (tw_engine_state(scene.engine) != TW_ENGINE_FAILED)
		nap();
}

static void hook_plan(enum setting setting)
{
	unlucky.attempts = 0;
	unlucky.from = setting == SETTING_DESERTED ? 2 : 1;
	unlucky.to = setting == SETTING_DESERTED ? 1000 : setting == SETTING_STALLED ? 3 : 2;
}

static void engine_make(enum setting setting)
{
	struct tw_options options;
	bool executor = setting == SETTING_CHAINS || setting == SETTING_EXECUTOR ||
			setting == SETTING_DESERTED;

	if (tw_options_init(&options, sizeof options) != 0)
		fail("no options");
	if (setting == SETTING_VIRTUAL || setting == SETTING_DESERTED) {
		if (tw_clock_create_virtual(0, &options.clock) != 0)
			fail("no clock");
		scene.clock = options.clock;
	}
	if (setting >= SETTING_UNLUCKY)
		options.thread = thread_hook;
	if (executor)
		options.dispatch = executor_hook;
	if (tw_engine_create(&options, &scene.engine) != 0)
		fail("no engine");
}

static struct tw_engine *closed_engine_make(void)
{
	struct tw_engine *engine;

	if (tw_engine_create(NULL, &engine) != 0 ||
	    tw_engine_stop(engine, NULL, NULL, TW_NEVER) != 0)
		fail("no engine");
	return engine;
}

void scene_open(enum setting setting, bool ringless, int64_t due_ms)
{
	struct tw_engine *closed_engine = scene.closed_engine;

	memset(&scene, 0, sizeof scene);
	scene.closed_engine = closed_engine != NULL ? closed_engine : closed_engine_make();
	scene.setting = setting;
	scene.due_ms = due_ms;
	hook_plan(setting);
	ringless_set(ringless);
	engine_make(setting);
	ringless_set(false);
	if (setting == SETTING_CHAINS || setting == SETTING_EXECUTOR) {
		schedule_marked();
		dues_await();
	}
	if (setting == SETTING_SCARCE)
		slab_use_up();
	if (scene_has_wheel())
		wheel_fill();
	if (setting == SETTING_VIRTUAL)
		sleep_await();
	if (setting == SETTING_STALLED && tw_engine_start(scene.engine) != -ENOMEM)
		fail("the thread was made");
	if (setting == SETTING_DESERTED)
		desert();
}

void scene_close(void)
{
	if (atomic_load(&scene.accepted) != atomic_load(&scene.fired) +
						    atomic_load(&scene.unexpired) +
						    atomic_load(&scene.cancelled))
		fail("a timeout was lost, or ended twice");
	if (tw_engine_destroy(scene.engine) != 0 || tw_clock_destroy(scene.clock) != 0)
		fail("destroy failed");
}
