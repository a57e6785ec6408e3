/* SPDX-License-Identifier: MIT */
/*
 * Timeouts at a date of the wall clock, in virtual time, while the wall clock is stepped.
 *
 * Seen to fail with these defects: the worker does not check the wall clock before a run; after a
 * step forward, only the first slice of the list is filed again; a rescheduled timeout is treated
 * as one with a date; a hand-back uses the engine's deadline instead of the date.
 */
#include "fault.h"
#include "wall_scene.h"

#include <errno.h>
#include <string.h>

static struct wall_scene scene;

static const int64_t steps[] = {NS_PER_S, HOUR_NS, 10 * YEAR_NS};

enum { STEPS = sizeof steps / sizeof steps[0] };

/* Without a step, the timeout must run at its date, in the first tick after it. */
Test(wall, runs_at_its_date_and_not_before)
{
	struct probe probe;
	struct tw_handle handle;

	wall_open(&scene, NULL);
	handle = probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	wall_pass(&scene, HOUR_NS - 1);
	check_int(probe.runs, 0);
	wall_pass(&scene, 1 + scene.fixture.tick_ns);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_EXPIRED);
	check_true(same_handle(probe.self, handle));
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	fixture_close(&scene.fixture);
}

/* If the wall clock steps beyond the date, the timeout must run at once, although no time has
 * passed. */
Test(wall, a_step_forward_beyond_the_date_runs_it_at_once)
{
	struct probe probe;

	for (int i = 0; i < STEPS; i++) {
		wall_open(&scene, NULL);
		(void)probe_wall(&scene, &probe, DATE_NS + steps[i]);
		fixture_flush(&scene.fixture);
		wall_step(&scene, steps[i] - 1);
		check_int(probe.runs, 0);
		wall_step(&scene, 1);
		check_int(probe.runs, 1);
		fixture_close(&scene.fixture);
	}
}

/* A step forward that does not reach the date must bring the date nearer by the size of the
 * step. */
Test(wall, a_step_forward_makes_the_date_nearer)
{
	struct probe probe;

	for (int i = 0; i < STEPS; i++) {
		wall_open(&scene, NULL);
		(void)probe_wall(&scene, &probe, DATE_NS + steps[i] + HOUR_NS);
		fixture_flush(&scene.fixture);
		wall_step(&scene, steps[i]);
		wall_pass(&scene, HOUR_NS - 1);
		check_int(probe.runs, 0);
		wall_pass(&scene, 1 + scene.fixture.tick_ns);
		check_int(probe.runs, 1);
		fixture_close(&scene.fixture);
	}
}

/* After a step back, the timeout must wait for its date again. It must never run while the wall
 * clock is before its date. */
Test(wall, a_step_back_makes_it_wait_as_much_longer)
{
	struct probe probe;

	for (int i = 0; i < STEPS; i++) {
		wall_open(&scene, NULL);
		(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
		fixture_flush(&scene.fixture);
		wall_step(&scene, -steps[i]);
		wall_pass(&scene, HOUR_NS + scene.fixture.tick_ns);
		check_int(probe.runs, 0);
		wall_pass(&scene, steps[i] - scene.fixture.tick_ns - 1);
		check_int(probe.runs, 0);
		wall_pass(&scene, 1 + scene.fixture.tick_ns);
		check_int(probe.runs, 1);
		fixture_close(&scene.fixture);
	}
}

/* Two opposite steps, in either order, must not change when the timeout runs. */
Test(wall, a_step_and_the_opposite_one_change_nothing)
{
	struct probe probe;

	for (int i = 0; i < 2 * STEPS; i++) {
		int64_t step_ns = i < STEPS ? steps[i] / 2 : -steps[i - STEPS];

		wall_open(&scene, NULL);
		(void)probe_wall(&scene, &probe, DATE_NS + 10 * YEAR_NS);
		fixture_flush(&scene.fixture);
		wall_step(&scene, step_ns);
		wall_step(&scene, -step_ns);
		wall_pass(&scene, 10 * YEAR_NS - 1);
		check_int(probe.runs, 0);
		wall_pass(&scene, 1 + scene.fixture.tick_ns);
		check_int(probe.runs, 1);
		fixture_close(&scene.fixture);
	}
}

/* The wall clock steps back after the worker has filed the timeout, and then forward beyond the
 * date. */
Test(wall, a_step_back_and_a_larger_one_forward_run_it)
{
	struct probe probe;

	wall_open(&scene, NULL);
	(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	fixture_flush(&scene.fixture);
	wall_step(&scene, -10 * YEAR_NS);
	wall_pass(&scene, 2 * HOUR_NS);
	check_int(probe.runs, 0);
	wall_step(&scene, 10 * YEAR_NS);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

/* Other timeouts must follow the engine's clock, whatever the wall clock does. */
Test(wall, a_step_does_not_touch_other_timeouts)
{
	struct probe wall, other;

	wall_open(&scene, NULL);
	(void)probe_wall(&scene, &wall, DATE_NS + HOUR_NS);
	(void)probe_schedule(&scene.fixture, &other, HOUR_NS);
	fixture_flush(&scene.fixture);
	wall_step(&scene, 10 * YEAR_NS);
	check_int(wall.runs, 1);
	check_int(other.runs, 0);
	wall_step(&scene, -20 * YEAR_NS);
	wall_pass(&scene, HOUR_NS + scene.fixture.tick_ns);
	check_int(other.runs, 1);
	fixture_close(&scene.fixture);
}

Test(wall, a_date_in_the_past_runs_in_the_next_turn)
{
	static const int64_t dates[] = {DATE_NS, DATE_NS - 1, DATE_NS - YEAR_NS, 1,
					0,       -1,          -YEAR_NS,          INT64_MIN + 1};
	struct probe probe;

	wall_open(&scene, NULL);
	for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
		(void)probe_wall(&scene, &probe, dates[i]);
		fixture_flush(&scene.fixture);
		check_int(probe.runs, 1);
	}
	fixture_close(&scene.fixture);
}

/* TW_NEVER is not a date. No step can reach the last date before it. */
Test(wall, the_end_of_time_never_comes)
{
	struct probe never, last;
	struct tw_handle handle, other;

	wall_open(&scene, NULL);
	handle = probe_wall(&scene, &never, TW_NEVER);
	other = probe_wall(&scene, &last, TW_NEVER - 1);
	fixture_flush(&scene.fixture);
	wall_set(&scene, INT64_MAX - 2);
	check_int(never.runs, 0);
	check_int(last.runs, 0);
	check_int(deadline_of(handle), TW_NEVER);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	check_int(never.end, TW_END_CANCELLED);
	fixture_close(&scene.fixture);
}

/* Cancels a timeout at four moments: before and after the worker has listed it, and after a step
 * forward or back has filed it again. */
Test(wall, cancel_ends_it_in_each_place)
{
	struct probe probe;
	struct tw_handle handle;

	wall_open(&scene, NULL);
	for (int place = 0; place < 4; place++) {
		handle = probe_wall(&scene, &probe, wall_now(&scene) + 10 * HOUR_NS);
		if (place >= 1)
			fixture_flush(&scene.fixture);
		if (place == 2)
			wall_step(&scene, HOUR_NS);
		if (place == 3)
			wall_step(&scene, -HOUR_NS);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
		check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
		check_int(probe.end, TW_END_CANCELLED);
		check_int(probe.finalised, 1);
		wall_step(&scene, 20 * HOUR_NS);
		check_int(probe.runs, 0);
	}
	fixture_close(&scene.fixture);
}

/* The deadline must be the date converted by the present clocks, even before the worker has seen
 * the timeout. */
Test(wall, get_reports_the_date_in_the_engines_time)
{
	struct tw_timeout timeout = {.size = sizeof timeout};
	struct gate gate;
	struct probe probe;
	struct tw_handle handle;

	wall_open(&scene, NULL);
	gate_init(&gate);
	(void)gate_hold(&scene.fixture, &gate);
	handle = probe_wall(&scene, &probe, DATE_NS + 10 * HOUR_NS);
	check_int(deadline_of(handle), 13 * HOUR_NS);
	gate_open(&gate);
	fixture_flush(&scene.fixture);
	check_int(tw_clock_set_wall(scene.fixture.clock, DATE_NS + HOUR_NS), 0);
	check_int(tw_timeout_get(handle, &timeout), 0);
	check_int(timeout.deadline_ns, scene.fixture.now_ns + 9 * HOUR_NS);
	check_int(timeout.state, TW_STATE_INIT);
	check_true(timeout.arg == &probe);
	check_true(timeout.kind == &probe_final_kind);
	fixture_close(&scene.fixture);
}

/* After a reschedule, the timeout must follow the engine's clock. */
Test(wall, reschedule_makes_it_an_ordinary_timeout)
{
	struct probe probe;
	struct tw_handle handle;

	for (int earlier = 0; earlier < 2; earlier++) {
		wall_open(&scene, NULL);
		handle = probe_wall(&scene, &probe, DATE_NS + 5 * HOUR_NS);
		fixture_flush(&scene.fixture);
		check_int(tw_reschedule(handle, (earlier ? 2 : 8) * HOUR_NS), TW_RESCHEDULE_DONE);
		check_int(deadline_of(handle), (earlier ? 5 : 11) * HOUR_NS);
		wall_step(&scene, 10 * YEAR_NS);
		check_int(probe.runs, 0);
		wall_step(&scene, -20 * YEAR_NS);
		wall_pass(&scene, (earlier ? 2 : 8) * HOUR_NS - 1);
		check_int(probe.runs, 0);
		wall_pass(&scene, 1 + scene.fixture.tick_ns);
		check_int(probe.runs, 1);
		fixture_close(&scene.fixture);
	}
}

static void on_self(struct tw_handle self, void *arg)
{
	int *seen = arg;

	seen[0] = tw_timeout_state(self);
	seen[1] = tw_cancel(self);
	seen[2] = tw_reschedule(self, 1);
	seen[3] = tw_period_next(self, 1);
}

/* In its own callback, the timeout must count as running, not as a chain that could continue. */
Test(wall, in_its_callback_it_is_running)
{
	static const struct tw_kind kind = TW_KIND(on_self, NULL);
	int seen[4];

	wall_open(&scene, NULL);
	(void)must_wall(&scene, DATE_NS, &kind, seen);
	fixture_flush(&scene.fixture);
	check_int(seen[0], TW_STATE_EXPIRED);
	check_int(seen[1], TW_CANCEL_RUNNING);
	check_int(seen[2], TW_RESCHEDULE_RUNNING);
	check_int(seen[3], -EPERM);
	fixture_close(&scene.fixture);
}

/* A cancel that waits, by another thread, must wait until the callback has ended. */
Test(wall, cancel_wait_waits_for_the_run)
{
	struct gate gate;
	struct tw_handle handle;

	wall_open(&scene, NULL);
	gate_init(&gate);
	handle = must_wall(&scene, DATE_NS, &gate_kind, &gate);
	gate_await(&gate);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_cancel_wait(handle, 0), -ETIMEDOUT);
	gate_open(&gate);
	check_int(tw_cancel_wait(handle, PATIENCE_NS), TW_CANCEL_EXPIRED);
	fixture_close(&scene.fixture);
}

/* Stop must hand the timeout back with the time that is left until its date. */
Test(wall, stop_hands_it_back_with_the_time_until_its_date)
{
	struct probe probe;

	for (int stepped = 0; stepped < 2; stepped++) {
		wall_open(&scene, NULL);
		(void)probe_wall(&scene, &probe, DATE_NS + 5 * HOUR_NS);
		fixture_flush(&scene.fixture);
		if (stepped)
			wall_step(&scene, -HOUR_NS);
		fixture_stop(&scene.fixture);
		check_int(scene.fixture.back.count, 1);
		check_int(scene.fixture.back.remaining_ns, (5 + stepped) * HOUR_NS);
		check_true(scene.fixture.back.arg == &probe);
		check_int(probe.end, TW_END_UNEXPIRED);
		check_int(tw_schedule_wall(scene.fixture.engine, 1, &probe_kind, &probe, NULL),
			  -ESHUTDOWN);
		fixture_close(&scene.fixture);
	}
}

Test(wall, slack_makes_it_later_and_never_earlier)
{
	struct tw_kind kind = probe_kind;
	struct probe probe;

	wall_open(&scene, NULL);
	kind.slack_ns = (uint64_t)NS_PER_S;
	probe_init(&probe, scene.fixture.engine);
	(void)must_wall(&scene, DATE_NS + 10 * NS_PER_S, &kind, &probe);
	fixture_flush(&scene.fixture);
	wall_pass(&scene, 10 * NS_PER_S + scene.fixture.tick_ns);
	check_int(probe.runs, 0);
	wall_pass(&scene, NS_PER_S);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

/* A slack of centuries is accepted. It must not make the timeout early, or wait for ever. */
Test(wall, longest_slack_is_accepted)
{
	struct tw_kind kind = probe_kind;
	struct probe probe;

	wall_open(&scene, NULL);
	kind.slack_ns = INT64_MAX;
	probe_init(&probe, scene.fixture.engine);
	(void)must_wall(&scene, DATE_NS + 10 * NS_PER_S, &kind, &probe);
	fixture_flush(&scene.fixture);
	wall_pass(&scene, 10 * NS_PER_S - 1);
	check_int(probe.runs, 0);
	wall_pass(&scene, 1 + scene.fixture.tick_ns);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

/* A step of the wall clock must not count as lateness of the timeouts that it makes due. */
Test(wall, a_step_is_no_lateness)
{
	struct probe probe;

	wall_open(&scene, NULL);
	(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	(void)probe_wall(&scene, &probe, DATE_NS - HOUR_NS);
	fixture_flush(&scene.fixture);
	wall_step(&scene, 3 * HOUR_NS);
	check_at_most(stats_of(scene.fixture.engine).latest_ns, 2 * scene.fixture.tick_ns);
	fixture_close(&scene.fixture);
}

Test(wall, one_counts_in_the_statistics_as_one)
{
	struct tw_stats stats;
	struct probe probe;

	wall_open(&scene, NULL);
	(void)probe_wall(&scene, &probe, DATE_NS);
	fixture_flush(&scene.fixture);
	stats = stats_of(scene.fixture.engine);
	check_int(stats.scheduled, 1);
	check_int(stats.expired, 1);
	check_int(stats.periodic_runs, 1);
	check_int(stats.pending, 0);
	fixture_close(&scene.fixture);
}

Test(wall, limit_of_pending_timeouts_counts_it)
{
	struct tw_options options = fixture_options();
	struct probe one, two;
	struct tw_handle handle;

	options.pending_limit = 1;
	wall_open(&scene, &options);
	handle = probe_wall(&scene, &one, DATE_NS + HOUR_NS);
	check_int(tw_schedule_wall(scene.fixture.engine, DATE_NS, &probe_kind, &two, NULL),
		  -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	handle = probe_wall(&scene, &two, DATE_NS + HOUR_NS);
	wall_step(&scene, HOUR_NS);
	check_int(two.runs, 1);
	(void)probe_wall(&scene, &one, DATE_NS);
	fixture_flush(&scene.fixture);
	check_int(one.runs, 1);
	fixture_close(&scene.fixture);
}

/* A call with a wrong argument must be rejected, and must not store a handle or change a count. */
Test(wall, wrong_arguments_are_rejected)
{
	static const struct tw_kind owned = TW_KIND_OWNER_ONLY(NULL, NULL);
	struct tw_kind kind = probe_kind;
	struct tw_handle handle = {0};
	struct probe probe;

	wall_open(&scene, NULL);
	probe_init(&probe, scene.fixture.engine);
	check_int(tw_schedule_wall(NULL, 1, &probe_kind, &probe, &handle), -EINVAL);
	check_int(tw_schedule_wall(scene.fixture.engine, 1, NULL, &probe, &handle), -EINVAL);
	check_int(tw_schedule_wall(scene.fixture.engine, INT64_MIN, &kind, &probe, &handle),
		  -ERANGE);
	check_int(tw_schedule_wall(scene.fixture.engine, 1, &owned, &probe, &handle), -EINVAL);
	kind.flags = TW_KIND_FLAG_OWNER_ONLY;
	check_int(tw_schedule_wall(scene.fixture.engine, 1, &kind, &probe, &handle), -EINVAL);
	kind.flags = 0;
	kind.size = 4097;
	check_int(tw_schedule_wall(scene.fixture.engine, 1, &kind, &probe, &handle), -E2BIG);
	check_int(tw_handle_is_set(handle), 0);
	check_int(stats_of(scene.fixture.engine).scheduled, 0);
	fixture_close(&scene.fixture);
}

Test(wall, set_wall_rejects_what_is_no_date)
{
	struct tw_clock *clock;

	check_int(tw_clock_set_wall(NULL, 0), -EINVAL);
	check_int(tw_clock_create(TW_CLOCK_MONOTONIC, &clock), 0);
	check_int(tw_clock_set_wall(clock, 0), -EINVAL);
	check_int(tw_clock_destroy(clock), 0);
	check_int(tw_clock_create_virtual(5, &clock), 0);
	check_int(tw_clock_set_wall(clock, -1), -EINVAL);
	check_int(tw_clock_set_wall(clock, INT64_MIN), -EINVAL);
	check_int(tw_clock_set_wall(clock, INT64_MAX), -EINVAL);
	check_int(tw_clock_set_wall(clock, 0), 0);
	check_int(tw_clock_now(clock), 5);
	check_int(tw_clock_destroy(clock), 0);
}

enum { MANY = 5000 };

static struct tw_handle many[MANY];

/*
 * There are more timeouts than one turn files again, and more than fit into the list of dates
 * before it grows.
 */
Test(wall, a_step_reaches_all_of_many)
{
	atomic_int runs = 0;

	wall_open(&scene, NULL);
	for (int i = 0; i < MANY; i++)
		many[i] = must_wall(&scene, DATE_NS + HOUR_NS + i, &count_kind, &runs);
	fixture_flush(&scene.fixture);
	for (int i = 0; i < MANY; i += 2)
		check_int(tw_cancel(many[i]), TW_CANCEL_DONE);
	wall_step(&scene, HOUR_NS - 1);
	check_int(runs, 0);
	wall_step(&scene, 1 + MANY / 2);
	check_int(runs, MANY / 4);
	wall_step(&scene, MANY);
	check_int(runs, MANY / 2);
	fixture_close(&scene.fixture);
}

/* The list of dates must not grow when timeouts end, and its memory must be given back with the
 * engine. */
Test(wall, memory_stays_when_many_come_and_go)
{
	atomic_int runs = 0;
	struct fault fault;
	long long before = 0;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	wall_open(&scene, NULL);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < MANY; i++)
			many[i] = must_wall(&scene, DATE_NS + HOUR_NS, &count_kind, &runs);
		fixture_flush(&scene.fixture);
		for (int i = 0; i < MANY; i++)
			check_int(tw_cancel(many[i]), TW_CANCEL_DONE);
		fixture_flush(&scene.fixture);
		if (round == 4)
			before = fault.live_bytes;
	}
	check_int(fault.live_bytes, before);
	check_int(runs, 0);
	fixture_close(&scene.fixture);
	check_int(fault.live_bytes, tw_memory_slab_bytes());
	check_int(fault.bad_releases, 0);
}

/*
 * Without memory for the list, the worker checks each date ten times a second, so it still notices
 * a step.
 */
Test(wall, without_memory_for_the_list_a_step_is_seen_soon)
{
	struct fault fault;
	struct probe probe;
	atomic_int runs = 0;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	wall_open(&scene, NULL);
	/* Makes everything that a timeout needs, except the list. */
	(void)must_wall(&scene, DATE_NS, &count_kind, &runs);
	(void)must_schedule(scene.fixture.engine, HOUR_NS, &count_kind, &runs);
	fixture_flush(&scene.fixture);
	fault_arm(&fault, 1, INT64_MAX);
	(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	fixture_flush(&scene.fixture);
	check_at_least(fault.failed, 1);
	wall_step(&scene, HOUR_NS);
	wall_pass(&scene, NS_PER_S / 10 + 2 * scene.fixture.tick_ns);
	check_int(probe.runs, 1);
	check_int(runs, 1);
	fault_disarm(&fault);
	fixture_close(&scene.fixture);
}
