/* SPDX-License-Identifier: MIT */
/*
 * Callbacks that take as long as a test wants, because they move the clock, and a slow hook that
 * records its calls. Include once per test program.
 */
#ifndef TESTS_SLOW_SCENE_H
#define TESTS_SLOW_SCENE_H

#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define SLOW_NS (5 * NS_PER_MS)

static struct {
	atomic_int count;
	struct tw_slow last;
	pthread_t thread;
} told;

static inline void slow_hook(void *context, const struct tw_slow *slow)
{
	(void)context;
	told.last = *slow;
	told.thread = pthread_self();
	atomic_fetch_add(&told.count, 1);
}

static inline struct tw_options slow_options(tw_slow_hook *hook)
{
	struct tw_options options = fixture_options();

	memset(&told, 0, sizeof(told));
	options.slow_ns = (uint64_t)SLOW_NS;
	options.on_slow = hook;
	return options;
}

static inline void slow_open(struct fixture *fixture, tw_dispatch_hook *dispatch)
{
	struct tw_options options = slow_options(slow_hook);

	options.dispatch = dispatch;
	fixture_open(fixture, &options);
}

static inline void check_told(int count, uint32_t running, int64_t run_ns, void *arg)
{
	check_int(told.count, count);
	check_int(told.last.size, sizeof(told.last));
	check_int(told.last.running, running);
	check_int(told.last.run_ns, run_ns);
	check_true(told.last.arg == arg);
}

/*
 * A timeout whose callback moves the clock by `run_ns`, and whose finaliser moves it by `end_ns`.
 */
struct work {
	struct fixture *fixture;
	int64_t run_ns;
	int64_t end_ns;
	struct tw_handle self;
	atomic_int runs;
};

static inline void pass(struct fixture *fixture, int64_t ns)
{
	fixture->now_ns += ns;
	tw_clock_set(fixture->clock, fixture->now_ns);
}

static inline void on_work(struct tw_handle self, void *arg)
{
	struct work *work = arg;

	work->self = self;
	pass(work->fixture, work->run_ns);
	atomic_fetch_add(&work->runs, 1);
}

static inline void on_work_end(void *arg, enum tw_end end)
{
	struct work *work = arg;

	(void)end;
	pass(work->fixture, work->end_ns);
}

static const struct tw_kind work_kind = TW_KIND(on_work, on_work_end);

/* Runs the work and all other timeouts that are due, and flushes. */
static inline void work_do(struct fixture *fixture, struct work *work)
{
	work->fixture = fixture;
	must_schedule(fixture->engine, 1, &work_kind, work);
	fixture_flush(fixture);
	check_int(tw_clock_set(fixture->clock, fixture->now_ns += NS_PER_MS), 0);
	fixture_flush(fixture);
	check_int(work->runs, 1);
}

/* An executor that keeps timeouts until the test runs them. */
static struct {
	atomic_int count;
	struct tw_due due[128];
} taken;

static inline size_t take(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	memcpy(&taken.due[taken.count], due, count * sizeof(*due));
	atomic_fetch_add(&taken.count, (int)count);
	return count;
}

static inline void *run_due(void *due)
{
	return (void *)(intptr_t)tw_due_run(due);
}

#endif
