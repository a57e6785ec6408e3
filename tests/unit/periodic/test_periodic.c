/* SPDX-License-Identifier: MIT */
/*
 * When periodic timeouts run: grid, delay, missed points, jitter, growing intervals, the end of
 * time. A callback that takes long moves the clock.
 *
 * Seen to fail with these defects:
 * - the grid continues from the deadline including its jitter, or from the end of the run;
 * - with TW_MISSED_SKIP, the grid continues from now, or omits the point in the present tick;
 * - a fixed delay counts from the point of the grid instead of the end of the run;
 * - with TW_MISSED_BURST, the missed runs do not follow at once;
 * - a reschedule does not move the grid, or moves it again after each run.
 */
#include "periodic_scene.h"

#include <string.h>

Test(periodic, fixed_rate_is_a_grid)
{
	static const struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	must_repeat(&fixture, &period, &log);
	step_to(&fixture, 10);
	check_int(log.count, 0);
	step_to(&fixture, 1001);
	check_int(log.count, 100);
	for (int run = 0; run < 100; run++) {
		check_due_ms(&log, run, (run + 1) * 10);
		check_int(log.ran_ns[run], ((run + 1) * 10 + 1) * NS_PER_MS);
	}
	check_int(stats_of(fixture.engine).periodic_runs, 100);
	check_int(stats_of(fixture.engine).expired, 0);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}

Test(periodic, fixed_delay_counts_from_the_end)
{
	static const struct tw_period period = TW_PERIOD_DELAY(10 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	log.takes_ns = 3 * NS_PER_MS;
	must_repeat(&fixture, &period, &log);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(log.count, 1);
	check_due_ms(&log, 0, 10);
	/* The run ended at 14 ms. */
	fixture_advance_to(&fixture, 24 * NS_PER_MS);
	check_int(log.count, 1);
	fixture_advance_to(&fixture, 25 * NS_PER_MS);
	check_int(log.count, 2);
	check_due_ms(&log, 1, 24);
	fixture_close(&fixture);
}

/* Makes a run that takes 35 ms, while the period is 10 ms. So points of the grid are missed. */
static void long_run(struct fixture *fixture, struct log *log, uint32_t missed)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);

	period.missed = missed;
	fixture_open(fixture, NULL);
	log_init(log, fixture);
	log->takes_ns = 35 * NS_PER_MS;
	log->long_run = 1;
	must_repeat(fixture, &period, log);
	step_to(fixture, 20);
	check_int(log->count, 1);
	/* The run ends at 56 ms. */
	fixture_advance_to(fixture, 21 * NS_PER_MS);
	fixture->now_ns = 56 * NS_PER_MS;
	fixture_flush(fixture);
}

Test(periodic, burst_makes_up_for_late_runs)
{
	struct fixture fixture;
	struct log log;

	long_run(&fixture, &log, TW_MISSED_BURST);
	/* The runs due at 30, 40 and 50 ms must follow at once, one after the other. */
	check_int(log.count, 5);
	for (int run = 2; run < 5; run++) {
		check_due_ms(&log, run, (run + 1) * 10);
		check_int(log.ran_ns[run], 56 * NS_PER_MS);
	}
	step_to(&fixture, 61);
	check_int(log.count, 6);
	check_due_ms(&log, 5, 60);
	fixture_close(&fixture);
}

Test(periodic, skip_stays_on_the_grid)
{
	struct fixture fixture;
	struct log log;

	long_run(&fixture, &log, TW_MISSED_SKIP);
	check_int(log.count, 2);
	step_to(&fixture, 60);
	check_int(log.count, 2);
	step_to(&fixture, 81);
	check_int(log.count, 5);
	for (int run = 2; run < 5; run++)
		check_due_ms(&log, run, 60 + (run - 2) * 10);
	fixture_close(&fixture);
}

Test(periodic, delay_moves_the_grid)
{
	struct fixture fixture;
	struct log log;

	long_run(&fixture, &log, TW_MISSED_DELAY);
	check_int(log.count, 2);
	step_to(&fixture, 66);
	check_int(log.count, 2);
	step_to(&fixture, 87);
	check_int(log.count, 5);
	for (int run = 2; run < 5; run++)
		check_due_ms(&log, run, 66 + (run - 2) * 10);
	fixture_close(&fixture);
}

Test(periodic, skip_leaves_out_no_point_of_the_tick_that_runs)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct log log;

	period.missed = TW_MISSED_SKIP;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	must_repeat(&fixture, &period, &log);
	/* Moves the clock to the middle of each tick. */
	fixture_advance(&fixture, NS_PER_MS / 2);
	for (int i = 0; i < 100; i++)
		fixture_advance(&fixture, NS_PER_MS);
	/* There must be one run in each tick, the first after 2 ms. */
	check_int(log.count, 99);
	fixture_close(&fixture);
}

Test(periodic, period_below_a_tick_runs_each_point_or_once_a_tick)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS / 10);
	struct fixture fixture;
	struct log batch, skip;

	fixture_open(&fixture, NULL);
	log_init(&batch, &fixture);
	log_init(&skip, &fixture);
	must_repeat(&fixture, &period, &batch);
	period.missed = TW_MISSED_SKIP;
	must_repeat(&fixture, &period, &skip);
	for (int i = 0; i < 20; i++)
		fixture_advance(&fixture, NS_PER_MS);
	/* The chain that makes up for missed points runs once for each point before the last
	 * boundary. The other chain runs once per tick. */
	check_int(batch.count, 199);
	check_int(skip.count, 20);
	fixture_close(&fixture);
}

Test(periodic, reschedule_moves_the_grid)
{
	static const struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct tw_handle handle;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	handle = must_repeat(&fixture, &period, &log);
	step_to(&fixture, 22);
	check_int(log.count, 2);
	/* Reschedules to a time before 30 ms, and then to a time after 34 ms. */
	check_int(tw_reschedule_at(handle, 24 * NS_PER_MS), TW_RESCHEDULE_DONE);
	step_to(&fixture, 26);
	check_due_ms(&log, 2, 24);
	step_to(&fixture, 36);
	check_due_ms(&log, 3, 34);
	check_int(tw_reschedule_at(handle, 47 * NS_PER_MS), TW_RESCHEDULE_DONE);
	step_to(&fixture, 67);
	check_int(log.count, 6);
	check_due_ms(&log, 4, 47);
	check_due_ms(&log, 5, 57);
	/* A reschedule must also work while the chain is in ingress. */
	handle = must_repeat(&fixture, &period, &log);
	check_int(tw_reschedule_at(handle, TW_NEVER), TW_RESCHEDULE_DONE);
	fixture_close(&fixture);
}

Test(periodic, reschedule_moves_the_grid_once)
{
	struct tw_period period = TW_PERIOD_RATE(20 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	period.jitter_ppm = 1000000;
	period.seed = 5;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	check_int(tw_reschedule_at(must_repeat(&fixture, &period, &log), 33 * NS_PER_MS),
		  TW_RESCHEDULE_DONE);
	step_to(&fixture, 33 + 30 * 20 + 1);
	check_due_ms(&log, 0, 33);
	/* From 33 ms on the points are a grid again. Jitter must not move them. */
	for (int run = 1; run < 30; run++) {
		check_at_least(log.due_ns[run], (33 + run * 20) * NS_PER_MS);
		check_at_most(log.due_ns[run], (33 + (run + 1) * 20) * NS_PER_MS);
	}
	fixture_close(&fixture);
}

Test(periodic, callback_can_make_intervals_grow)
{
	static const struct tw_period period = TW_PERIOD_RATE(5 * NS_PER_MS);
	struct fixture fixture;
	struct log log;
	int64_t due_ms = 5;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	log.interval_ns = NS_PER_MS;
	must_repeat(&fixture, &period, &log);
	step_to(&fixture, 140);
	for (int run = 0; run < 8; run++) {
		check_due_ms(&log, run, due_ms);
		due_ms += 1 << run;
	}
	check_int(log.count, 8);
	/* If the callback sets no interval, the chain's period applies again. */
	log.interval_ns = 0;
	step_to(&fixture, 260 + 6);
	check_due_ms(&log, 8, 5 + 255);
	check_due_ms(&log, 9, 5 + 255 + 5);
	fixture_close(&fixture);
}

Test(periodic, interval_from_the_end_of_a_run)
{
	static const struct tw_period period = TW_PERIOD_DELAY(5 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	log.interval_ns = 20 * NS_PER_MS;
	log.takes_ns = 4 * NS_PER_MS;
	must_repeat(&fixture, &period, &log);
	fixture_advance_to(&fixture, 6 * NS_PER_MS);
	fixture_advance_to(&fixture, 30 * NS_PER_MS);
	check_int(log.count, 1);
	fixture_advance_to(&fixture, 31 * NS_PER_MS);
	check_int(log.count, 2);
	check_due_ms(&log, 1, 6 + 4 + 20);
	fixture_close(&fixture);
}

Test(periodic, chain_ends_after_its_number_of_runs)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct tw_handle handle;
	struct log log;

	period.runs = 3;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	handle = must_repeat(&fixture, &period, &log);
	step_to(&fixture, 22);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	step_to(&fixture, 100);
	check_int(log.count, 3);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	check_int(stats_of(fixture.engine).expired, 1);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

/*
 * Records all deadlines of a chain with jitter. Each must be between its point and the given part
 * of the interval after it.
 */
static void jittered(struct log *log, uint64_t seed, uint32_t ppm)
{
	struct tw_period period = TW_PERIOD_RATE(20 * NS_PER_MS);
	struct fixture fixture;

	period.jitter_ppm = ppm;
	period.seed = seed;
	fixture_open(&fixture, NULL);
	log_init(log, &fixture);
	must_repeat(&fixture, &period, log);
	step_to(&fixture, 1050);
	check_at_least(log->count, 50);
	for (int run = 0; run < 50; run++) {
		check_at_least(log->due_ns[run], (run + 1) * period.period_ns);
		check_at_most(log->due_ns[run],
			      (run + 1) * period.period_ns + period.period_ns / 1000000 * ppm);
	}
	fixture_close(&fixture);
}

static int64_t jitter_sum_ms(const struct log *log)
{
	int64_t sum_ns = 0;

	for (int run = 0; run < 50; run++)
		sum_ns += log->due_ns[run] - (run + 1) * 20 * NS_PER_MS;
	return sum_ns / NS_PER_MS;
}

Test(periodic, jitter_is_evenly_spread_and_repeats_by_seed)
{
	struct log one, same, other, whole;

	jittered(&one, 7, 250000);
	jittered(&same, 7, 250000);
	jittered(&other, 8, 250000);
	jittered(&whole, 9, 1000000);
	check_int(memcmp(one.due_ns, same.due_ns, 50 * sizeof(int64_t)), 0);
	check_true(memcmp(one.due_ns, other.due_ns, 50 * sizeof(int64_t)) != 0);
	/* On average, the jitter must be about half of its maximum. */
	check_at_least(jitter_sum_ms(&one), 50 * 5 / 2 / 2);
	check_at_most(jitter_sum_ms(&one), 50 * 5 * 3 / 4);
	check_at_least(jitter_sum_ms(&whole), 50 * 20 / 4);
	check_at_most(jitter_sum_ms(&whole), 50 * 20 * 3 / 4);
}

Test(periodic, seeds_of_their_own)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_S);
	struct tw_timeout seen[2] = {{.size = sizeof(seen[0])}, {.size = sizeof(seen[0])}};
	struct fixture fixture;
	struct log log;

	period.jitter_ppm = 1000000;
	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	for (int i = 0; i < 2; i++)
		check_int(tw_timeout_get(must_repeat(&fixture, &period, &log), &seen[i]), 0);
	check_true(seen[0].deadline_ns != seen[1].deadline_ns);
	fixture_close(&fixture);
}

Test(periodic, slack_of_its_kind)
{
	static const struct tw_kind kind = TW_KIND_SLACK(on_run, NULL, 8 * NS_PER_MS);
	static const struct tw_period period = TW_PERIOD_RATE(21 * NS_PER_MS);
	struct fixture fixture;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	check_int(tw_schedule_periodic(fixture.engine, &period, &kind, &log, NULL), 0);
	step_to(&fixture, 210 + 9);
	check_int(log.count, 10);
	/* Slack may delay a run to a rounder tick. The next point must count from the grid. */
	for (int run = 0; run < 10; run++) {
		int64_t point_ns = (run + 1) * period.period_ns;

		check_at_least(log.due_ns[run], point_ns);
		check_at_most(log.due_ns[run], point_ns + 8 * NS_PER_MS);
		check_int((log.due_ns[run] / NS_PER_MS + 1) % 8, 0);
	}
	fixture_close(&fixture);
}

Test(periodic, what_does_not_fit_never_comes)
{
	struct tw_period period = TW_PERIOD_RATE(TW_NEVER - 5);
	struct fixture fixture;
	struct tw_handle handle, never;
	struct log log;

	fixture_open(&fixture, NULL);
	log_init(&log, &fixture);
	period.first_ns = 0;
	period.missed = TW_MISSED_SKIP;
	period.jitter_ppm = 1000000;
	period.seed = 3;
	/* Jitter delays even the first run, up to the end of time. So the test reschedules it to
	 * now. */
	handle = must_repeat(&fixture, &period, &log);
	check_int(tw_reschedule(handle, 0), TW_RESCHEDULE_DONE);
	period.first_ns = TW_NEVER;
	never = must_repeat(&fixture, &period, &log);
	step_to(&fixture, 10);
	check_int(log.count, 1);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	fixture_advance_to(&fixture, TW_NEVER / 2);
	check_int(log.count, 1);
	check_int(tw_cancel(never), TW_CANCEL_DONE);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_true(fixture.back.remaining_ns > TW_NEVER / 4);
}

#define END_NS (TW_NEVER - 100 * NS_PER_MS)

/*
 * Runs a chain that begins 100 ms before the end of time, the greatest time. There must be `runs`
 * runs, each due 30 ms after the previous one. Then the chain must wait for ever.
 */
static void end_of_time(const struct tw_period *period, int64_t takes_ns, int runs)
{
	struct fixture fixture;
	struct log log;

	fixture_open_at(&fixture, NULL, END_NS);
	log_init(&log, &fixture);
	log.takes_ns = takes_ns;
	log.long_run = 0;
	must_repeat(&fixture, period, &log);
	for (int ms = 1; ms < 100; ms++) {
		if (tw_engine_now(fixture.engine) <= END_NS + ms * NS_PER_MS)
			fixture_advance_to(&fixture, END_NS + ms * NS_PER_MS);
	}
	check_int(log.count, runs);
	for (int run = 0; run < runs; run++)
		check_int(log.due_ns[run], END_NS + 30 * (run + 1) * NS_PER_MS);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_int(fixture.back.remaining_ns, TW_NEVER);
}

Test(periodic, chain_ends_at_the_end_of_time)
{
	struct tw_period period = TW_PERIOD_RATE(30 * NS_PER_MS);

	end_of_time(&period, 0, 3);
	period.missed = TW_MISSED_SKIP;
	end_of_time(&period, 0, 3);
	/* The first run takes so long that no point of the grid is left before the end of time. */
	end_of_time(&period, 65 * NS_PER_MS, 1);
	period.missed = TW_MISSED_DELAY;
	end_of_time(&period, 0, 3);
	end_of_time(&period, 65 * NS_PER_MS, 1);
	period = (struct tw_period)TW_PERIOD_DELAY(80 * NS_PER_MS);
	period.first_ns = 30 * NS_PER_MS;
	end_of_time(&period, 0, 1);
	period = (struct tw_period)TW_PERIOD_DELAY(TW_NEVER);
	period.first_ns = 30 * NS_PER_MS;
	end_of_time(&period, 0, 1);
}

Test(periodic, poll_makes_one_run_of_a_burst)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct log log;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	log_init(&log, &fixture);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	must_repeat(&fixture, &period, &log);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_engine_next_due(fixture.engine), 2 * NS_PER_MS);
	check_int(tw_clock_set(fixture.clock, 6 * NS_PER_MS), 0);
	/* Each poll runs one run of a burst. tw_engine_next_due must report that more runs are
	 * due. */
	for (int run = 1; run <= 6; run++) {
		check_int(tw_engine_poll(fixture.engine, 0), 1);
		check_int(log.count, run);
		check_int(tw_engine_next_due(fixture.engine), run < 6 ? 0 : 8 * NS_PER_MS);
	}
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	/* The budget of a poll counts runs. */
	for (int i = 0; i < 9; i++)
		must_repeat(&fixture, &period, &log);
	check_int(tw_clock_set(fixture.clock, 8 * NS_PER_MS), 0);
	check_int(tw_engine_poll(fixture.engine, 4), 4);
	/* This poll makes the remaining first runs, and the second runs of four chains. */
	check_int(tw_engine_poll(fixture.engine, 100), 6 + 4);
	check_int(tw_engine_poll(fixture.engine, 100), 6);
	check_int(tw_engine_poll(fixture.engine, 100), 0);
	fixture_close(&fixture);
}

/* One chain has missed thousands of points. The other chain must not wait until the first has
 * caught up. */
Test(periodic, catching_up_delays_no_other_chain)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_US);
	struct fixture fixture;
	struct log fast, slow;

	fixture_open(&fixture, NULL);
	log_init(&fast, &fixture);
	log_init(&slow, &fixture);
	period.runs = 5000;
	must_repeat(&fixture, &period, &fast);
	period = (struct tw_period)TW_PERIOD_RATE(10 * NS_PER_MS);
	must_repeat(&fixture, &period, &slow);
	slow.peer = &fast;
	fixture_advance_to(&fixture, 21 * NS_PER_MS);
	check_int(fast.count, 5000);
	check_int(slow.count, 2);
	check_at_most(slow.peer_count, 3);
	fixture_close(&fixture);
}
