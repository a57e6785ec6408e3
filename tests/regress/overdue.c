/* SPDX-License-Identifier: MIT */
/*
 * If a timeout reached the wheel after its tick had passed, it used to wait for the next tick. So
 * when a timeout was in ingress for long, it ran a whole tick late. It must run in the worker's
 * next turn, even if the clock does not move.
 *
 * Seen to fail with this defect: overdue timeouts are put into the next tick's slot.
 */
#include "probe.h"

Test(overdue, runs_without_another_tick)
{
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, TW_NEVER, &count_kind, &runs);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	must_schedule_at(fixture.engine, 50 * NS_PER_MS, &count_kind, &runs);
	must_schedule_at(fixture.engine, 99 * NS_PER_MS - 1, &count_kind, &runs);
	fixture_flush(&fixture);
	check_int(runs, 2);
	fixture_close(&fixture);
}

/* Three batches of due timeouts are in ingress. All of them must run before the clock moves
 * again. */
Test(overdue, overdue_backlog_runs_before_the_clock_moves)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct gate gate;
	atomic_int runs = 0;

	options.transfer_batch = 100;
	fixture_open(&fixture, &options);
	gate_hold(&fixture, &gate);
	for (int i = 0; i < 300; i++)
		must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
	check_int(tw_clock_set(fixture.clock, 10 * NS_PER_MS), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(runs, 300);
	fixture_close(&fixture);
}
