/* SPDX-License-Identifier: MIT */
/* Rare failures: no memory, memory that the library cannot use, and callbacks inside callbacks. */
#include "fault.h"
#include "probe.h"

#include <errno.h>
#include <string.h>

Test(rejections, no_memory_for_a_clock)
{
	struct tw_clock *clock = NULL;
	struct fault fault;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fault_arm(&fault, 1, 1);
	check_int(tw_clock_create_virtual(0, &clock), -ENOMEM);
	check_true(clock == NULL);
	check_int(tw_clock_create_virtual(0, &clock), 0);
	check_int(tw_clock_destroy(clock), 0);
	check_int(fault.live_bytes, 0);
}

/*
 * There is memory for the engine, but not for its wheel. The engine's memory must be given back,
 * and the clock must be free again.
 */
Test(rejections, no_memory_for_a_wheel)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;
	struct fault fault;
	long long before;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	check_int(tw_clock_create_virtual(0, &options.clock), 0);
	before = fault.live_bytes;
	fault_arm(&fault, 2, 1);
	check_int(tw_engine_create(&options, &engine), -ENOMEM);
	check_true(engine == NULL);
	check_int(fault.live_bytes, before);
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	check_int(tw_clock_destroy(options.clock), 0);
}

Test(rejections, no_memory_for_a_thread)
{
	struct fault fault;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fault_arm(&fault, 1, 1);
	check_int(tw_thread_attach(), -ENOMEM);
	check_int(tw_thread_attach(), 0);
}

/*
 * In the next test, the allocator returns memory without the requested alignment. The library must
 * give such memory back, and treat it as none.
 */
static atomic_int crooked_out;

static void *crooked_allocate(void *context, size_t bytes, size_t align)
{
	static _Alignas(4096) char room[1 << 16];

	(void)context;
	(void)bytes;
	(void)align;
	atomic_fetch_add(&crooked_out, 1);
	return room + 1;
}

static void crooked_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)memory;
	(void)bytes;
	(void)align;
	atomic_fetch_sub(&crooked_out, 1);
}

Test(rejections, misaligned_memory_is_rejected)
{
	static const struct tw_allocator crooked = {crooked_allocate, crooked_release, NULL};
	struct tw_engine *engine = NULL;

	check_int(tw_memory_allocator_set(&crooked), 0);
	check_int(tw_engine_create(NULL, &engine), -ENOMEM);
	check_true(engine == NULL);
	check_int(crooked_out, 0);
	check_int(tw_memory_allocator_set(NULL), 0);
}

Test(rejections, too_large_cpu_set_is_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;
	static const char cpu_set[4096] = {1};

	options.cpu_set = cpu_set;
	options.cpu_set_bytes = sizeof(cpu_set);
	check_int(tw_engine_create(&options, &engine), -EINVAL);
}

Test(rejections, engine_works_without_a_thread_name)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;

	options.thread_name = NULL;
	fixture_open(&fixture, &options);
	must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 1);
	fixture_close(&fixture);
}

Test(rejections, run_of_no_due_is_rejected)
{
	struct tw_due due;

	memset(&due, 0, sizeof(due));
	check_int(tw_due_run(NULL), -EINVAL);
	check_int(tw_due_run(&due), -EINVAL);
}

/*
 * In the next test, a callback of one engine runs a dispatched timeout of another engine. Inside
 * both, each engine's limit and waits must refer to its own callback.
 */
struct nested {
	struct tw_engine *outer;
	struct tw_engine *inner;
	struct tw_handle self;
	struct tw_due due;
	atomic_int accepted;
	int schedule, second, stop, wait, run;
};

static size_t keep_one(void *context, const struct tw_due *due, size_t count)
{
	struct nested *nested = context;

	nested->due = due[0];
	atomic_store(&nested->accepted, 1);
	return count > 0;
}

static void on_inner(struct tw_handle self, void *arg)
{
	struct nested *nested = arg;

	(void)self;
	nested->schedule = tw_schedule(nested->outer, TW_NEVER, &probe_kind, NULL, NULL);
	nested->second = tw_schedule(nested->outer, TW_NEVER, &probe_kind, NULL, NULL);
	nested->stop = tw_engine_stop(nested->outer, NULL, NULL, TW_NEVER);
	nested->wait = tw_cancel_wait(nested->self, TW_NEVER);
}

static void on_outer(struct tw_handle self, void *arg)
{
	struct nested *nested = arg;

	nested->self = self;
	nested->run = tw_due_run(&nested->due);
}

static const struct tw_kind inner_kind = TW_KIND(on_inner, NULL);
static const struct tw_kind outer_kind = TW_KIND(on_outer, NULL);

Test(rejections, a_callback_inside_another)
{
	struct tw_options options = fixture_options();
	struct nested nested = {.run = -1};
	struct fixture outer;
	struct fixture inner;

	options.pending_limit = 1;
	fixture_open(&outer, &options);
	options.pending_limit = 0;
	options.dispatch = keep_one;
	options.dispatch_context = &nested;
	fixture_open(&inner, &options);
	nested.outer = outer.engine;
	nested.inner = inner.engine;
	must_schedule(inner.engine, 1, &inner_kind, &nested);
	fixture_advance(&inner, NS_PER_MS);
	check_int(nested.accepted, 1);
	must_schedule(outer.engine, 1, &outer_kind, &nested);
	fixture_advance(&outer, NS_PER_MS);
	check_int(nested.run, 0);
	check_int(nested.schedule, 0);
	check_int(nested.second, -EAGAIN);
	check_int(nested.stop, -EDEADLK);
	check_int(nested.wait, TW_CANCEL_RUNNING);
	fixture_close(&inner);
	fixture_close(&outer);
}
