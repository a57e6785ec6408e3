/* SPDX-License-Identifier: MIT */
/*
 * Scopes: rejected input, an engine that is full, stopped or destroyed, a lack of memory, and an
 * end that waits.
 *
 * Seen to fail with these defects: a slot stays claimed after a rejected schedule; an owner-only
 * kind is accepted; a scope can be destroyed before its end; chunks are not freed; a free slot is
 * not searched for when there is no memory; tw_scope_end_wait does not wait, or waits for its own
 * callback.
 */
#include "asleep.h"
#include "child.h"
#include "dispatch_scene.h"
#include "fault.h"
#include "scope_scene.h"

Test(scope_ends, wrong_arguments_are_rejected)
{
	struct tw_kind owned = TW_KIND_OWNER_ONLY(probe_kind.callback, NULL);
	static const struct tw_kind none = TW_KIND(NULL, NULL);
	struct tw_allocator half = {.allocate = NULL};
	struct tw_scope *scope = NULL;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_scope_create(NULL, NULL, &scope), -EINVAL);
	check_int(tw_scope_create(fixture.engine, NULL, NULL), -EINVAL);
	check_int(tw_scope_create(fixture.engine, &half, &scope), -EINVAL);
	check_true(scope == NULL);
	check_int(tw_scope_schedule(NULL, 0, &count_kind, NULL, NULL), -EINVAL);
	check_int(tw_scope_schedule_at(NULL, 0, &count_kind, NULL, NULL), -EINVAL);
	check_int(tw_scope_end(NULL), -EINVAL);
	check_int(tw_scope_end_wait(NULL, 0), -EINVAL);
	check_int(tw_scope_count(NULL), -EINVAL);
	check_int(tw_scope_destroy(NULL), 0);
	scope = scope_open(fixture.engine);
	check_int(tw_scope_schedule(scope, 0, NULL, NULL, NULL), -EINVAL);
	check_int(tw_scope_schedule(scope, 0, &none, NULL, NULL), -EINVAL);
	check_int(tw_scope_schedule(scope, 0, &owned, NULL, NULL), -EINVAL);
	check_int(tw_scope_schedule(scope, INT64_MIN, &count_kind, NULL, NULL), -ERANGE);
	check_int(tw_scope_schedule_at(scope, INT64_MIN, &count_kind, NULL, NULL), -ERANGE);
	check_int(tw_scope_count(scope), 0);
	check_int(tw_scope_destroy(scope), -EBUSY);
	scope_close(scope);
	fixture_close(&fixture);
}

Test(scope_ends, rejected_schedule_gives_back_its_slot)
{
	struct tw_options options = fixture_options();
	struct tw_handle handle, last;
	struct tw_scope *scope;
	struct fixture fixture;
	atomic_int runs = 0;

	options.pending_limit = 3;
	fixture_open(&fixture, &options);
	scope = scope_open(fixture.engine);
	for (int i = 0; i < 3; i++)
		handle = scope_schedule(scope, NS_PER_MS, &count_kind, &runs);
	/* There are more rejected schedules than slots, so each must give its slot back. */
	for (int i = 0; i < 100; i++) {
		last = (struct tw_handle){NULL, 9};
		check_int(tw_scope_schedule(scope, 0, &count_kind, &runs, &last), -EAGAIN);
		check_true(last.generation == 9);
	}
	check_int(tw_scope_count(scope), 3);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	(void)scope_schedule(scope, NS_PER_MS, &count_kind, &runs);
	check_int(tw_scope_end(scope), 3);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

Test(scope_ends, scope_may_outlive_its_stopped_engine)
{
	struct tw_scope *scope;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	probe_init(&probe, fixture.engine);
	(void)scope_schedule(scope, NS_PER_S, &probe_final_kind, &probe);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe.end, TW_END_UNEXPIRED);
	check_int(tw_scope_schedule(scope, 0, &probe_kind, &probe, NULL), -ESHUTDOWN);
	check_int(tw_scope_count(scope), 0);
	/* The scope exists longer than its engine. */
	fixture_close(&fixture);
	check_int(tw_scope_end(scope), 0);
	check_int(tw_scope_end_wait(scope, TW_NEVER), 0);
	check_int(tw_scope_destroy(scope), 0);
	check_int(probe.runs, 0);
}

Test(scope_ends, no_memory_for_slots)
{
	struct tw_scope *scope = NULL;
	struct tw_handle handle[72];
	struct fixture fixture;
	struct fault fault;

	fixture_open(&fixture, NULL);
	fault_init(&fault);
	fault_arm(&fault, 1, 1);
	check_int(tw_scope_create(fixture.engine, &fault.allocator, &scope), -ENOMEM);
	fault_disarm(&fault);
	check_int(tw_scope_create(fixture.engine, &fault.allocator, &scope), 0);
	for (int i = 0; i < 8; i++)
		handle[i] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
	fault_arm(&fault, 1, 1000);
	for (int i = 0; i < 20; i++)
		check_int(tw_scope_schedule(scope, 0, &count_kind, NULL, NULL), -ENOMEM);
	/* A slot that becomes free must be found, wherever it is. */
	for (int i = 0; i < 8; i++) {
		check_int(tw_cancel(handle[(i * 5) % 8]), TW_CANCEL_DONE);
		handle[(i * 5) % 8] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
		check_int(tw_scope_schedule(scope, 0, &count_kind, NULL, NULL), -ENOMEM);
	}
	/*
	 * Frees a slot that lies before the slot that was found last. The search must find it, too.
	 */
	for (int i = 6; i > 0; i -= 5) {
		check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
		handle[i] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
	}
	fault_disarm(&fault);
	for (int i = 8; i < 72; i++)
		handle[i] = scope_schedule(scope, NS_PER_S, &count_kind, NULL);
	check_int(tw_scope_end(scope), 72);
	check_int(tw_scope_destroy(scope), 0);
	check_int(fault.live_bytes, 0);
	check_int(fault.bad_releases, 0);
	fixture_close(&fixture);
}

Test(scope_ends, no_memory_for_the_timeout)
{
	struct tw_scope *scope;
	struct fixture fixture;
	int error = 0, made = 0;

	fixture_open(&fixture, NULL);
	scope = scope_open(fixture.engine);
	check_int(tw_memory_cap_set(1), 0);
	while (error == 0 && made++ < 10000000)
		error = tw_scope_schedule(scope, NS_PER_S, &count_kind, NULL, NULL);
	check_int(error, -ENOMEM);
	check_int(tw_scope_count(scope), made - 1);
	check_int(tw_scope_end(scope), made - 1);
	check_int(tw_memory_cap_set(0), 0);
	check_int(tw_scope_destroy(scope), 0);
	fixture_close(&fixture);
}

struct waiter {
	struct tw_scope *scope;
	asleep_thread thread;
	atomic_int done;
	int said;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	asleep_announce(&waiter->thread);
	waiter->said = tw_scope_end_wait(waiter->scope, TW_NEVER);
	atomic_store(&waiter->done, 1);
	return NULL;
}

Test(scope_ends, wait_ends_with_the_callback)
{
	struct waiter waiter = {.done = 0};
	struct tw_scope *scope;
	struct fixture fixture;
	struct gate gate;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	waiter.scope = scope = scope_open(fixture.engine);
	gate_init(&gate);
	(void)scope_schedule(scope, 0, &gate_kind, &gate);
	(void)scope_schedule(scope, NS_PER_S, &count_kind, NULL);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
	gate_await(&gate);
	check_int(tw_scope_count(scope), 2);
	check_int(tw_scope_end(scope), 1);
	check_int(tw_scope_count(scope), 1);
	check_int(tw_scope_end_wait(scope, 0), -ETIMEDOUT);
	check_int(tw_scope_end_wait(scope, INT64_MIN), -ETIMEDOUT);
	check_int(tw_scope_end_wait(scope, NS_PER_MS), -ETIMEDOUT);
	check_int(pthread_create(&thread, NULL, waiter_main, &waiter), 0);
	check_true(asleep_await(&waiter.thread));
	check_int(waiter.done, 0);
	gate_open(&gate);
	check_int(pthread_join(thread, NULL), 0);
	check_int(waiter.said, 0);
	check_int(tw_scope_count(scope), 0);
	check_int(tw_scope_destroy(scope), 0);
	fixture_flush(&fixture);
	fixture_close(&fixture);
}

/* The callback of a destroyed scope must not use the scope. */
Test(scope_ends, destroyed_while_a_callback_runs)
{
	struct tw_scope *scope = NULL;
	struct fixture fixture;
	struct fault fault;
	struct gate gate;

	fixture_open(&fixture, NULL);
	fault_init(&fault);
	check_int(tw_scope_create(fixture.engine, &fault.allocator, &scope), 0);
	gate_init(&gate);
	(void)scope_schedule(scope, 0, &gate_kind, &gate);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
	gate_await(&gate);
	check_int(tw_scope_end(scope), 0);
	check_int(tw_scope_destroy(scope), 0);
	check_int(fault.live_bytes, 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	fixture_close(&fixture);
}

/*
 * In the next test, a callback in an executor ends its scope. The end must wait for other callbacks
 * of the scope, but not for this one.
 */
struct own {
	struct tw_scope *scope;
	int said;
};

static void on_own(struct tw_handle self, void *arg)
{
	struct own *own = arg;

	(void)self;
	own->said = tw_scope_end_wait(own->scope, NS_PER_MS);
}

Test(scope_ends, callback_in_an_executor_does_not_wait_for_itself)
{
	static const struct tw_kind kind = TW_KIND(on_own, NULL);
	struct own own = {.said = 1};
	struct fixture fixture;
	atomic_int runs = 0;

	executor_open(&fixture, TW_REJECTION_RUN, QUEUE);
	own.scope = scope_open(fixture.engine);
	(void)scope_schedule(own.scope, 0, &kind, &own);
	(void)scope_schedule(own.scope, 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.count, 2);
	check_int(tw_scope_end(own.scope), 0);
	check_int(tw_scope_count(own.scope), 2);
	/* The executor also has the second timeout, whose callback must not run. */
	check_int(tw_due_run(&executor.due[executor.due[0].arg == &own ? 0 : 1]), 0);
	check_int(own.said, -ETIMEDOUT);
	check_int(tw_due_run(&executor.due[executor.due[0].arg == &own ? 1 : 0]), 0);
	check_int(runs, 1);
	check_int(tw_scope_end_wait(own.scope, TW_NEVER), 0);
	check_int(tw_scope_destroy(own.scope), 0);
	fixture_close(&fixture);
}

/*
 * In the next test, a timeout that an executor rejects is pending again, so a later end must cancel
 * it.
 */
static struct tw_scope *requeued_scope;
static atomic_int end_said;

static void end_inside(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	atomic_store(&end_said, (int)tw_scope_end(requeued_scope));
}

Test(scope_ends, requeued_timeout_is_found_again)
{
	struct fixture fixture;
	atomic_int runs = 0;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	requeued_scope = scope_open(fixture.engine);
	executor.inside = end_inside;
	atomic_store(&end_said, -1);
	(void)scope_schedule(requeued_scope, 0, &count_kind, &runs);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
	check_true(wait_until_at_least(&end_said, 0));
	check_int(tw_scope_end_wait(requeued_scope, TW_NEVER), 0);
	check_int(tw_scope_count(requeued_scope), 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 0);
	check_int(tw_scope_destroy(requeued_scope), 0);
	fixture_close(&fixture);
}

static struct tw_scope *inherited;

static void child_has_a_copy(void)
{
	child_need(tw_scope_schedule(inherited, 0, &count_kind, NULL, NULL), -ECHILD);
	child_need(tw_scope_schedule_at(inherited, 0, &count_kind, NULL, NULL), -ECHILD);
	child_need(tw_scope_end(inherited), -ECHILD);
	child_need(tw_scope_end_wait(inherited, TW_NEVER), -ECHILD);
	child_need(tw_scope_count(inherited), -ECHILD);
	child_need(tw_scope_destroy(inherited), 0);
}

Test(scope_ends, forked_child_may_only_destroy)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	inherited = scope_open(fixture.engine);
	for (int i = 0; i < 20; i++)
		(void)scope_schedule(inherited, NS_PER_S, &count_kind, NULL);
	in_child(child_has_a_copy);
	check_int(tw_scope_end(inherited), 20);
	check_int(tw_scope_destroy(inherited), 0);
	fixture_close(&fixture);
}
