/* SPDX-License-Identifier: MIT */
/*
 * tw_reschedule: every outcome, in each state and with both wheels. After a reschedule, no run may
 * come at an earlier deadline.
 */
#include "probe.h"

#include <errno.h>

static const enum tw_wheel wheels[] = {TW_WHEEL_HASHED, TW_WHEEL_HIERARCHICAL};

/* Runs each case on both wheels. */
#define ON_EACH_WHEEL(fixture, probe)                                                              \
	struct fixture fixture;                                                                    \
	struct probe probe;                                                                        \
	for (size_t i = 0; i < 2; fixture_close(&fixture), i++)                                    \
		if (wheel_open(&fixture, wheels[i]))

static bool wheel_open(struct fixture *fixture, enum tw_wheel wheel)
{
	struct tw_options options = fixture_options();

	options.wheel = wheel;
	fixture_open(fixture, &options);
	return true;
}

static int64_t deadline_of(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	check_int(tw_timeout_get(handle, &timeout), 0);
	return timeout.deadline_ns;
}

/* Checks that the timeout runs once, in the tick after `deadline_ns`. */
static void check_runs_at(struct fixture *fixture, struct probe *probe, int64_t deadline_ns)
{
	fixture_advance_to(fixture, deadline_ns);
	check_int(probe->runs, 0);
	fixture_advance(fixture, fixture->tick_ns);
	check_int(probe->runs, 1);
	check_int(probe->finalised, 1);
	fixture_advance(fixture, 10 * NS_PER_S);
	check_int(probe->runs, 1);
}

Test(reschedule, later_in_ingress_runs_at_the_new_time)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);

		check_int(tw_reschedule(handle, 9 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(deadline_of(handle), fixture.now_ns + 9 * NS_PER_MS);
		check_runs_at(&fixture, &probe, fixture.now_ns + 9 * NS_PER_MS);
	}
}

Test(reschedule, later_again_and_again_runs_at_the_last_deadline)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);
		int64_t deadline_ns = 0;

		for (int step = 0; step < 50; step++) {
			fixture_advance(&fixture, 3 * NS_PER_MS);
			deadline_ns = fixture.now_ns + (5 + step * 7) * NS_PER_MS;
			check_int(tw_reschedule_at(handle, deadline_ns), TW_RESCHEDULE_DONE);
			check_int(deadline_of(handle), deadline_ns);
		}
		check_runs_at(&fixture, &probe, deadline_ns);
	}
}

/*
 * Moves the timeout by distances at which its slot entry could look the same: revolutions, and 2^32
 * ticks.
 */
Test(reschedule, later_by_revolutions_and_by_two_to_the_32_ticks)
{
	static const int64_t ticks[] = {4096, 8192, INT64_C(1) << 32, (INT64_C(1) << 32) + 4096};

	for (size_t far = 0; far < sizeof(ticks) / sizeof(*ticks); far++) {
		ON_EACH_WHEEL(fixture, probe)
		{
			struct tw_handle handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);
			int64_t deadline_ns =
				fixture.now_ns + 5 * NS_PER_MS + ticks[far] * fixture.tick_ns;

			fixture_flush(&fixture);
			check_int(tw_reschedule_at(handle, deadline_ns), TW_RESCHEDULE_DONE);
			fixture_advance(&fixture, NS_PER_S);
			check_runs_at(&fixture, &probe, deadline_ns);
		}
	}
}

Test(reschedule, earlier_in_ingress_runs_at_the_new_time)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);

		check_int(tw_reschedule(handle, 5 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_runs_at(&fixture, &probe, fixture.now_ns + 5 * NS_PER_MS);
	}
}

Test(reschedule, earlier_in_the_wheel_runs_at_the_new_deadline)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, TW_NEVER);

		fixture_flush(&fixture);
		for (int64_t hours = 100; hours > 0; hours -= 33) {
			check_int(tw_reschedule(handle, hours * 3600 * NS_PER_S),
				  TW_RESCHEDULE_DONE);
			fixture_flush(&fixture);
		}
		check_int(tw_reschedule(handle, 5 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(stats_of(fixture.engine).pending, 1);
		check_runs_at(&fixture, &probe, fixture.now_ns + 5 * NS_PER_MS);
	}
}

/* No flush comes between the reschedules, so the worker finds all of them at once. */
Test(reschedule, earlier_and_later_before_the_worker_looks)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);

		fixture_flush(&fixture);
		check_int(tw_reschedule(handle, 500 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule(handle, 2 * NS_PER_S), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule(handle, 300 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_runs_at(&fixture, &probe, fixture.now_ns + 300 * NS_PER_MS);
	}
}

Test(reschedule, to_the_past_and_to_now_runs_at_once)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle;

		fixture_advance(&fixture, NS_PER_S);
		handle = probe_schedule(&fixture, &probe, NS_PER_S);
		fixture_flush(&fixture);
		check_int(tw_reschedule_at(handle, -5), TW_RESCHEDULE_DONE);
		fixture_flush(&fixture);
		check_int(probe.runs, 1);
		handle = probe_schedule(&fixture, &probe, NS_PER_S);
		check_int(tw_reschedule(handle, -5), TW_RESCHEDULE_DONE);
		fixture_flush(&fixture);
		check_int(probe.runs, 1);
		check_int(probe.ran_at_ns, fixture.now_ns);
	}
}

Test(reschedule, to_never_and_back)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);

		fixture_flush(&fixture);
		check_int(tw_reschedule(handle, TW_NEVER), TW_RESCHEDULE_DONE);
		check_int(deadline_of(handle), TW_NEVER);
		fixture_advance(&fixture, 1000 * NS_PER_S);
		check_int(probe.runs, 0);
		check_int(tw_reschedule_at(handle, TW_NEVER), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule(handle, NS_PER_MS), TW_RESCHEDULE_DONE);
		check_runs_at(&fixture, &probe, fixture.now_ns + NS_PER_MS);
	}
}

/* A handle of zeros is invalid, and so is the time INT64_MIN. */
Test(reschedule, zero_handle_and_bad_time_are_rejected)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle none = {0};
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_MS);

		check_int(tw_reschedule(none, 0), -EINVAL);
		check_int(tw_reschedule_at(none, 0), -EINVAL);
		check_int(tw_reschedule(handle, INT64_MIN), -ERANGE);
		check_int(tw_reschedule_at(handle, INT64_MIN), -ERANGE);
		check_runs_at(&fixture, &probe, fixture.now_ns + NS_PER_MS);
	}
}

Test(reschedule, reschedule_after_cancel_returns_cancelled)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);

		fixture_flush(&fixture);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
		check_int(tw_reschedule(handle, 2 * NS_PER_S), TW_RESCHEDULE_CANCELLED);
		check_int(tw_reschedule_at(handle, 0), TW_RESCHEDULE_CANCELLED);
		fixture_advance(&fixture, 10 * NS_PER_S);
		check_int(probe.runs, 0);
	}
}

/* The timeout is cancelled while it is queued to be filed again. Its memory must be given back
 * once. */
Test(reschedule, cancel_of_a_queued_timeout_frees_it_once)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		for (int round = 0; round < 1000; round++) {
			struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);

			if (round % 2 == 0)
				fixture_flush(&fixture);
			check_int(tw_reschedule(handle, 500 * NS_PER_MS), TW_RESCHEDULE_DONE);
			check_int(tw_cancel(handle), TW_CANCEL_DONE);
			check_int(probe.finalised, 1);
		}
		fixture_advance(&fixture, 10 * NS_PER_S);
		check_int(probe.runs, 0);
		check_int(tw_engine_pending(fixture.engine), 0);
	}
}

Test(reschedule, reschedule_after_expiry_returns_expired)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 1);

		fixture_advance(&fixture, NS_PER_S);
		check_int(tw_reschedule(handle, NS_PER_S), TW_RESCHEDULE_EXPIRED);
		check_int(tw_reschedule_at(handle, 0), TW_RESCHEDULE_EXPIRED);
		fixture_advance(&fixture, 10 * NS_PER_S);
		check_int(probe.runs, 1);
	}
}

Test(reschedule, reschedule_of_a_stale_handle_returns_estale)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 1);

		fixture_advance(&fixture, NS_PER_S);
		check_true(make_stale(&fixture, handle));
		check_int(tw_reschedule(handle, NS_PER_S), -ESTALE);
		check_int(tw_reschedule_at(handle, 0), -ESTALE);
	}
}

/* A reschedule must use the engine of the handle, and that engine's clock. */
Test(reschedule, reschedule_goes_by_the_engine_of_the_handle)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);
		struct fixture other;
		struct probe other_probe;
		struct tw_handle other_handle;

		fixture_open_at(&other, NULL, 70 * NS_PER_S);
		other_handle = probe_schedule(&other, &other_probe, NS_PER_S);
		check_int(tw_reschedule(handle, 5 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(tw_reschedule(other_handle, 9 * NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(deadline_of(handle), 5 * NS_PER_MS);
		check_int(deadline_of(other_handle), 70 * NS_PER_S + 9 * NS_PER_MS);
		check_runs_at(&fixture, &probe, 5 * NS_PER_MS);
		check_int(other_probe.runs, 0);
		check_runs_at(&other, &other_probe, 70 * NS_PER_S + 9 * NS_PER_MS);
		fixture_close(&other);
		/* The handle's engine no longer exists. */
		check_true(tw_reschedule(other_handle, 0) != TW_RESCHEDULE_DONE);
	}
}

/*
 * No timeout has one of these handles: the generation has a bit that no handle has, or is 0, or
 * there is no node.
 */
Test(reschedule, a_made_up_handle_is_rejected)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);
		struct tw_handle odd = {.node = handle.node, .generation = handle.generation + 1};
		struct tw_handle unborn = {.node = handle.node};
		struct tw_handle of_nothing = {.generation = handle.generation};

		check_int(tw_reschedule(odd, 0), -EINVAL);
		check_int(tw_reschedule_at(unborn, 0), -EINVAL);
		check_int(tw_reschedule_at(of_nothing, 0), -EINVAL);
		check_runs_at(&fixture, &probe, 5 * NS_PER_MS);
	}
}

struct inside {
	atomic_int delay;
	atomic_int deadline;
	atomic_int peer;
	struct tw_handle peer_handle;
};

static void on_inside(struct tw_handle self, void *arg)
{
	struct inside *inside = arg;

	atomic_store(&inside->delay, tw_reschedule(self, NS_PER_S));
	atomic_store(&inside->deadline, tw_reschedule_at(self, 0));
	atomic_store(&inside->peer, tw_reschedule(inside->peer_handle, NS_PER_S));
}

static const struct tw_kind inside_kind = TW_KIND(on_inside, NULL);

/*
 * The running timeout's reschedule must be rejected. A peer of the same batch that has not run yet
 * must be filed again.
 */
Test(reschedule, running_timeout_is_not_rescheduled_by_itself)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct inside inside = {.delay = -1};
		struct tw_handle peers[2];
		struct probe peer[2];

		peers[0] = probe_schedule(&fixture, &peer[0], NS_PER_MS);
		must_schedule(fixture.engine, NS_PER_MS, &inside_kind, &inside);
		peers[1] = probe_schedule(&fixture, &peer[1], NS_PER_MS);
		inside.peer_handle = peers[1];
		probe_init(&probe, fixture.engine);
		fixture_advance(&fixture, 2 * NS_PER_MS);
		check_int(inside.delay, TW_RESCHEDULE_RUNNING);
		check_int(inside.deadline, TW_RESCHEDULE_RUNNING);
		check_int(inside.peer, peer[1].runs ? TW_RESCHEDULE_EXPIRED : TW_RESCHEDULE_DONE);
		check_int(peer[0].runs, 1);
		if (inside.peer == TW_RESCHEDULE_DONE)
			check_runs_at(&fixture, &peer[1], fixture.now_ns + NS_PER_S);
		check_int(tw_reschedule(peers[0], 0) != TW_RESCHEDULE_DONE, 1);
	}
}

/* The hand-back must report the time that is left until the new deadline. */
Test(reschedule, hand_back_has_the_time_left_until_the_new_deadline)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);

		fixture_flush(&fixture);
		check_int(tw_reschedule(handle, i == 0 ? 7 * NS_PER_S : 7), TW_RESCHEDULE_DONE);
		fixture_stop(&fixture);
		check_int(fixture.back.count, 1);
		check_int(fixture.back.remaining_ns, i == 0 ? 7 * NS_PER_S : 7);
		check_int(tw_reschedule(handle, 1), TW_RESCHEDULE_CANCELLED);
		check_int(tw_reschedule_at(handle, INT64_MAX), TW_RESCHEDULE_CANCELLED);
	}
}

Test(reschedule, reschedule_after_destroy_is_rejected)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;
	int outcome;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_close(&fixture);
	outcome = tw_reschedule(handle, 0);
	check_true(outcome == TW_RESCHEDULE_CANCELLED || outcome == -ESTALE);
}

/* All reschedules to later times together may cost the worker one turn, at the old time. */
Test(reschedule, reschedule_to_later_does_not_wake_the_worker)
{
	ON_EACH_WHEEL(fixture, probe)
	{
		struct tw_handle handle = probe_schedule(&fixture, &probe, NS_PER_S);
		uint64_t turns;

		fixture_flush(&fixture);
		turns = stats_of(fixture.engine).turns;
		for (int64_t step = 1; step <= 100000; step++)
			check_int(tw_reschedule(handle, NS_PER_S + step), TW_RESCHEDULE_DONE);
		check_true(stats_of(fixture.engine).turns <= turns + 2);
	}
}
