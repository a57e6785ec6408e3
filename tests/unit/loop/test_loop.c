/* SPDX-License-Identifier: MIT */
/*
 * Loop mode, in virtual time: the timeouts that a poll runs, the time of the next poll, and the
 * threads that may call.
 */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>

#define TICK_NS INT64_C(1000000)

static struct tw_options loop_options(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	return options;
}

static void loop_open(struct fixture *fixture)
{
	struct tw_options options = loop_options();

	fixture_open(fixture, &options);
	check_int(tw_engine_start(fixture->engine), 0);
}

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind counted = TW_KIND(on_count, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_count, NULL);

/* A call that the test makes on another thread. */
struct call {
	struct tw_engine *engine;
	struct tw_handle handle;
	int64_t (*make)(struct call *call);
	int64_t result;
};

static void *call_body(void *arg)
{
	struct call *call = arg;

	call->result = call->make(call);
	return NULL;
}

static int64_t elsewhere(struct tw_engine *engine, int64_t (*make)(struct call *),
			 struct tw_handle handle)
{
	struct call call = {.engine = engine, .handle = handle, .make = make};
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, call_body, &call), 0);
	check_int(pthread_join(thread, NULL), 0);
	return call.result;
}

static const struct tw_handle no_handle;

static int64_t call_poll(struct call *call)
{
	return tw_engine_poll(call->engine, 0);
}

static int64_t call_poll_at(struct call *call)
{
	return tw_engine_poll_at(call->engine, 0, 0);
}

static int64_t call_next_due(struct call *call)
{
	return tw_engine_next_due(call->engine);
}

static int64_t call_fd(struct call *call)
{
	return tw_engine_fd(call->engine);
}

static int64_t call_enter(struct call *call)
{
	return tw_loop_enter(call->engine);
}

static int64_t call_exit(struct call *call)
{
	return tw_loop_exit(call->engine);
}

static int64_t call_start(struct call *call)
{
	return tw_engine_start(call->engine);
}

static int64_t call_cancel(struct call *call)
{
	return tw_cancel(call->handle);
}

static int64_t call_cancel_wait(struct call *call)
{
	return tw_cancel_wait(call->handle, 0);
}

static int64_t call_reschedule(struct call *call)
{
	return tw_reschedule(call->handle, TW_NEVER);
}

static int64_t call_schedule(struct call *call)
{
	static atomic_int ignored;

	return tw_schedule(call->engine, 1, &counted, &ignored, NULL);
}

static int64_t call_schedule_owned(struct call *call)
{
	return tw_schedule(call->engine, 1, &owned, NULL, NULL);
}

Test(loop, poll_runs_what_is_due)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_next_due(fixture.engine), TW_NEVER);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_schedule(fixture.engine, 5 * TICK_NS, &counted, &runs, NULL), 0);
	check_int(tw_engine_next_due(fixture.engine), 6 * TICK_NS);
	check_int(tw_clock_set(fixture.clock, 5 * TICK_NS - 1), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_engine_next_due(fixture.engine), 6 * TICK_NS);
	check_int(tw_clock_set(fixture.clock, 5 * TICK_NS), 0);
	check_int(runs, 0);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	check_int(runs, 1);
	check_int(tw_engine_next_due(fixture.engine), TW_NEVER);
	fixture_close(&fixture);
}

/*
 * Checks a tick boundary. Ticks begin at the creation of the engine or, with TW_ENGINE_ALIGNED, at
 * multiples of a tick.
 */
static void check_boundary(uint64_t flags, int64_t boundary_ns)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;

	options.flags = TW_ENGINE_LOOP | flags;
	fixture_open_at(&fixture, &options, 5 * NS_PER_MS + 300000);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
	check_int(tw_engine_next_due(fixture.engine), boundary_ns);
	check_int(tw_clock_set(fixture.clock, boundary_ns), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	/* A timeout without a delay is due at once, in the first tick as in any other. */
	check_int(tw_schedule(fixture.engine, 0, &counted, &runs, NULL), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	fixture_close(&fixture);
}

Test(loop, aligned_ticks_begin_at_multiples_of_a_tick)
{
	check_boundary(TW_ENGINE_ALIGNED, 6 * NS_PER_MS);
	check_boundary(0, 6 * NS_PER_MS + 300000);
}

Test(loop, poll_at_is_told_the_time)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule_at(fixture.engine, 5 * TICK_NS, &counted, &runs, NULL), 0);
	check_int(tw_engine_poll_at(fixture.engine, 5 * TICK_NS - 1, 0), 0);
	check_int(tw_engine_poll_at(fixture.engine, 5 * TICK_NS, 0), 1);
	check_int(tw_engine_poll_at(fixture.engine, 0, 0), 0);
	/* An earlier poll was given a later time, so this deadline has passed already. */
	check_int(tw_schedule_at(fixture.engine, TICK_NS, &counted, &runs, NULL), 0);
	check_int(tw_engine_next_due(fixture.engine), 0);
	check_int(tw_engine_poll_at(fixture.engine, 0, 0), 1);
	check_int(tw_engine_poll_at(fixture.engine, -1, 0), -EINVAL);
	fixture_close(&fixture);
}

Test(loop, budget_bounds_a_poll)
{
	enum { TIMEOUTS = 700, BUDGET = 3 };
	struct fixture fixture;
	atomic_int runs = 0;
	int polls = 0;

	loop_open(&fixture);
	for (int i = 0; i < TIMEOUTS; i++)
		check_int(tw_schedule(fixture.engine, i % 7 * TICK_NS, &counted, &runs, NULL), 0);
	check_int(tw_clock_set(fixture.clock, 10 * TICK_NS), 0);
	while (runs < TIMEOUTS) {
		cr_assert(tw_engine_next_due(fixture.engine) <= 10 * TICK_NS);
		check_int(tw_engine_poll(fixture.engine, BUDGET),
			  runs < TIMEOUTS || TIMEOUTS % BUDGET == 0 ? BUDGET : TIMEOUTS % BUDGET);
		polls++;
	}
	check_int(polls, (TIMEOUTS + BUDGET - 1) / BUDGET);
	check_int(tw_engine_next_due(fixture.engine), TW_NEVER);
	fixture_close(&fixture);
}

/* A poll without a budget must run all due timeouts. */
Test(loop, poll_without_a_bound_runs_all_due)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	for (int i = 1; i <= 3; i++) {
		check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
		check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
		check_int(tw_clock_set(fixture.clock, i * 2 * TICK_NS), 0);
		check_int(tw_engine_poll(fixture.engine, UINT64_MAX), 2);
	}
	fixture_close(&fixture);
}

static void on_flush_other(struct tw_handle self, void *arg)
{
	struct tw_timeout about = {.size = sizeof(about)};

	check_int(tw_timeout_get(self, &about), 0);
	check_int(tw_engine_flush(about.engine, 0), -EDEADLK);
	check_int(tw_engine_flush(*(struct tw_engine **)arg, 0), 0);
	/* Inside the outer callback, the thread must still count as this engine's worker. */
	check_int(tw_engine_flush(about.engine, 0), -EDEADLK);
	check_int(tw_engine_poll(about.engine, 0), -EDEADLK);
}

Test(loop, flush_of_another_inside_a_callback)
{
	static const struct tw_kind flushes = TW_KIND(on_flush_other, NULL);
	struct fixture fixture, other;

	loop_open(&fixture);
	loop_open(&other);
	check_int(tw_engine_poll(other.engine, 0), 0);
	check_int(tw_schedule(fixture.engine, 1, &flushes, &other.engine, NULL), 0);
	check_int(tw_clock_set(fixture.clock, TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	fixture_close(&other);
	fixture_close(&fixture);
}

static struct tw_handle peer;

static void on_cancel_peer(struct tw_handle self, void *arg)
{
	(void)self;
	check_int(tw_cancel(peer), *(int *)arg);
}

/* Returns true if another timeout soon gets the memory of `before`. */
static bool serves_again(struct tw_engine *engine, struct tw_handle before)
{
	enum { SOON = 4096 };
	static atomic_int ignored;
	struct tw_handle handle;

	for (int i = 0; i < SOON; i++) {
		check_int(tw_schedule(engine, TW_NEVER, &counted, &ignored, &handle), 0);
		if (handle.node == before.node)
			return true;
	}
	return false;
}

/*
 * A callback cancels a timeout of the present batch. With a budget, the rest of the batch is put
 * back into the wheel.
 */
Test(loop, cancel_in_a_batch)
{
	static const struct tw_kind cancels = TW_KIND(on_cancel_peer, NULL);
	static const struct tw_kind *const kinds[] = {&counted, &owned};
	static int done = TW_CANCEL_DONE;
	struct fixture fixture;
	atomic_int runs = 0;

	for (size_t i = 0; i < 4; i++) {
		loop_open(&fixture);
		check_int(tw_schedule(fixture.engine, 1, &cancels, &done, NULL), 0);
		for (int k = 0; k < 5; k++)
			check_int(tw_schedule(fixture.engine, 1, kinds[i % 2], &runs, &peer), 0);
		check_int(tw_clock_set(fixture.clock, 2 * TICK_NS), 0);
		check_int(tw_engine_poll(fixture.engine, i / 2), i / 2 == 0 ? 5 : 1);
		check_int(tw_engine_poll(fixture.engine, 0), i / 2 == 0 ? 0 : 4);
		check_int(tw_engine_poll(fixture.engine, 0), 0);
		cr_assert(serves_again(fixture.engine, peer));
		fixture_close(&fixture);
	}
	check_int(runs, 16);
}

static void on_again_in_the_past(struct tw_handle self, void *arg)
{
	struct tw_timeout about = {.size = sizeof(about)};

	atomic_fetch_add((atomic_int *)arg, 1);
	check_int(tw_timeout_get(self, &about), 0);
	check_int(tw_schedule_at(about.engine, 0, about.kind, arg, NULL), 0);
}

/* A callback may schedule a timeout that is due at once, again and again. That must not prolong
 * the poll. */
Test(loop, the_past_waits_for_the_next_poll)
{
	static const struct tw_kind again = TW_KIND(on_again_in_the_past, NULL);
	static const struct tw_kind again_owned = TW_KIND_OWNER_ONLY(on_again_in_the_past, NULL);
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_clock_set(fixture.clock, 9 * TICK_NS), 0);
	check_int(tw_schedule_at(fixture.engine, 0, &again, &runs, NULL), 0);
	check_int(tw_schedule_at(fixture.engine, 0, &again_owned, &runs, NULL), 0);
	for (int i = 1; i <= 10; i++) {
		check_int(tw_engine_poll(fixture.engine, 0), 2);
		check_int(runs, 2 * i);
		check_int(tw_engine_next_due(fixture.engine), 0);
	}
	fixture_close(&fixture);
}

Test(loop, pending_limit_rejects_the_owner_and_other_threads)
{
	struct tw_options options = loop_options();
	struct tw_handle handle;
	struct fixture fixture;
	atomic_int runs = 0;

	options.pending_limit = 2;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_schedule(fixture.engine, 1, &owned, &runs, NULL), 0);
	check_int(tw_schedule(fixture.engine, TW_NEVER, &counted, &runs, &handle), 0);
	check_int(tw_schedule(fixture.engine, 1, &owned, &runs, NULL), -EAGAIN);
	check_int(elsewhere(fixture.engine, call_schedule, no_handle), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), -EAGAIN);
	fixture_advance(&fixture, 2 * TICK_NS);
	check_int(runs, 2);
	check_int(stats_of(fixture.engine).rejected, 3);
	fixture_close(&fixture);
}

Test(loop, handles_of_the_owner)
{
	static const struct tw_kind *const kinds[] = {&counted, &owned};
	struct tw_timeout about = {.size = sizeof(about)};
	struct tw_handle first, second;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	for (size_t i = 0; i < 2; i++) {
		check_int(tw_schedule(fixture.engine, TICK_NS, kinds[i], &runs, &first), 0);
		check_int(tw_timeout_state(first), TW_STATE_INIT);
		check_int(tw_timeout_get(first, &about), 0);
		cr_assert(about.kind == kinds[i] && about.engine == fixture.engine);
		check_int(about.state, TW_STATE_INIT);
		check_int(tw_engine_pending(fixture.engine), 1);
		check_int(tw_cancel(first), TW_CANCEL_DONE);
		check_int(tw_cancel(first), TW_CANCEL_CANCELLED);
		check_int(tw_timeout_state(first), TW_STATE_CANCELLED);
		check_int(tw_engine_pending(fixture.engine), 0);
		/* The second timeout must get the memory of the first. */
		check_int(tw_schedule(fixture.engine, TICK_NS, kinds[i], &runs, &second), 0);
		cr_assert(second.node == first.node);
		check_int(tw_cancel(first), TW_CANCEL_STALE);
		check_int(tw_timeout_state(first), -ESTALE);
		fixture_advance(&fixture, 3 * TICK_NS);
		check_int(runs, i + 1);
		check_int(tw_cancel(second), TW_CANCEL_EXPIRED);
	}
	fixture_close(&fixture);
}

/* If the owner cancels, the timeout must leave the wheel at once. */
Test(loop, cancel_by_the_owner_leaves_the_wheel_at_once)
{
	static const struct tw_kind *const kinds[] = {&counted, &owned};
	struct tw_handle handle;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	for (size_t i = 0; i < 2; i++) {
		check_int(tw_schedule(fixture.engine, 5 * TICK_NS, kinds[i], &runs, &handle), 0);
		check_int(tw_engine_next_due(fixture.engine), 6 * TICK_NS);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
		check_int(tw_engine_next_due(fixture.engine), TW_NEVER);
		check_int(tw_engine_poll(fixture.engine, 0), 0);
	}
	fixture_close(&fixture);
}

Test(loop, other_threads_may_schedule_and_cancel_but_not_poll)
{
	struct tw_handle shared, own;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule(fixture.engine, TICK_NS, &counted, &runs, &shared), 0);
	check_int(tw_schedule(fixture.engine, TICK_NS, &owned, &runs, &own), 0);
	check_int(elsewhere(fixture.engine, call_poll, no_handle), -EBUSY);
	check_int(elsewhere(fixture.engine, call_poll_at, no_handle), -EBUSY);
	check_int(elsewhere(fixture.engine, call_next_due, no_handle), -EBUSY);
	check_int(elsewhere(fixture.engine, call_fd, no_handle), -EBUSY);
	check_int(elsewhere(fixture.engine, call_exit, no_handle), -EPERM);
	check_int(elsewhere(fixture.engine, call_start, no_handle), 0);
	check_int(elsewhere(fixture.engine, call_schedule_owned, no_handle), -EPERM);
	check_int(elsewhere(fixture.engine, call_cancel, own), -EPERM);
	check_int(elsewhere(fixture.engine, call_cancel_wait, own), -EPERM);
	check_int(elsewhere(fixture.engine, call_reschedule, own), -EPERM);
	check_int(elsewhere(fixture.engine, call_cancel, shared), TW_CANCEL_DONE);
	/* Only a poll handles another thread's calls, so the next poll must be due at once. */
	check_int(tw_engine_next_due(fixture.engine), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_engine_next_due(fixture.engine), 2 * TICK_NS);
	check_int(elsewhere(fixture.engine, call_schedule, no_handle), 0);
	check_int(tw_engine_next_due(fixture.engine), 0);
	check_int(tw_engine_pending(fixture.engine), 2);
	check_int(tw_clock_set(fixture.clock, 2 * TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 2);
	check_int(runs, 1);
	fixture_close(&fixture);
}

/* A bracket belongs to the thread that opened it. Other threads are not inside it. */
Test(loop, brackets_go_from_thread_to_thread)
{
	struct tw_handle own;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule(fixture.engine, TW_NEVER, &owned, &runs, &own), 0);
	check_int(tw_loop_enter(fixture.engine), -EBUSY);
	check_int(elsewhere(fixture.engine, call_enter, no_handle), -EBUSY);
	check_int(tw_loop_exit(fixture.engine), 0);
	check_int(tw_loop_exit(fixture.engine), -EPERM);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
	check_int(tw_cancel(own), -EPERM);
	check_int(call_schedule_owned(&(struct call){.engine = fixture.engine}), -EPERM);
	check_int(elsewhere(fixture.engine, call_poll, no_handle), 0);
	/* If a thread ends inside its bracket, the bracket must be closed. */
	check_int(elsewhere(fixture.engine, call_enter, no_handle), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_cancel(own), -EPERM);
	check_int(tw_loop_enter(fixture.engine), 0);
	check_int(tw_cancel(own), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

Test(loop, one_owner_may_have_several_engines)
{
	struct tw_handle handle[2];
	struct fixture fixture[2];
	atomic_int runs = 0;

	loop_open(&fixture[0]);
	loop_open(&fixture[1]);
	for (int i = 0; i < 2; i++)
		check_int(tw_schedule(fixture[i].engine, TW_NEVER, &owned, &runs, &handle[i]), 0);
	for (int i = 0; i < 2; i++)
		check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
	fixture_close(&fixture[0]);
	check_int(tw_schedule(fixture[1].engine, 1, &owned, &runs, &handle[1]), 0);
	fixture_advance(&fixture[1], 2 * TICK_NS);
	check_int(runs, 1);
	fixture_close(&fixture[1]);
}

static void on_call_all(struct tw_handle self, void *arg)
{
	struct tw_timeout about = {.size = sizeof(about)};

	check_int(tw_timeout_get(self, &about), 0);
	check_int(tw_engine_poll(about.engine, 0), -EDEADLK);
	check_int(tw_engine_poll_at(about.engine, 0, 0), -EDEADLK);
	check_int(tw_loop_exit(about.engine), -EDEADLK);
	check_int(tw_engine_state(about.engine), TW_ENGINE_RUNNING);
	check_int(tw_engine_flush(about.engine, 0), -EDEADLK);
	check_int(tw_engine_stop(about.engine, NULL, NULL, 0), -EDEADLK);
	check_int(tw_engine_destroy(about.engine), -EDEADLK);
	cr_assert(tw_engine_next_due(about.engine) >= 0);
	cr_assert(tw_engine_fd(about.engine) >= 0);
	check_int(tw_loop_enter(about.engine), -EBUSY);
	check_at_least(tw_engine_poll(*(struct tw_engine **)arg, 0), 0);
	check_int(tw_engine_start(*(struct tw_engine **)arg), 0);
}

Test(loop, inside_a_callback)
{
	static const struct tw_kind calls_all = TW_KIND(on_call_all, NULL);
	struct fixture fixture, other;

	loop_open(&fixture);
	loop_open(&other);
	check_int(tw_schedule(fixture.engine, 1, &calls_all, &other.engine, NULL), 0);
	check_int(tw_clock_set(fixture.clock, TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), 1);
	fixture_close(&other);
	fixture_close(&fixture);
}

Test(loop, loop_calls_with_a_worker_thread_are_rejected)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_engine_poll(fixture.engine, 0), -EINVAL);
	check_int(tw_engine_poll_at(fixture.engine, 0, 0), -EINVAL);
	check_int(tw_engine_next_due(fixture.engine), -EINVAL);
	check_int(tw_engine_fd(fixture.engine), -EINVAL);
	check_int(tw_engine_poll_for(fixture.engine, 0, 1), -EINVAL);
	check_int(tw_loop_enter(fixture.engine), -EINVAL);
	check_int(tw_loop_exit(fixture.engine), -EINVAL);
	check_int(tw_schedule(fixture.engine, 1, &owned, NULL, NULL), -EPERM);
	fixture_close(&fixture);
	check_int(tw_engine_poll(NULL, 0), -EINVAL);
	check_int(tw_engine_poll_at(NULL, 0, 0), -EINVAL);
	check_int(tw_engine_next_due(NULL), -EINVAL);
	check_int(tw_engine_fd(NULL), -EINVAL);
	check_int(tw_engine_poll_for(NULL, 0, 1), -EINVAL);
	check_int(tw_loop_enter(NULL), -EINVAL);
	check_int(tw_loop_exit(NULL), -EINVAL);
}

static int no_thread(void *context, void *(*body)(void *arg), void *arg)
{
	(void)context;
	(void)body;
	(void)arg;
	return EAGAIN;
}

Test(loop, options_of_a_thread_are_rejected)
{
	struct tw_options options = loop_options();
	struct tw_engine *engine;

	options.thread = no_thread;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options = loop_options();
	options.scheduling_policy = 0;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.flags = 0;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* Makes calls with its own handle. */
static void on_look_at_itself(struct tw_handle self, void *arg)
{
	check_int(tw_timeout_state(self), TW_STATE_EXPIRED);
	check_int(tw_cancel(self), TW_CANCEL_RUNNING);
	check_int(tw_reschedule(self, 0), TW_RESCHEDULE_RUNNING);
	on_count(self, arg);
}

Test(loop, an_owned_timeout_that_runs_has_expired)
{
	static const struct tw_kind kind = TW_KIND_OWNER_ONLY(on_look_at_itself, NULL);
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule(fixture.engine, TICK_NS, &kind, &runs, NULL), 0);
	check_int(tw_engine_poll_at(fixture.engine, fixture.now_ns + 3 * TICK_NS, 0), 1);
	check_int(atomic_load(&runs), 1);
	fixture_close(&fixture);
}
