/* SPDX-License-Identifier: MIT */
/* tw_schedule and tw_schedule_at: delays of every size, bad arguments, the handle. */
#include "probe.h"

#include <errno.h>
#include <string.h>

/* The kind as a newer version of the header might declare it. */
struct newer_kind {
	struct tw_kind known;
	uint64_t unknown[2];
};

/* Checks that the timeout runs at `boundary_ns`, and not before. */
static void check_runs_at(struct fixture *fixture, struct probe *probe, int64_t boundary_ns)
{
	fixture_advance_to(fixture, boundary_ns - 1);
	check_int(probe->runs, 0);
	fixture_advance_to(fixture, boundary_ns);
	check_int(probe->runs, 1);
	check_int(probe->ran_at_ns, boundary_ns);
	check_int(probe->end, TW_END_EXPIRED);
}

/*
 * Checks that the timeout runs without a step of the clock, in the worker's next turn, even if the
 * worker sleeps until a far tick.
 */
static void check_at_once(int64_t now_ns, int64_t delay_ns, int64_t tick_ns)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct probe probe;

	options.tick_ns = (uint64_t)tick_ns;
	fixture_open(&fixture, &options);
	fixture_advance_to(&fixture, now_ns);
	fixture_flush(&fixture);
	probe_schedule(&fixture, &probe, delay_ns);
	check_true(wait_until_at_least(&probe.finalised, 1));
	check_int(probe.runs, 1);
	check_int(probe.ran_at_ns, now_ns);
	check_int(probe.end, TW_END_EXPIRED);
	fixture_close(&fixture);
}

static void check_delay(int64_t now_ns, int64_t delay_ns, int64_t boundary_ns)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	fixture_advance_to(&fixture, now_ns);
	probe_schedule(&fixture, &probe, delay_ns);
	check_runs_at(&fixture, &probe, boundary_ns);
	fixture_close(&fixture);
}

Test(schedule, zero_runs_at_once)
{
	check_at_once(0, 0, NS_PER_MS);
	check_at_once(5 * NS_PER_MS, 0, NS_PER_MS);
	check_at_once(5 * NS_PER_MS + 1, 0, NS_PER_MS);
	check_at_once(6 * NS_PER_MS - 1, 0, NS_PER_MS);
	check_at_once(0, 0, 3600 * NS_PER_S);
	check_at_once(5 * NS_PER_MS, 0, 3600 * NS_PER_S);
}

Test(schedule, negative_runs_at_once)
{
	check_at_once(0, -1, NS_PER_MS);
	check_at_once(5 * NS_PER_MS, -1, NS_PER_MS);
	check_at_once(5 * NS_PER_MS, -NS_PER_S, 3600 * NS_PER_S);
	check_at_once(5 * NS_PER_MS, INT64_MIN + 1, NS_PER_MS);
}

Test(schedule, positive_runs_at_the_first_boundary_after)
{
	check_delay(0, 1, NS_PER_MS);
	check_delay(0, NS_PER_MS - 1, NS_PER_MS);
	check_delay(0, NS_PER_MS, 2 * NS_PER_MS);
	check_delay(0, NS_PER_MS + 1, 2 * NS_PER_MS);
	check_delay(300, NS_PER_S, NS_PER_S + NS_PER_MS);
}

Test(schedule, smallest_number_is_rejected)
{
	struct fixture fixture;
	struct tw_handle handle = {0};
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_init(&probe, fixture.engine);
	check_int(tw_schedule(fixture.engine, INT64_MIN, &probe_final_kind, &probe, &handle),
		  -ERANGE);
	check_int(tw_schedule_at(fixture.engine, INT64_MIN, &probe_final_kind, &probe, &handle),
		  -ERANGE);
	/* An unsigned delay of 2^63 becomes this number. */
	check_int(tw_schedule(fixture.engine, (int64_t)(UINT64_C(1) << 63), &probe_final_kind,
			      &probe, &handle),
		  -ERANGE);
	check_true(handle.node == NULL);
	fixture_advance(&fixture, NS_PER_S);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
	check_int(probe.runs, 0);
	check_int(probe.finalised, 0);
}

static void check_never(int64_t now_ns, int64_t delay_ns, int64_t deadline_ns)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	fixture_advance_to(&fixture, now_ns);
	handle = probe_schedule(&fixture, &probe, delay_ns);
	check_int(tw_timeout_get(handle, &timeout), 0);
	check_int(timeout.deadline_ns, deadline_ns);
	fixture_advance(&fixture, 100 * NS_PER_S);
	fixture_advance(&fixture, INT64_C(1) << 61);
	check_int(probe.runs, 0);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_close(&fixture);
	check_int(probe.end, TW_END_UNEXPIRED);
	if (deadline_ns == TW_NEVER)
		check_int(fixture.back.remaining_ns, TW_NEVER);
}

Test(schedule, never_does_not_run)
{
	check_never(0, TW_NEVER, TW_NEVER);
	check_never(NS_PER_S, TW_NEVER, TW_NEVER);
}

Test(schedule, huge_delays_saturate_to_never)
{
	check_never(NS_PER_S, TW_NEVER - 1, TW_NEVER);
	check_never(NS_PER_S, TW_NEVER - NS_PER_S, TW_NEVER);
}

Test(schedule, huge_but_representable_delays_do_not_run_early)
{
	check_never(0, INT64_C(1) << 62, INT64_C(1) << 62);
	check_never(NS_PER_S, TW_NEVER - NS_PER_S - 1, TW_NEVER - 1);
}

Test(schedule, absolute_deadline_runs_at_its_tick)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open_at(&fixture, NULL, 7 * NS_PER_S);
	probe_init(&probe, fixture.engine);
	must_schedule_at(fixture.engine, 8 * NS_PER_S, &probe_final_kind, &probe);
	check_runs_at(&fixture, &probe, 8 * NS_PER_S + NS_PER_MS);
	fixture_close(&fixture);
}

static void check_past(int64_t deadline_ns)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open_at(&fixture, NULL, 7 * NS_PER_S);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	probe_init(&probe, fixture.engine);
	must_schedule_at(fixture.engine, deadline_ns, &probe_final_kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(schedule, deadline_in_the_past_has_run_at_the_next_boundary)
{
	check_past(7 * NS_PER_S + 10 * NS_PER_MS);
	check_past(7 * NS_PER_S + 9 * NS_PER_MS);
	check_past(7 * NS_PER_S);
	check_past(1);
	check_past(0);
	check_past(-1);
	check_past(INT64_MIN + 1);
}

Test(schedule, null_arguments_are_rejected)
{
	struct fixture fixture;
	struct tw_handle handle = {0};

	fixture_open(&fixture, NULL);
	check_int(tw_schedule(NULL, 0, &count_kind, NULL, &handle), -EINVAL);
	check_int(tw_schedule_at(NULL, 0, &count_kind, NULL, &handle), -EINVAL);
	check_int(tw_schedule(fixture.engine, 0, NULL, NULL, &handle), -EINVAL);
	check_int(tw_schedule_at(fixture.engine, 0, NULL, NULL, &handle), -EINVAL);
	check_true(handle.node == NULL && handle.generation == 0);
	check_int(stats_of(fixture.engine).scheduled, 0);
	fixture_close(&fixture);
}

Test(schedule, bad_kinds_are_rejected)
{
	struct tw_kind bad = count_kind;
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	bad.callback = NULL;
	check_int(tw_schedule(fixture.engine, 0, &bad, &runs, NULL), -EINVAL);
	bad = count_kind;
	bad.flags = TW_KIND_FLAG_INLINE << 1;
	check_int(tw_schedule(fixture.engine, 0, &bad, &runs, NULL), -EINVAL);
	bad = count_kind;
	bad.size = 0;
	check_int(tw_schedule(fixture.engine, 0, &bad, &runs, NULL), -EINVAL);
	bad.size = sizeof(bad) - 1;
	check_int(tw_schedule(fixture.engine, 0, &bad, &runs, NULL), -EINVAL);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 0);
	fixture_close(&fixture);
}

Test(schedule, kind_of_a_newer_header)
{
	struct newer_kind newer = {.known = count_kind};
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	newer.known.size = sizeof(newer);
	check_int(tw_schedule(fixture.engine, 0, &newer.known, &runs, NULL), 0);
	newer.unknown[1] = 1;
	check_int(tw_schedule(fixture.engine, 0, &newer.known, &runs, NULL), -E2BIG);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 1);
	fixture_close(&fixture);
}

Test(schedule, callback_gets_the_returned_handle)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_true(same_handle(handle, probe.self));
	fixture_close(&fixture);
}

Test(schedule, handle_may_be_left_out)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_init(&probe, fixture.engine);
	check_int(tw_schedule(fixture.engine, 0, &probe_kind, &probe, NULL), 0);
	check_int(tw_schedule_at(fixture.engine, 0, &probe_kind, &probe, NULL), 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 2);
	check_true(probe.self.node != NULL);
	fixture_close(&fixture);
}

Test(schedule, argument_is_passed_on_and_not_looked_at)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, TW_NEVER, &count_kind, (void *)1);
	fixture_stop(&fixture);
	check_true(fixture.back.arg == (void *)1);
	check_true(fixture.back.kind == &count_kind);
	fixture_close(&fixture);
}
