/* SPDX-License-Identifier: MIT */
/*
 * An executor under the test's control, and a drop hook for the timeouts that it rejects. Include
 * once per test program.
 */
#ifndef TESTS_DISPATCH_SCENE_H
#define TESTS_DISPATCH_SCENE_H

#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { QUEUE = 512 };

static struct {
	struct tw_engine *engine;
	atomic_int calls;
	atomic_int offered;
	size_t accept; /* how many timeouts of each batch it accepts at most */
	int count;
	struct tw_due due[QUEUE];
	void *asked[QUEUE]; /* the arguments of the offered timeouts, in order */
	void (*inside)(const struct tw_due *due, size_t count);
} executor;

/* Runs the timeouts at once, like a pool that is never full. */
static inline void run_here(const struct tw_due *due, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)tw_due_run(&due[i]);
}

static inline size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = executor.accept < count ? executor.accept : count;
	int asked = atomic_load(&executor.offered);

	(void)context;
	for (size_t i = 0; i < count && asked + (int)i < QUEUE; i++)
		executor.asked[asked + (int)i] = due[i].arg;
	atomic_fetch_add(&executor.calls, 1);
	atomic_fetch_add(&executor.offered, (int)count);
	if (executor.inside != NULL)
		executor.inside(due, count);
	memcpy(&executor.due[executor.count], due, accept * sizeof(*due));
	executor.count += (int)accept;
	if (executor.inside == run_here)
		return count;
	return executor.accept > QUEUE ? executor.accept : accept;
}

static struct {
	atomic_int count;
	void *arg;
	const struct tw_kind *kind;
	struct tw_engine *engine;
	atomic_int runs;
	int scheduled;
} dropped;

static inline void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind,
			   void *arg)
{
	(void)context;
	(void)self;
	dropped.arg = arg;
	dropped.kind = kind;
	dropped.scheduled = tw_schedule(dropped.engine, TW_NEVER, &count_kind, &dropped.runs, NULL);
	atomic_fetch_add(&dropped.count, 1);
}

static inline struct tw_options executor_options(uint32_t rejection, size_t accept)
{
	struct tw_options options = fixture_options();

	memset(&executor, 0, sizeof(executor));
	memset(&dropped, 0, sizeof(dropped));
	executor.accept = accept;
	options.dispatch = on_dispatch;
	options.rejection = rejection;
	options.on_drop = rejection == TW_REJECTION_DROP ? on_drop : NULL;
	return options;
}

static inline void executor_open(struct fixture *fixture, uint32_t rejection, size_t accept)
{
	struct tw_options options = executor_options(rejection, accept);

	fixture_open(fixture, &options);
	executor.engine = dropped.engine = fixture->engine;
}

static inline void run_all(void)
{
	for (int i = 0; i < executor.count; i++)
		check_int(tw_due_run(&executor.due[i]), 0);
	executor.count = 0;
}

/* block() waits inside the hook until the test opens its gate. hook_hold() returns when the hook
 * waits there. */
static struct gate hook_gate;

static inline void block(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	gate_kind.callback((struct tw_handle){0}, &hook_gate);
}

static inline void hook_hold(struct fixture *fixture)
{
	executor.inside = block;
	gate_init(&hook_gate);
	fixture_flush(fixture);
	check_int(tw_clock_set(fixture->clock, fixture->now_ns += NS_PER_MS), 0);
	gate_await(&hook_gate);
}

#endif
