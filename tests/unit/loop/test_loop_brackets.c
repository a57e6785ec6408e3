/* SPDX-License-Identifier: MIT */
/*
 * Brackets of a loop: the time from tw_loop_enter to tw_loop_exit, or a poll. test_loop.c has the
 * simple cases. This file has threads that end inside a bracket, loops inside loops, and polls with
 * a time limit.
 *
 * Seen to fail with these defects: the bracket of an ended thread stays open; an ending thread
 * tries to close its bracket for ever; after tw_loop_exit the thread still uses the wheel of the
 * engine that it has left; after tw_loop_exit the thread forgets the outer engine, although its
 * bracket is still open; a poll reads the time only once; a budget of callbacks has no effect if
 * there is a time limit.
 */
#include "fixture.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind shared = TW_KIND(on_count, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_count, NULL);

static void loop_open(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(fixture, &options);
	check_int(tw_loop_exit(fixture->engine), 0);
}

static void thread_run(void *(*body)(void *), void *arg)
{
	struct timespec until;
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, body, arg), 0);
	check_int(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += PATIENCE_NS / NS_PER_S;
	check_int(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static void *enter_body(void *arg)
{
	atomic_int runs = 0;

	check_int(tw_loop_enter(arg), 0);
	must_schedule(arg, NS_PER_S, &owned, &runs);
	return NULL;
}

static void *look_body(void *arg)
{
	struct tw_handle handle;

	check_int(tw_schedule(arg, NS_PER_S, &owned, NULL, &handle), -EPERM);
	check_int(tw_loop_exit(arg), -EPERM);
	return NULL;
}

/* A new thread often has the address of an ended one. It must not count as the owner. */
Test(loop_brackets, an_ended_thread_is_in_no_bracket)
{
	struct fixture fixture;

	loop_open(&fixture);
	for (int i = 0; i < 20; i++) {
		thread_run(enter_body, fixture.engine);
		check_int(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
		thread_run(look_body, fixture.engine);
	}
	check_int(tw_engine_pending(fixture.engine), 20);
	fixture_close(&fixture);
	check_int(fixture.back.count, 20);
}

/* The thread closes several brackets in another order than it opened them. After it has closed a
 * bracket, it makes calls on that engine as a producer. */
Test(loop_brackets, brackets_may_close_in_another_order)
{
	enum { ENGINES = 3 };
	struct fixture fixture[ENGINES];
	struct tw_handle handle[ENGINES];
	atomic_int runs = 0;

	for (int i = 0; i < ENGINES; i++)
		loop_open(&fixture[i]);
	for (int first = 0; first < ENGINES; first++) {
		for (int i = 0; i < ENGINES; i++) {
			check_int(tw_loop_enter(fixture[i].engine), 0);
			handle[i] = must_schedule(fixture[i].engine, NS_PER_S, &owned, &runs);
		}
		for (int i = 0; i < ENGINES; i++) {
			int which = (first + i) % ENGINES;

			check_int(tw_loop_exit(fixture[which].engine), 0);
			check_int(tw_cancel(handle[which]), -EPERM);
			for (int j = i + 1; j < ENGINES; j++)
				check_int(tw_reschedule(handle[(first + j) % ENGINES], 1),
					  TW_RESCHEDULE_DONE);
			check_int(
				tw_cancel(must_schedule(fixture[which].engine, 1, &shared, &runs)),
				TW_CANCEL_DONE);
		}
	}
	for (int i = 0; i < ENGINES; i++)
		fixture_close(&fixture[i]);
}

/*
 * Two loops. A callback of the outer loop polls the inner one. Afterwards the callback must use the
 * outer wheel again.
 */
static struct {
	struct fixture outer, inner;
	int ran[8];
	int runs;
	bool touches_outer;
} nest;

static int number[8] = {0, 1, 2, 3, 4, 5, 6, 7};

static void on_number(struct tw_handle self, void *arg)
{
	(void)self;
	nest.ran[nest.runs++] = *(int *)arg;
}

static const struct tw_kind number_kind = TW_KIND(on_number, NULL);

static const struct tw_kind owned_number_kind = TW_KIND_OWNER_ONLY(on_number, NULL);

static void outer_schedule_as(const struct tw_kind *kind, int which)
{
	check_int(tw_schedule_at(nest.outer.engine, 9 * NS_PER_MS, kind, &number[which], NULL), 0);
}

static void outer_schedule(int which)
{
	outer_schedule_as(&number_kind, which);
}

static void on_inner(struct tw_handle self, void *arg)
{
	on_number(self, arg);
	check_int(tw_engine_poll(nest.outer.engine, 0), -EDEADLK);
	check_int(tw_loop_exit(nest.outer.engine), -EDEADLK);
	check_int(tw_loop_enter(nest.outer.engine), -EBUSY);
	/* If the library remembers only the wheel that the thread used last, this call makes it the
	 * outer wheel. */
	if (nest.touches_outer)
		outer_schedule(3);
}

static void on_outer(struct tw_handle self, void *arg)
{
	static const struct tw_kind inner_kind = TW_KIND(on_inner, NULL);

	on_number(self, arg);
	outer_schedule(2);
	check_int(tw_schedule_at(nest.inner.engine, 0, &inner_kind, &number[1], NULL), 0);
	check_int(tw_engine_poll(nest.inner.engine, 0), 1);
	outer_schedule(4);
	/* If the previous timeout went through a producer's queue, this owner-only timeout would
	 * run before that one. */
	outer_schedule_as(&owned_number_kind, 5);
}

static void nested(bool inside, bool touches_outer)
{
	static const struct tw_kind outer_kind = TW_KIND(on_outer, NULL);

	nest.runs = 0;
	nest.touches_outer = touches_outer;
	loop_open(&nest.outer);
	loop_open(&nest.inner);
	/* This call makes the thread's lane, so that a later push would use the fast path. */
	check_int(tw_schedule(nest.outer.engine, TW_NEVER, &number_kind, &number[6], NULL), 0);
	check_int(tw_loop_enter(nest.outer.engine), 0);
	if (inside)
		check_int(tw_loop_enter(nest.inner.engine), 0);
	check_int(tw_schedule_at(nest.outer.engine, 0, &outer_kind, &number[0], NULL), 0);
	check_int(tw_engine_poll(nest.outer.engine, 0), 1);
	check_int(tw_clock_set(nest.outer.clock, 9 * NS_PER_MS), 0);
	check_int(tw_engine_poll(nest.outer.engine, 0), 3 + touches_outer);
	check_int(nest.runs, 5 + touches_outer);
	for (int i = 1; i < nest.runs; i++)
		check_true(nest.ran[i] > nest.ran[i - 1]);
	fixture_close(&nest.inner);
	fixture_close(&nest.outer);
}

Test(loop_brackets, a_loop_inside_of_another)
{
	for (int ways = 0; ways < 4; ways++)
		nested(ways % 2 != 0, ways / 2 != 0);
}

/* Moves the clock by a millisecond in each run. */
static void on_slow(struct tw_handle self, void *arg)
{
	struct fixture *fixture = arg;

	(void)self;
	fixture->now_ns += NS_PER_MS;
	check_int(tw_clock_set(fixture->clock, fixture->now_ns), 0);
}

static const struct tw_kind slow = TW_KIND(on_slow, NULL);

static void slow_schedule(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++)
		must_schedule_at(fixture->engine, 0, &slow, fixture);
}

Test(loop_brackets, a_budget_in_time_ends_the_poll)
{
	struct fixture fixture;

	loop_open(&fixture);
	slow_schedule(&fixture, 500);
	check_int(tw_engine_poll_for(fixture.engine, 0, 0), 1);
	check_int(tw_engine_poll_for(fixture.engine, 0, 1), 1);
	check_int(tw_engine_poll_for(fixture.engine, 0, NS_PER_MS), 1);
	check_int(tw_engine_poll_for(fixture.engine, 0, 10 * NS_PER_MS), 10);
	check_int(tw_engine_poll_for(fixture.engine, 0, 10 * NS_PER_MS + 1), 11);
	check_int(tw_engine_poll_for(fixture.engine, 5, 10 * NS_PER_MS), 5);
	check_int(tw_engine_poll_for(fixture.engine, 7, TW_NEVER), 7);
	/* The timeouts that the poll left are due at once. */
	check_int(tw_engine_next_due(fixture.engine), 0);
	check_int(tw_engine_poll_for(fixture.engine, UINT64_MAX, 300 * NS_PER_MS), 300);
	check_int(tw_engine_poll_for(fixture.engine, 0, TW_NEVER), 164);
	check_int(tw_engine_poll_for(fixture.engine, 0, 0), 0);
	check_int(tw_engine_poll_for(fixture.engine, 0, -1), -EINVAL);
	/* The limit of the previous poll must not apply to the next one. */
	slow_schedule(&fixture, 20);
	check_int(tw_engine_poll(fixture.engine, 0), 20);
	fixture_close(&fixture);
}

Test(loop_brackets, a_budget_in_time_counts_periodic_runs)
{
	static const struct tw_period each = TW_PERIOD_RATE(NS_PER_S);
	struct fixture fixture;

	loop_open(&fixture);
	for (int i = 0; i < 30; i++)
		check_int(tw_schedule_periodic(fixture.engine, &each, &slow, &fixture, NULL), 0);
	fixture.now_ns = NS_PER_S;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	check_int(tw_engine_poll_for(fixture.engine, 0, 5 * NS_PER_MS), 5);
	check_int(tw_engine_poll_for(fixture.engine, 3, 5 * NS_PER_MS), 3);
	check_int(tw_engine_poll_for(fixture.engine, 50, 50 * NS_PER_MS), 22);
	fixture_close(&fixture);
}
