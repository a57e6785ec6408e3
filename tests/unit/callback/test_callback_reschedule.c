/* SPDX-License-Identifier: MIT */
/*
 * Reschedules inside callbacks, which change the wheel directly. They are made in a loop, with both
 * wheels, for owner-only and for shared timeouts, and also on a worker thread. The time is virtual.
 *
 * Seen to fail with these defects: a timeout of the present batch is put into a slot; a past
 * deadline is not deferred to the next turn, so that the poll does not end (planted in each of the
 * two code paths); a deferred timeout is not pushed, or not marked as queued.
 */
#include "loop_scene.h"

/* A timeout whose callback reschedules another timeout, its peer. */
struct mover {
	struct scene *scene;
	struct tw_handle self;
	struct tw_handle peer;
	int64_t to_ns;
	int64_t then_ns;
	int outcome[2];
	int self_outcome;
	int cancelled;
	bool cancel;
};

static void on_move(struct tw_handle self, void *arg)
{
	struct mover *mover = arg;

	mover->self = self;
	mover->self_outcome = tw_reschedule(self, 0);
	mover->outcome[0] = tw_reschedule_at(mover->peer, mover->to_ns);
	mover->outcome[1] = tw_reschedule_at(mover->peer, mover->then_ns);
	if (mover->cancel)
		mover->cancelled = tw_cancel(mover->peer);
}

static const struct tw_kind move_kind = TW_KIND(on_move, NULL);

/* The deadlines to which a callback that runs at NOW_NS moves its peer. */
#define NOW_NS (20 * TICK_NS)

static const int64_t moves_ns[] = {
	0, 3 * TICK_NS, NOW_NS - 1, NOW_NS, NOW_NS + TICK_NS, 300 * TICK_NS, TW_NEVER,
};

enum { MOVES = sizeof(moves_ns) / sizeof(moves_ns[0]) };

/*
 * Checks a peer that is in the present batch. A reschedule counts as a new schedule, so the peer
 * does not run in this turn. Its last deadline decides whether it runs in the next turn or later.
 */
static void check_batch_peer(struct scene *scene, int move, bool cancel)
{
	struct mover mover = {
		.scene = scene,
		.to_ns = moves_ns[move % MOVES],
		.then_ns = moves_ns[move / MOVES],
		.cancel = cancel,
	};
	bool runs = mover.then_ns <= NOW_NS && !cancel;

	check_int(scene_poll(scene, NOW_NS), 0);
	/*
	 * Overdue timeouts run in the order in which they were scheduled, so the mover runs first.
	 */
	check_int(tw_schedule_at(scene->fixture.engine, 5 * TICK_NS, &move_kind, &mover, NULL), 0);
	mover.peer = scene_schedule(scene, 5 * TICK_NS);
	check_int(tw_engine_poll(scene->fixture.engine, 0), 1);
	check_int(tw_engine_poll(scene->fixture.engine, 0), runs);
	check_int(mover.outcome[0], TW_RESCHEDULE_DONE);
	check_int(mover.outcome[1], TW_RESCHEDULE_DONE);
	check_int(mover.self_outcome, TW_RESCHEDULE_RUNNING);
	check_int(scene->runs, runs);
	if (cancel)
		check_int(mover.cancelled, TW_CANCEL_DONE);
	else if (!runs && mover.then_ns != TW_NEVER)
		check_runs_at(scene, mover.then_ns);
	check_int(tw_engine_poll(scene->fixture.engine, 0), 0);
}

Test(loop_reschedule, peer_in_the_same_batch_may_be_rescheduled)
{
	for (int move = 0; move < MOVES * MOVES * 2; move += case_stride(MOVES * MOVES * 2)) {
		ON_EACH_VARIANT(scene)
		{
			check_batch_peer(&scene, move / 2, move % 2 != 0);
		}
	}
}

/*
 * Checks a peer that is in the wheel. Even if its new deadline has passed, it must wait for the
 * next poll, because it was not due in this one.
 */
static void check_wheel_peer(struct scene *scene, int move, bool cancel)
{
	struct mover mover = {
		.scene = scene,
		.to_ns = moves_ns[move % MOVES],
		.then_ns = moves_ns[move / MOVES],
		.cancel = cancel,
	};

	check_int(tw_schedule_at(scene->fixture.engine, 5 * TICK_NS, &move_kind, &mover, NULL), 0);
	mover.peer = scene_schedule(scene, 400 * TICK_NS);
	check_int(scene_poll(scene, NOW_NS), 1);
	check_int(mover.outcome[0], TW_RESCHEDULE_DONE);
	check_int(mover.outcome[1], TW_RESCHEDULE_DONE);
	check_int(scene->runs, 0);
	if (cancel)
		check_int(mover.cancelled, TW_CANCEL_DONE);
	check_int(tw_engine_poll(scene->fixture.engine, 0), mover.then_ns <= NOW_NS && !cancel);
	if (!cancel && mover.then_ns > NOW_NS && mover.then_ns != TW_NEVER)
		check_runs_at(scene, mover.then_ns);
	check_int(tw_engine_poll(scene->fixture.engine, 0), 0);
}

Test(loop_reschedule, a_peer_in_the_wheel)
{
	for (int move = 0; move < MOVES * MOVES * 2; move += case_stride(MOVES * MOVES * 2)) {
		ON_EACH_VARIANT(scene)
		{
			check_wheel_peer(&scene, move / 2, move % 2 != 0);
		}
	}
}

static void on_again(struct tw_handle self, void *arg)
{
	struct tw_timeout about = {.size = sizeof(about)};
	struct tw_handle next;

	atomic_fetch_add((atomic_int *)arg, 1);
	check_int(tw_timeout_get(self, &about), 0);
	check_int(tw_schedule(about.engine, 3600 * NS_PER_S, about.kind, arg, &next), 0);
	check_int(tw_reschedule_at(next, 0), TW_RESCHEDULE_DONE);
}

/* A callback may schedule a timeout that is due at once, again and again. That must not prolong
 * the turn. */
Test(loop_reschedule, the_past_waits_for_the_next_poll)
{
	static const struct tw_kind again[] = {TW_KIND(on_again, NULL),
					       TW_KIND_OWNER_ONLY(on_again, NULL)};

	ON_EACH_VARIANT(scene)
	{
		check_int(scene_poll(&scene, 9 * TICK_NS), 0);
		check_int(tw_schedule_at(scene.fixture.engine, 0, &again[variant & OWNED],
					 &scene.runs, NULL),
			  0);
		for (int i = 1; i <= 10; i++) {
			/*
			 * The budget of 100 callbacks ends the poll even if the library has the
			 * defect.
			 */
			check_int(tw_engine_poll(scene.fixture.engine, 100), 1);
			check_int(scene.runs, i);
			check_int(tw_engine_next_due(scene.fixture.engine), 0);
		}
	}
}

/*
 * In this test, callbacks on a worker thread reschedule their peers. There, too, the reschedule
 * changes the wheel directly.
 */
Test(loop_reschedule, callbacks_on_a_worker)
{
	for (int move = 0; move < MOVES * 4; move++) {
		struct tw_options options = fixture_options();
		struct scene scene = {.kind = &shared_kind};
		struct mover mover = {.to_ns = moves_ns[move / 4], .then_ns = moves_ns[move / 4]};

		options.wheel = move % 2 != 0 ? TW_WHEEL_HIERARCHICAL : TW_WHEEL_HASHED;
		mover.cancel = move % 4 >= 2;
		fixture_open(&scene.fixture, &options);
		mover.peer = scene_schedule(&scene, 400 * TICK_NS);
		check_int(
			tw_schedule_at(scene.fixture.engine, 5 * TICK_NS, &move_kind, &mover, NULL),
			0);
		fixture_flush(&scene.fixture);
		fixture_advance_to(&scene.fixture, NOW_NS);
		check_int(mover.outcome[0], TW_RESCHEDULE_DONE);
		check_int(mover.outcome[1], TW_RESCHEDULE_DONE);
		if (mover.to_ns >= NOW_NS && mover.to_ns != TW_NEVER) {
			fixture_advance_to(&scene.fixture, boundary_ns(mover.to_ns) - 1);
			check_int(scene.runs, 0);
			fixture_advance(&scene.fixture, 1);
		}
		/* If its deadline has passed, the peer runs in the turn after that of the
		 * callback. */
		fixture_flush(&scene.fixture);
		check_int(scene.runs, mover.to_ns != TW_NEVER && !mover.cancel);
		fixture_close(&scene.fixture);
	}
}
