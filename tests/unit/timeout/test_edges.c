/* SPDX-License-Identifier: MIT */
/*
 * Tick boundaries: around each boundary at which an error is likely, no timeout may be early, or
 * late by more than one tick.
 */
#include "probe.h"

#include <errno.h>

static struct tw_options grid_options(uint64_t tick_ns, uint32_t slots)
{
	struct tw_options options = fixture_options();

	options.tick_ns = tick_ns;
	options.slots = slots;
	return options;
}

/*
 * Schedules for `deadline_ns`. The timeout must run at the first boundary after it, and not one
 * nanosecond before.
 */
static void check_deadline(struct fixture *fixture, int64_t origin_ns, int64_t deadline_ns)
{
	int64_t tick_ns = fixture->tick_ns;
	int64_t due_ns = origin_ns + ((deadline_ns - origin_ns) / tick_ns + 1) * tick_ns;
	struct probe probe;

	probe_init(&probe, fixture->engine);
	must_schedule_at(fixture->engine, deadline_ns, &probe_final_kind, &probe);
	fixture_advance_to(fixture, due_ns - 1);
	check_int(probe.runs, 0);
	fixture_advance_to(fixture, due_ns);
	check_int(probe.runs, 1);
	check_at_least(probe.ran_at_ns - deadline_ns, 1);
	check_at_most(probe.ran_at_ns - deadline_ns, tick_ns);
}

static void check_around(struct fixture *fixture, int64_t origin_ns, int64_t point_ns)
{
	check_deadline(fixture, origin_ns, point_ns - 1);
	check_deadline(fixture, origin_ns, point_ns + fixture->tick_ns);
	check_deadline(fixture, origin_ns, point_ns + 2 * fixture->tick_ns + 1);
}

/* Checks deadlines around each of the first boundaries, and around multiples of the wheel's
 * revolution. */
static void check_grid(uint64_t tick_ns, uint32_t slots, int64_t origin_ns)
{
	const struct tw_options options = grid_options(tick_ns, slots);
	int64_t period_ns = (int64_t)(tick_ns * slots);
	struct fixture fixture;
	int i;

	fixture_open_at(&fixture, &options, origin_ns);
	for (i = 1; i < 10; i++)
		check_around(&fixture, origin_ns, origin_ns + i * 4 * fixture.tick_ns);
	for (i = 40; i < 50; i++)
		check_around(&fixture, origin_ns, origin_ns + i * 4 * period_ns);
	fixture_close(&fixture);
}

Test(edges, boundaries_and_periods)
{
	check_grid(1000000, 4, 0);
	check_grid(1000000, 8, 0);
	check_grid(1000, 4096, 0);
	check_grid(100000000, 512, 0);
	check_grid(3333, 16, 0);
}

Test(edges, grid_starts_with_the_engine)
{
	check_grid(1000000, 8, 1);
	check_grid(1000000, 8, 999999);
	check_grid(1000000, 8, 123456789);
	check_grid(1000000, 8, INT64_C(1) << 62);
}

Test(edges, wheel_of_one_slot)
{
	check_grid(1000000, 1, 0);
	check_grid(1000000, 2, 500);
}

/* A tick is 1 us, so tick 2^32 is after 72 minutes. */
Test(edges, runs_on_time_around_tick_two_to_the_32)
{
	const struct tw_options options = grid_options(1000, 256);
	const int64_t point_ns = (INT64_C(1) << 32) * 1000;
	struct fixture fixture;
	struct probe far;

	fixture_open(&fixture, &options);
	probe_init(&far, fixture.engine);
	must_schedule_at(fixture.engine, point_ns + 20000, &probe_final_kind, &far);
	fixture_advance_to(&fixture, point_ns - 10000);
	check_around(&fixture, 0, point_ns - 3000);
	check_around(&fixture, 0, point_ns + 3000);
	check_int(far.runs, 0);
	fixture_advance_to(&fixture, point_ns + 20999);
	check_int(far.runs, 0);
	fixture_advance_to(&fixture, point_ns + 21000);
	check_int(far.runs, 1);
	fixture_close(&fixture);
}

/* The timeouts are scheduled 2^32 ticks ahead and more. */
Test(edges, runs_on_time_two_to_the_32_ticks_ahead)
{
	const struct tw_options options = grid_options(1000, 256);
	struct fixture fixture;
	struct probe probes[3];
	int i;

	fixture_open(&fixture, &options);
	for (i = 0; i < 3; i++)
		probe_schedule(&fixture, &probes[i], ((INT64_C(1) << (32 + i)) + 7) * 1000);
	for (i = 0; i < 3; i++) {
		fixture_advance_to(&fixture, ((INT64_C(1) << (32 + i)) + 8) * 1000 - 1);
		check_int(probes[i].runs, 0);
		fixture_advance(&fixture, 1);
		check_int(probes[i].runs, 1);
	}
	fixture_close(&fixture);
}

Test(edges, near_the_end_of_time)
{
	const int64_t start_ns = INT64_MAX - 10 * NS_PER_S;
	struct fixture fixture;
	struct probe last;
	struct probe beyond;

	fixture_open_at(&fixture, NULL, start_ns);
	probe_schedule(&fixture, &last, NS_PER_S);
	probe_schedule(&fixture, &beyond, 20 * NS_PER_S);
	check_around(&fixture, start_ns, start_ns + 100 * NS_PER_MS);
	fixture_advance_to(&fixture, INT64_MAX - 1);
	check_int(last.runs, 1);
	check_int(beyond.runs, 0);
	fixture_close(&fixture);
	check_int(beyond.end, TW_END_UNEXPIRED);
}

Test(edges, deadline_before_the_start)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open_at(&fixture, NULL, NS_PER_S);
	probe_init(&probe, fixture.engine);
	must_schedule_at(fixture.engine, 1, &probe_final_kind, &probe);
	fixture_flush(&fixture);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(edges, whole_tick_runs_at_its_boundary)
{
	const struct tw_options options = grid_options(1000, 16);
	struct fixture fixture;
	struct probe probes[1001];
	int i;

	fixture_open(&fixture, &options);
	for (i = 0; i <= 1000; i++) {
		probe_init(&probes[i], fixture.engine);
		must_schedule_at(fixture.engine, 5000 + i, &probe_final_kind, &probes[i]);
	}
	fixture_advance_to(&fixture, 5999);
	fixture_advance_to(&fixture, 6000);
	for (i = 0; i <= 1000; i++)
		check_int(probes[i].runs, i < 1000);
	fixture_advance_to(&fixture, 7000);
	check_int(probes[1000].runs, 1);
	fixture_close(&fixture);
}

/* After a stall of many revolutions, all due timeouts must have run, and the others must still
 * be pending. */
Test(edges, all_due_run_after_a_stall)
{
	const struct tw_options options = grid_options(1000, 64);
	struct fixture fixture;
	struct probe probes[200];
	struct probe later;
	int i;

	fixture_open(&fixture, &options);
	for (i = 0; i < 200; i++)
		probe_schedule(&fixture, &probes[i], i * 777 + 1);
	probe_schedule(&fixture, &later, 4000 * NS_PER_S);
	fixture_advance(&fixture, 3600 * NS_PER_S);
	for (i = 0; i < 200; i++)
		check_int(probes[i].runs, 1);
	check_int(later.runs, 0);
	fixture_advance(&fixture, 400 * NS_PER_S + 1000);
	check_int(later.runs, 1);
	fixture_close(&fixture);
}

/* 2^50 empty ticks must not take 2^50 steps. */
Test(edges, catch_up_over_empty_ticks_is_quick)
{
	const struct tw_options options = grid_options(1000, 4096);
	struct fixture fixture;
	struct probe probe;
	int64_t begin_ns = monotonic_ns();

	fixture_open(&fixture, &options);
	fixture_advance_to(&fixture, INT64_C(1) << 61);
	probe_schedule(&fixture, &probe, INT64_C(1) << 61);
	fixture_advance(&fixture, INT64_C(1) << 60);
	check_int(probe.runs, 0);
	fixture_advance(&fixture, (INT64_C(1) << 60) + 1000);
	check_int(probe.runs, 1);
	check_at_most(monotonic_ns() - begin_ns, 5 * NS_PER_S);
	fixture_close(&fixture);
}
