/* SPDX-License-Identifier: MIT */
/*
 * The hooks of an engine and of the process, virtual time, loop mode, memory that passes from
 * thread to thread, a forked child. ThreadSanitizer must not report any access of these.
 *
 * usage: hooks [SCENE]
 */
#include "pool.h"

#include <sys/wait.h>
#include <unistd.h>

static struct tw_engine *hooked;
static int hook_value;

static void hook_callback(struct tw_handle self, void *arg)
{
	(void)self;
	step(2);
	must(*(int *)arg == 1);
	step_await(3);
}

static const struct tw_kind hook_kind = TW_KIND(hook_callback, NULL);

static void on_slow(void *context, const struct tw_slow *slow)
{
	(void)context;
	must(*(int *)slow->arg == 1);
}

static void *other_schedules(void *unused)
{
	step_await(1);
	hook_value = 1;
	must(tw_schedule(hooked, 0, &hook_kind, &hook_value, NULL) == 0);
	return unused;
}

static void slow_hook(void)
{
	struct tw_options options = options_default();
	pthread_t other;

	options.slow_ns = 1;
	options.on_slow = on_slow;
	hooked = engine_begin(&options);
	other = thread_begin(other_schedules, NULL);
	step(1);
	step_await(2);
	await(tw_engine_watch(hooked) == 1);
	step(3);
	thread_end(other);
	engine_end(hooked);
}

static void on_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	(void)context;
	(void)self;
	(void)kind;
	must(late_by_ns > 0 && *(int *)arg == 1);
	*(int *)arg = 2;
	done_note();
}

static void late_hook(void)
{
	struct tw_options options = options_default();
	struct tw_handle handle;
	static int value;

	options.late_ns = options.tick_ns;
	options.on_late = on_late;
	options.measure = TW_MEASURE_RUNS;
	hooked = engine_begin(&options);
	value = 1;
	must(tw_schedule_at(hooked, 0, &hook_kind, &value, &handle) == 0);
	await(done_now() == 1);
	must(tw_cancel_wait(handle, TW_NEVER) == TW_CANCEL_EXPIRED);
	must(value == 2);
	engine_end(hooked);
}

static size_t no_dispatch(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	return 0;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)context;
	(void)self;
	(void)kind;
	must(*(int *)arg > 0);
	++*(int *)arg;
	done_note();
}

static void drop_hook(void)
{
	struct tw_options options = options_default();
	struct tw_period period = TW_PERIOD_DELAY(MS);
	struct tw_handle handle;
	static int value;

	options.dispatch = no_dispatch;
	options.rejection = TW_REJECTION_DROP;
	options.on_drop = on_drop;
	hooked = engine_begin(&options);
	value = 1;
	must(tw_schedule(hooked, 0, &hook_kind, &value, &handle) == 0);
	await(done_now() == 1);
	must(tw_cancel_wait(handle, TW_NEVER) >= 0);
	must(value == 2);
	must(tw_schedule_periodic(hooked, &period, &hook_kind, &value, &handle) == 0);
	await(done_now() >= 4);
	must(tw_cancel_wait(handle, TW_NEVER) == TW_CANCEL_DONE);
	must(value >= 5);
	engine_end(hooked);
}

static void on_log(void *context, enum tw_log_level level, const char *text)
{
	(void)level;
	(void)text;
	must(*(int *)context == 1);
	done_note();
}

static int log_context;

static void *other_logs(void *unused)
{
	static struct tw_log log = {.hook = on_log, .context = &log_context};

	log_context = 1;
	must(tw_log_set(&log) == 0);
	step(1);
	return unused;
}

static void log_hook(void)
{
	struct tw_handle made_up = {.node = &made_up, .generation = 1};
	pthread_t other = thread_begin(other_logs, NULL);

	step_await(1);
	must(tw_cancel(made_up) == -EINVAL);
	must(done_now() == 1);
	must(tw_log_set(NULL) == 0);
	thread_end(other);
}

static void on_dump(void *context, const char *text, size_t bytes)
{
	(void)text;
	*(size_t *)context += bytes;
}

static void dump(void)
{
	struct tw_options options = options_default();
	struct tw_engine *engine;
	size_t bytes = 0;

	options.wheel = TW_WHEEL_HASHED;
	options.check = TW_CHECK_FULL;
	engine = engine_begin(&options);
	for (int i = 0; i < 100; i++)
		must(tw_schedule(engine, (1000 + i) * 1000 * MS, &hook_kind, NULL, NULL) == 0);
	for (int i = 0; i < 3; i++)
		must(tw_engine_dump(engine, on_dump, &bytes, TW_NEVER) == 0);
	must(bytes > 0);
	engine_end(engine);
}

static void never_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	must(false);
}

/* The next scene uses virtual time and flush. */

static int moved;

static void moved_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	must(moved == 1);
	moved = 2;
}

static void clock_set_and_flush(void)
{
	static const struct tw_kind kind = TW_KIND(moved_callback, NULL);
	struct tw_options options = options_default();
	struct tw_engine *engine;

	must(tw_clock_create_virtual(0, &options.clock) == 0);
	engine = engine_begin(&options);
	must(tw_schedule(engine, 10 * MS, &kind, NULL, NULL) == 0);
	must(tw_engine_flush(engine, TW_NEVER) == 0);
	moved = 1;
	must(tw_clock_set(options.clock, 20 * MS) == 0);
	must(tw_engine_flush(engine, TW_NEVER) == 0);
	must(moved == 2);
	engine_end(engine);
	must(tw_clock_destroy(options.clock) == 0);
}

/*
 * In the next scene, two threads own a loop one after the other, and then a third thread stops the
 * engine.
 */

static struct tw_clock *loop_clock;
static int loop_count;
static atomic_int loop_polls;

static void owned_finaliser(void *arg, enum tw_end end)
{
	must(end == TW_END_CANCELLED);
	++*(int *)arg;
}

static void *loop_owner(void *number)
{
	static const struct tw_kind owned_kind =
		TW_KIND_OWNER_ONLY(never_callback, owned_finaliser);
	static int owned_value;
	static struct tw_handle owned;
	int at = *(int *)number;

	step_await(at);
	must(tw_loop_enter(hooked) == 0);
	must(tw_engine_poll(hooked, 0) == 1);
	if (at == 1) {
		owned_value = 5;
		must(tw_schedule(hooked, TW_NEVER, &owned_kind, &owned_value, &owned) == 0);
	} else {
		must(tw_cancel(owned) == TW_CANCEL_DONE && owned_value == 6);
	}
	must(tw_loop_exit(hooked) == 0);
	atomic_store_explicit(&loop_polls, at, memory_order_relaxed);
	return NULL;
}

static void loop_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	loop_count++;
}

static void loop_mode(void)
{
	static const struct tw_kind kind = TW_KIND(loop_callback, NULL);
	static int numbers[] = {1, 2};
	struct tw_options options = options_default();
	pthread_t owners[2];

	must(tw_clock_create_virtual(0, &loop_clock) == 0);
	options.clock = loop_clock;
	options.flags = TW_ENGINE_LOOP;
	must(tw_engine_create(&options, &hooked) == 0);
	owners[0] = thread_begin(loop_owner, &numbers[0]);
	owners[1] = thread_begin(loop_owner, &numbers[1]);
	for (int at = 1; at <= 2; at++) {
		must(tw_schedule(hooked, 0, &kind, NULL, NULL) == 0);
		must(tw_clock_set(loop_clock, 10 * MS * at) == 0);
		step(at);
		await(atomic_load_explicit(&loop_polls, memory_order_relaxed) == at);
	}
	must(tw_engine_stop(hooked, NULL, NULL, TW_NEVER) == 0);
	must(loop_count == 2);
	must(tw_engine_destroy(hooked) == 0);
	thread_end(owners[0]);
	thread_end(owners[1]);
	must(tw_clock_destroy(loop_clock) == 0);
}

/*
 * In the next scenes, memory is released. Callbacks or cancels free objects. An allocator writes
 * into the memory that it returns, and into memory that is released to it.
 */

enum { OBJECTS = 1000 };

struct object {
	struct tw_handle handle;
	int value;
};

static void object_callback(struct tw_handle self, void *arg)
{
	struct object *object = arg;

	(void)self;
	object->value++;
}

static void object_finaliser(void *arg, enum tw_end end)
{
	struct object *object = arg;

	(void)end;
	must(object->value >= 1);
	free(object);
}

static void *objects_schedule(void *unused)
{
	static const struct tw_kind kind = TW_KIND(object_callback, object_finaliser);

	for (int i = 0; i < OBJECTS; i++) {
		struct object *object = malloc(sizeof *object);
		struct tw_handle handle;

		object->value = 1;
		must(tw_schedule(hooked, i % 4 * MS, &kind, object, &handle) == 0);
		if (i % 2 == 0)
			must(tw_cancel(handle) >= 0);
		if (i % 100 == 0)
			must(tw_thread_detach() == 0);
	}
	return unused;
}

static void objects(void)
{
	pthread_t threads[2];

	hooked = engine_begin(NULL);
	for (int i = 0; i < 2; i++)
		threads[i] = thread_begin(objects_schedule, NULL);
	for (int i = 0; i < 2; i++)
		thread_end(threads[i]);
	engine_end(hooked);
}

static void *poison_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);

	must(*(int *)context == 1);
	if (memory != NULL)
		memset(memory, 0xa5, bytes);
	return memory;
}

static void poison_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)align;
	must(*(int *)context == 1);
	memset(memory, 0x5a, bytes);
	free(memory);
}

static int allocator_context;
static struct loose_handle victim;

static void *other_allocates(void *unused)
{
	static struct tw_allocator allocator = {.allocate = poison_allocate,
						.release = poison_release,
						.context = &allocator_context};

	allocator_context = 1;
	must(tw_memory_allocator_set(&allocator) == 0);
	step(1);
	step_await(2);
	/* This is the thread's first call to this engine, so the thread gets its ring here. */
	must(tw_cancel(loose_get(&victim)) == TW_CANCEL_DONE);
	step(3);
	return unused;
}

static void allocator(void)
{
	pthread_t other = thread_begin(other_allocates, NULL);
	struct tw_handle handle;

	step_await(1);
	hooked = engine_begin(NULL);
	must(tw_schedule(hooked, TW_NEVER, &hook_kind, NULL, &handle) == 0);
	must(tw_engine_flush(hooked, TW_NEVER) == 0);
	loose_put(&victim, handle);
	step(2);
	step_await(3);
	engine_end(hooked);
	must(tw_memory_allocator_set(NULL) == 0);
	thread_end(other);
}

/* In the next scene, a forked child takes over the parent's timeouts. */

static void fork_callback(struct tw_handle self, void *arg)
{
	(void)self;
	++*(int *)arg;
}

static int child_run(struct tw_engine *engine, struct tw_clock *clock, struct tw_handle handle,
		     const int *value)
{
	if (tw_cancel(handle) != -ECHILD || tw_fork_generation() != 1)
		return 1;
	if (tw_fork_reinit(engine, TW_REINIT_KEEP) != 0)
		return 2;
	if (tw_clock_set(clock, 20 * MS) != 0 || tw_engine_poll(engine, 0) != 1 || *value != 2)
		return 3;
	return tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0 ? 0 : 4;
}

static void forked(void)
{
	static const struct tw_kind kind = TW_KIND(fork_callback, NULL);
	struct tw_options options = options_default();
	struct tw_engine *engine;
	struct tw_handle handle;
	int value = 1, status;
	pid_t child;

	must(tw_fork_generation() == 0);
	must(tw_clock_create_virtual(0, &options.clock) == 0);
	options.flags = TW_ENGINE_LOOP;
	must(tw_engine_create(&options, &engine) == 0);
	must(tw_schedule(engine, MS, &kind, &value, &handle) == 0);
	child = fork();
	must(child >= 0);
	if (child == 0)
		_exit(child_run(engine, options.clock, handle, &value));
	must(waitpid(child, &status, 0) == child);
	must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	must(tw_cancel(handle) == TW_CANCEL_DONE);
	engine_end(engine);
	must(tw_clock_destroy(options.clock) == 0);
}

static const struct scene scenes[] = {
	{"forked", forked},
	{"slow_hook", slow_hook},
	{"late_hook", late_hook},
	{"drop_hook", drop_hook},
	{"log_hook", log_hook},
	{"dump", dump},
	{"clock_set_and_flush", clock_set_and_flush},
	{"loop_mode", loop_mode},
	{"objects", objects},
	{"allocator", allocator},
};

int main(int argc, char **argv)
{
	return SCENES_RUN(scenes, argc, argv);
}
