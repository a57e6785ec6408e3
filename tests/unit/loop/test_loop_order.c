/* SPDX-License-Identifier: MIT */
/*
 * Timeouts with equal deadlines in a loop must run in the order of their schedules. This file has
 * the cases that the random test (timeout/test_ordered_random.c) does not have: schedules inside
 * and outside of brackets, for the past, and by another thread.
 *
 * Seen to fail with these defects: at the beginning of a bracket or of a poll, the thread's pushes
 * stay in ingress; pushes are taken before the timeouts of the previous bracket; timeouts that a
 * callback has deferred are filed only in the next turn; pushes of another thread go through a
 * ring; periodic timeouts of the owner go through its lane.
 */
#include "fixture.h"

#include <pthread.h>

enum { MOST = 300 };

static struct {
	struct fixture fixture;
	int ran[MOST];
	int runs;
} scene;

static int number[MOST];

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	scene.ran[scene.runs++] = *(int *)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void loop_open_with(uint32_t transfer_batch)
{
	struct tw_options options = fixture_options();

	scene.runs = 0;
	for (int i = 0; i < MOST; i++)
		number[i] = i;
	options.flags = TW_ENGINE_LOOP;
	options.transfer_batch = transfer_batch;
	fixture_open(&scene.fixture, &options);
}

static void loop_open(void)
{
	loop_open_with(100000);
}

static struct tw_handle schedule_at(int which, int64_t deadline_ns)
{
	struct tw_handle handle;

	check_int(tw_schedule_at(scene.fixture.engine, deadline_ns, &kind, &number[which], &handle),
		  0);
	return handle;
}

/* Checks that the numbers have run in ascending order. */
static void check_ran(int count)
{
	check_int(scene.runs, count);
	for (int i = 1; i < count; i++)
		check_true(scene.ran[i] > scene.ran[i - 1]);
	fixture_close(&scene.fixture);
}

static int poll_at(int64_t now_ns)
{
	check_int(tw_clock_set(scene.fixture.clock, now_ns), 0);
	return (int)tw_engine_poll(scene.fixture.engine, 0);
}

/* Schedules inside and outside of brackets in turn, also if a poll transfers one timeout at a
 * time. */
static void by_turns(uint32_t transfer_batch, int64_t deadline_ns)
{
	int next = 0;

	loop_open_with(transfer_batch);
	while (next < 30) {
		(void)schedule_at(next++, deadline_ns);
		(void)schedule_at(next++, deadline_ns);
		check_int(tw_loop_exit(scene.fixture.engine), 0);
		(void)schedule_at(next++, deadline_ns);
		(void)schedule_at(next++, deadline_ns);
		if (next % 3 == 0)
			(void)tw_engine_next_due(scene.fixture.engine);
		(void)schedule_at(next++, deadline_ns);
		if (next % 10 == 0 && deadline_ns != 0)
			check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(tw_loop_enter(scene.fixture.engine), 0);
	}
	check_int(poll_at(5 * NS_PER_MS), 30);
	check_ran(30);
}

Test(loop_order, order_holds_in_brackets_and_outside)
{
	by_turns(100000, 0);
	by_turns(100000, 5 * NS_PER_MS);
	by_turns(1, 0);
	by_turns(1, 5 * NS_PER_MS);
}

/*
 * Schedules in a callback. The poll that runs the callback counts as a bracket. The callback's
 * timeouts must run after those that were pushed before the poll.
 */
static void on_push_first(struct tw_handle self, void *arg)
{
	on_expire(self, arg);
	for (int i = 20; i < 30; i++)
		(void)schedule_at(i, 5 * NS_PER_MS);
}

static const struct tw_kind push_first_kind = TW_KIND(on_push_first, NULL);

Test(loop_order, in_the_callbacks_of_a_poll_outside_of_brackets)
{
	loop_open_with(1);
	check_int(tw_loop_exit(scene.fixture.engine), 0);
	check_int(tw_schedule_at(scene.fixture.engine, 0, &push_first_kind, &number[0], NULL), 0);
	for (int i = 1; i < 20; i++)
		(void)schedule_at(i, 5 * NS_PER_MS);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
	check_int(poll_at(5 * NS_PER_MS), 29);
	check_ran(30);
}

static void on_first(struct tw_handle self, void *arg)
{
	on_expire(self, arg);
	(void)schedule_at(1, 0);
	(void)schedule_at(2, 0);
}

static const struct tw_kind first_kind = TW_KIND(on_first, NULL);

Test(loop_order, for_the_past_in_a_callback_and_after_the_poll)
{
	loop_open();
	check_int(tw_engine_start(scene.fixture.engine), 0);
	check_int(tw_schedule_at(scene.fixture.engine, 1, &first_kind, &number[0], NULL), 0);
	check_int(poll_at(5 * NS_PER_MS), 1);
	(void)schedule_at(3, 0);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 3);
	check_ran(4);
}

Test(loop_order, a_reschedule_to_the_same_deadline_runs_later)
{
	struct tw_handle first;

	loop_open();
	check_int(tw_engine_start(scene.fixture.engine), 0);
	first = schedule_at(2, 5 * NS_PER_MS);
	(void)schedule_at(0, 5 * NS_PER_MS);
	check_int(poll_at(NS_PER_MS), 0);
	(void)schedule_at(1, 5 * NS_PER_MS);
	check_int(tw_reschedule_at(first, 5 * NS_PER_MS), TW_RESCHEDULE_DONE);
	(void)schedule_at(3, 5 * NS_PER_MS);
	check_int(poll_at(5 * NS_PER_MS), 4);
	check_ran(4);
}

static void schedule_periodic(int which, int64_t first_ns)
{
	struct tw_period once = TW_PERIOD_RATE(NS_PER_S);

	once.first_ns = first_ns;
	once.runs = 1;
	check_int(tw_schedule_periodic(scene.fixture.engine, &once, &kind, &number[which], NULL),
		  0);
}

static void on_mixed(struct tw_handle self, void *arg)
{
	on_expire(self, arg);
	for (int i = 20; i < 30; i += 2) {
		schedule_periodic(i, 4 * NS_PER_MS);
		(void)schedule_at(i + 1, 5 * NS_PER_MS);
	}
}

static const struct tw_kind mixed_kind = TW_KIND(on_mixed, NULL);

Test(loop_order, of_first_runs_of_periodic_timeouts)
{
	loop_open();
	check_int(tw_engine_start(scene.fixture.engine), 0);
	check_int(tw_schedule_at(scene.fixture.engine, NS_PER_MS, &mixed_kind, &number[0], NULL),
		  0);
	for (int i = 1; i < 19; i += 2) {
		schedule_periodic(i, 5 * NS_PER_MS);
		(void)schedule_at(i + 1, 5 * NS_PER_MS);
	}
	check_int(poll_at(NS_PER_MS), 1);
	check_int(poll_at(5 * NS_PER_MS), 28);
	check_ran(29);
}

/*
 * Schedules and cancels on another thread. The block of each cancelled timeout is used again, by
 * the second timeout after it.
 */
static void *other_main(void *arg)
{
	(void)arg;
	for (int i = 0; i < MOST; i += 2) {
		struct tw_handle cancelled = schedule_at(i, NS_PER_S);

		(void)schedule_at(i, 5 * NS_PER_MS);
		check_int(tw_cancel(cancelled), TW_CANCEL_DONE);
		(void)schedule_at(i + 1, 5 * NS_PER_MS);
	}
	return NULL;
}

Test(loop_order, pushes_of_another_thread_keep_their_order)
{
	pthread_t other;

	loop_open();
	check_int(tw_engine_start(scene.fixture.engine), 0);
	check_int(pthread_create(&other, NULL, other_main, NULL), 0);
	check_int(pthread_join(other, NULL), 0);
	check_int(poll_at(5 * NS_PER_MS), MOST);
	check_ran(MOST);
}
