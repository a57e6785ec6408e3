/* SPDX-License-Identifier: MIT */
/*
 * Reschedules by the owner of a loop, in virtual time, with both wheels, of owner-only and of
 * shared timeouts.
 *
 * The timeout must go directly into the wheel. The tests check this with tw_engine_next_due, which
 * returns 0 if a timeout waits in a queue.
 *
 * Seen to fail with these defects:
 * - a timeout with an earlier deadline is not moved in the wheel, or is moved in the wheel of
 *   another engine;
 * - a fresh timeout is taken out of a slot, although it is not in the wheel;
 * - the descriptor is not set to the nearer time;
 * - the bit RESCHEDULED is not set;
 * - an owner's second engine is not found, or is found only by tw_reschedule_at and not by
 *   tw_reschedule.
 */
#include "loop_scene.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

/* A timeout moves between these deadlines, while it is fresh or in the wheel. */
static const int64_t deadlines_ns[] = {
	5 * TICK_NS,   5 * TICK_NS + 1, 6 * TICK_NS - 1,  6 * TICK_NS,  70 * TICK_NS,
	600 * TICK_NS, 5000 * TICK_NS,  INT64_C(1) << 50, TW_NEVER - 1, TW_NEVER,
};

enum { DEADLINES = sizeof(deadlines_ns) / sizeof(deadlines_ns[0]) };

static void move_once(struct scene *scene, int64_t from_ns, int64_t to_ns, bool in_the_wheel)
{
	scene_schedule(scene, from_ns);
	if (in_the_wheel)
		check_int(scene_poll(scene, TICK_NS), 0);
	check_int(tw_reschedule_at(scene->handle, to_ns), TW_RESCHEDULE_DONE);
	check_int(deadline_of(scene->handle), to_ns);
	/* No timeout may wait in a queue, and the time of the next poll must not be too late. */
	check_true(tw_engine_next_due(scene->fixture.engine) != 0);
	if (to_ns <= INT64_C(1) << 50)
		check_at_most(tw_engine_next_due(scene->fixture.engine), boundary_ns(to_ns));
	check_int(tw_engine_pending(scene->fixture.engine), 1);
}

Test(loop_reschedule, from_each_to_each)
{
	for (int pair = 0; pair < DEADLINES * DEADLINES * 2;
	     pair += case_stride(DEADLINES * DEADLINES * 2)) {
		int64_t to_ns = deadlines_ns[pair / 2 % DEADLINES];

		ON_EACH_VARIANT(scene)
		{
			move_once(&scene, deadlines_ns[pair / 2 / DEADLINES], to_ns, pair % 2 != 0);
			if (to_ns <= INT64_C(1) << 50)
				check_runs_at(&scene, to_ns);
			else
				check_int(scene_poll(&scene, INT64_C(1) << 51), 0);
		}
	}
}

/*
 * Reschedules one timeout often, by a delay. No slot entry or push for an earlier deadline may
 * remain.
 */
Test(loop_reschedule, many_reschedules_leave_one_run)
{
	ON_EACH_VARIANT(scene)
	{
		int64_t now_ns = 0;
		int64_t delay_ns = TICK_NS;

		scene_schedule(&scene, TW_NEVER);
		for (int i = 0; i < 200; i++) {
			now_ns += TICK_NS / 2;
			check_int(scene_poll(&scene, now_ns), 0);
			delay_ns = (2 + i * 37 % 100) * TICK_NS;
			check_int(tw_reschedule(scene.handle, delay_ns), TW_RESCHEDULE_DONE);
			check_int(deadline_of(scene.handle), now_ns + delay_ns);
		}
		check_runs_at(&scene, now_ns + delay_ns);
	}
}

/* Moves and cancels more timeouts than can be fresh at once. */
Test(loop_reschedule, many_fresh_timeouts_can_be_moved_and_cancelled)
{
	enum { MANY = 40 };

	ON_EACH_VARIANT(scene)
	{
		struct tw_handle handle[MANY];

		for (int i = 0; i < MANY; i++)
			handle[i] = scene_schedule(&scene, (100 + i) * TICK_NS);
		for (int i = 0; i < MANY; i += 2)
			check_int(tw_reschedule_at(handle[i], i * TICK_NS), TW_RESCHEDULE_DONE);
		for (int i = 0; i < MANY; i += 4)
			check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
		check_int(tw_engine_next_due(scene.fixture.engine), 3 * TICK_NS);
		check_int(scene_poll(&scene, 50 * TICK_NS), MANY / 4);
		check_int(scene_poll(&scene, 200 * TICK_NS), MANY / 2);
	}
}

/* If the new deadline has passed, the timeout must be due at once, and run once. */
Test(loop_reschedule, reschedule_to_the_past_is_due_at_once)
{
	static const int64_t past_ns[] = {INT64_MIN + 1, -1, 0, 8 * TICK_NS, 9 * TICK_NS - 1};

	for (size_t i = 0; i < 2 * sizeof(past_ns) / sizeof(past_ns[0]); i++) {
		ON_EACH_VARIANT(scene)
		{
			check_int(scene_poll(&scene, 9 * TICK_NS), 0);
			scene_schedule(&scene, 30 * TICK_NS);
			if (i % 2 != 0)
				check_int(scene_poll(&scene, 9 * TICK_NS), 0);
			check_int(tw_reschedule_at(scene.handle, past_ns[i / 2]),
				  TW_RESCHEDULE_DONE);
			check_int(tw_engine_next_due(scene.fixture.engine), 0);
			/* An overdue timeout that moves again must leave the list of overdue
			 * timeouts. */
			check_int(tw_reschedule_at(scene.handle, 0), TW_RESCHEDULE_DONE);
			check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
			check_int(scene.runs, 1);
			check_int(tw_engine_next_due(scene.fixture.engine), TW_NEVER);
		}
	}
}

/*
 * A budget leaves due timeouts for the next poll. If such a timeout is rescheduled to a later time,
 * it must wait for that time. Otherwise it stays due.
 */
Test(loop_reschedule, timeouts_left_by_a_budget_can_be_rescheduled)
{
	ON_EACH_VARIANT(scene)
	{
		struct tw_handle handle[4];

		for (int i = 0; i < 4; i++)
			handle[i] = scene_schedule(&scene, 5 * TICK_NS + i);
		check_int(tw_clock_set(scene.fixture.clock, 9 * TICK_NS), 0);
		check_int(tw_engine_poll(scene.fixture.engine, 1), 1);
		check_int(tw_reschedule_at(handle[3], 30 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule_at(handle[2], 0), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule_at(handle[1], TW_NEVER), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule_at(handle[1], 2 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 2);
		check_int(scene_poll(&scene, 30 * TICK_NS - 1), 0);
		check_int(scene_poll(&scene, 30 * TICK_NS), 1);
	}
}

Test(loop_reschedule, reschedule_of_a_cancelled_timeout_touches_no_other)
{
	ON_EACH_VARIANT(scene)
	{
		struct tw_handle first = scene_schedule(&scene, 5 * TICK_NS);

		check_int(tw_reschedule(first, INT64_MIN), -ERANGE);
		check_int(tw_reschedule_at(first, INT64_MIN), -ERANGE);
		check_int(tw_cancel(first), TW_CANCEL_DONE);
		check_int(tw_reschedule(first, TW_NEVER), TW_RESCHEDULE_CANCELLED);
		check_int(tw_reschedule_at(first, 0), TW_RESCHEDULE_CANCELLED);
		/*
		 * The second timeout gets the block of the first. Calls with the first handle must
		 * not affect it.
		 */
		scene_schedule(&scene, 5 * TICK_NS);
		check_true(scene.handle.node == first.node);
		check_int(tw_reschedule(first, TW_NEVER), -ESTALE);
		check_int(tw_reschedule_at(first, 0), -ESTALE);
		check_runs_at(&scene, 5 * TICK_NS);
	}
}

/* A reschedule that another thread makes. */
struct call {
	struct tw_handle handle;
	int64_t deadline_ns;
	int result;
};

static void *call_reschedule(void *arg)
{
	struct call *call = arg;

	call->result = tw_reschedule_at(call->handle, call->deadline_ns);
	return NULL;
}

static void *call_reschedule_by(void *arg)
{
	struct call *call = arg;

	call->result = tw_reschedule(call->handle, call->deadline_ns);
	return NULL;
}

static void *call_cancel(void *arg)
{
	struct call *call = arg;

	call->result = tw_cancel(call->handle);
	return NULL;
}

static int elsewhere(void *(*body)(void *), struct tw_handle handle, int64_t deadline_ns)
{
	struct call call = {.handle = handle, .deadline_ns = deadline_ns, .result = -1};
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, body, &call), 0);
	check_int(pthread_join(thread, NULL), 0);
	return call.result;
}

static int64_t nth_ns(int step, int salt)
{
	return (10 + (step * 7 + salt * 13) % 30) * TICK_NS;
}

/* The owner and another thread reschedule in turn, with and without a poll between them. */
Test(loop_reschedule, by_turns_with_another_thread)
{
	ON_EACH_VARIANT(scene)
	{
		bool owned = scene.kind == &owned_kind;
		int64_t deadline_ns = TW_NEVER;

		scene_schedule(&scene, TW_NEVER);
		for (int step = 0; step < 60; step++) {
			if (step % 5 == 0)
				check_int(scene_poll(&scene, step * TICK_NS / 10), 0);
			deadline_ns = nth_ns(step, variant);
			check_int(tw_reschedule_at(scene.handle, deadline_ns), TW_RESCHEDULE_DONE);
			if (step % 3 == 0)
				continue;
			check_int(elsewhere(call_reschedule, scene.handle, nth_ns(step, 1)),
				  owned ? -EPERM : TW_RESCHEDULE_DONE);
			check_int(elsewhere(call_reschedule_by, scene.handle, TW_NEVER),
				  owned ? -EPERM : TW_RESCHEDULE_DONE);
			if (owned)
				continue;
			deadline_ns = nth_ns(step, 2);
			check_int(elsewhere(call_reschedule, scene.handle, deadline_ns),
				  TW_RESCHEDULE_DONE);
		}
		check_int(scene_poll(&scene, 9 * TICK_NS), 0);
		check_runs_at(&scene, deadline_ns);
	}
}

/*
 * The owner reschedules a timeout, and another thread cancels it. In some rounds that thread
 * reschedules it first.
 */
Test(loop_reschedule, cancelled_by_another_thread)
{
	ON_EACH_VARIANT(scene)
	{
		bool owned = scene.kind == &owned_kind;

		for (int i = 0; i < 20; i++) {
			scene_schedule(&scene, 500 * TICK_NS);
			if (i % 2 != 0)
				check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
			if (i % 4 >= 2 && !owned)
				check_int(elsewhere(call_reschedule, scene.handle, 50 * TICK_NS),
					  TW_RESCHEDULE_DONE);
			check_int(tw_reschedule_at(scene.handle, 5 * TICK_NS), TW_RESCHEDULE_DONE);
			check_int(elsewhere(call_cancel, scene.handle, 0),
				  owned ? -EPERM : TW_CANCEL_DONE);
			check_int(tw_reschedule_at(scene.handle, 4 * TICK_NS),
				  owned ? TW_RESCHEDULE_DONE : TW_RESCHEDULE_CANCELLED);
			check_int(tw_cancel(scene.handle),
				  owned ? TW_CANCEL_DONE : TW_CANCEL_CANCELLED);
			check_int(tw_engine_pending(scene.fixture.engine), 0);
		}
		check_int(scene_poll(&scene, 600 * TICK_NS), 0);
	}
}

Test(loop_reschedule, owner_reschedules_in_the_right_one_of_two_engines)
{
	ON_EACH_VARIANT(scene)
	{
		struct scene other;

		scene_open(&other, variant);
		scene_schedule(&scene, 100 * TICK_NS);
		scene_schedule(&other, 100 * TICK_NS);
		/*
		 * The timeouts must be in the wheels, because only there a move in the wrong wheel
		 * is noticed.
		 */
		check_int(scene_poll(&other, 0), 0);
		check_int(scene_poll(&scene, 0), 0);
		/* Reschedules to earlier and to later times, by a time and by a delay, in both
		 * engines in turn. */
		for (int64_t i = 90; i > 40; i--) {
			check_int(tw_reschedule_at(scene.handle, i * TICK_NS), TW_RESCHEDULE_DONE);
			check_int(tw_reschedule(other.handle, i * TICK_NS), TW_RESCHEDULE_DONE);
			check_int(tw_reschedule(scene.handle, TW_NEVER), TW_RESCHEDULE_DONE);
			check_int(tw_reschedule_at(other.handle, 95 * TICK_NS), TW_RESCHEDULE_DONE);
		}
		check_int(tw_reschedule(scene.handle, 3 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule(other.handle, 2 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(scene_poll(&other, TICK_NS), 0);
		check_int(scene_poll(&scene, TICK_NS), 0);
		check_runs_at(&other, 2 * TICK_NS);
		fixture_close(&other.fixture);
		check_runs_at(&scene, 3 * TICK_NS);
	}
}

/* A thread that has left the loop is no longer its owner, even if it owns another engine. */
Test(loop_reschedule, reschedule_after_leaving_is_rejected)
{
	for (int variant = 0; variant < VARIANTS; variant++) {
		struct scene scene, other;

		scene_open(&scene, variant | OWNED);
		scene_open(&other, variant);
		scene_schedule(&scene, 5 * TICK_NS);
		check_int(tw_loop_exit(scene.fixture.engine), 0);
		scene_schedule(&other, 5 * TICK_NS);
		check_int(tw_reschedule(scene.handle, 0), -EPERM);
		check_int(tw_reschedule_at(scene.handle, TW_NEVER), -EPERM);
		check_int(deadline_of(scene.handle), 5 * TICK_NS);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(tw_reschedule(scene.handle, 2 * TICK_NS), -EPERM);
		check_int(tw_loop_enter(scene.fixture.engine), 0);
		check_int(tw_reschedule(scene.handle, 2 * TICK_NS), TW_RESCHEDULE_DONE);
		check_runs_at(&scene, 2 * TICK_NS);
		fixture_close(&other.fixture);
		fixture_close(&scene.fixture);
	}
}

static bool readable(struct tw_engine *engine)
{
	struct pollfd fd = {.fd = tw_engine_fd(engine), .events = POLLIN};

	check_true(fd.fd >= 0);
	return poll(&fd, 1, 0) == 1;
}

/*
 * The kernel's timer cannot follow virtual time. So when the timeout is due, the descriptor must be
 * readable at once.
 */
Test(loop_reschedule, the_descriptor_comes_nearer)
{
	ON_EACH_VARIANT(scene)
	{
		check_int(scene_poll(&scene, 9 * TICK_NS), 0);
		check_int(readable(scene.fixture.engine), false);
		scene_schedule(&scene, 3600 * NS_PER_S);
		if ((variant & HIERARCHICAL) != 0)
			check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(readable(scene.fixture.engine), false);
		check_int(tw_reschedule_at(scene.handle, 20 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(readable(scene.fixture.engine), false);
		check_int(tw_clock_set(scene.fixture.clock, 21 * TICK_NS), 0);
		check_int(readable(scene.fixture.engine), true);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
		scene_schedule(&scene, 3600 * NS_PER_S);
		check_int(readable(scene.fixture.engine), false);
		check_int(tw_reschedule_at(scene.handle, 0), TW_RESCHEDULE_DONE);
		check_int(readable(scene.fixture.engine), true);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
		check_int(readable(scene.fixture.engine), false);
	}
}

/* In real time: the kernel's timer must be set to the new deadline. */
Test(loop_reschedule, the_descriptor_in_real_time)
{
	for (int variant = 0; variant < VARIANTS; variant++) {
		struct tw_options options = fixture_options();
		struct scene scene = {.kind = (variant & OWNED) != 0 ? &owned_kind : &shared_kind};
		struct pollfd fd = {.events = POLLIN};

		options.flags = TW_ENGINE_LOOP;
		options.wheel =
			(variant & HIERARCHICAL) != 0 ? TW_WHEEL_HIERARCHICAL : TW_WHEEL_HASHED;
		scene.fixture.engine = real_engine_open(&options);
		fd.fd = tw_engine_fd(scene.fixture.engine);
		scene_schedule(&scene, TW_NEVER);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(tw_reschedule(scene.handle, 10 * TICK_NS), TW_RESCHEDULE_DONE);
		while (scene.runs == 0) {
			check_int(poll(&fd, 1, 60000), 1);
			check_at_most(tw_engine_poll(scene.fixture.engine, 0), 1);
		}
		real_engine_close(scene.fixture.engine);
	}
}

/* Stop must hand the timeout back with the time that is left until its last deadline. */
Test(loop_reschedule, hand_back_has_the_time_left_until_the_last_deadline)
{
	ON_EACH_VARIANT(scene)
	{
		scene_schedule(&scene, 100 * TICK_NS);
		if ((variant & HIERARCHICAL) != 0)
			check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(tw_reschedule_at(scene.handle, 7 * TICK_NS), TW_RESCHEDULE_DONE);
		fixture_stop(&scene.fixture);
		check_int(scene.fixture.back.count, 1);
		check_int(scene.fixture.back.remaining_ns, 7 * TICK_NS);
		check_int(tw_reschedule(scene.handle, 0), TW_RESCHEDULE_CANCELLED);
	}
}

/*
 * If the new deadline is later, the worker finds the timeout at the old time and files it again. If
 * it is earlier, the timeout must be filed again at once.
 */
Test(loop_reschedule, a_later_deadline_waits_for_the_old_time_and_an_earlier_one_does_not)
{
	ON_EACH_VARIANT(scene)
	{
		struct tw_engine *engine = scene.fixture.engine;

		check_int(tw_schedule(engine, 5 * TICK_NS, scene.kind, &scene.runs, &scene.handle),
			  0);
		check_int(tw_engine_poll(engine, 0), 0);
		check_int(tw_engine_next_due(engine), 6 * TICK_NS);
		check_int(tw_reschedule(scene.handle, 9 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_engine_next_due(engine), 6 * TICK_NS);
		/*
		 * The timeout's entry is not in the slot of its new deadline. The wheel's check
		 * must accept that.
		 */
		check_int(tw_engine_poll(engine, 0), 0);
		check_int(stats_of(engine).check_failures, 0);
		check_int(scene_poll(&scene, 6 * TICK_NS), 0);
		check_int(tw_engine_next_due(engine), 10 * TICK_NS);
		check_int(tw_reschedule(scene.handle, TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_engine_next_due(engine), 8 * TICK_NS);
		check_int(scene_poll(&scene, 8 * TICK_NS), 1);
		check_int(scene.runs, 1);
		check_int(tw_engine_next_due(engine), TW_NEVER);
	}
}

Test(loop_reschedule, a_timeout_runs_by_its_last_deadline)
{
	ON_EACH_VARIANT(scene)
	{
		struct tw_engine *engine = scene.fixture.engine;
		struct tw_handle later = scene_schedule(&scene, TICK_NS);
		struct tw_handle earlier = scene_schedule(&scene, 90 * TICK_NS);

		check_int(tw_reschedule_at(later, 9 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_engine_poll_at(engine, 3 * TICK_NS, 0), 0);
		check_int(tw_reschedule_at(earlier, 4 * TICK_NS), TW_RESCHEDULE_DONE);
		check_int(tw_engine_poll_at(engine, 6 * TICK_NS, 0), 1);
		check_int(tw_engine_poll_at(engine, 11 * TICK_NS, 0), 1);
		check_int(scene.runs, 2);
	}
}
