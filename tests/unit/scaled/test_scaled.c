/* SPDX-License-Identifier: MIT */
/*
 * Scaled timeouts in virtual time: when they run with each factor, how they follow a change, and
 * what a touch and a cancel do.
 *
 * The internal terms (queue, driver, drive) are explained in scaled/scaled.h. Seen to fail with
 * these defects:
 * - the factor is read only once, or a change of the factor drives no kind;
 * - a kind's queue is polled only at the end of its tick, or never publishes when it needs the next
 *   turn;
 * - a touch moves the timeout by the least delay only;
 * - the queue's time is too far ahead, by the least delay;
 * - the driver is offered to the executor, or the late hook is called instead of it;
 * - a stop of the engine does not notice that it is called in an executor;
 * - the queue is reported as a timeout's engine.
 */
#include "dispatch_scene.h"
#include "scaled_scene.h"

Test(scaled, timeouts_run_by_the_factor)
{
	static const double factor[] = {0, 0.1, 0.25, 0.5, 1};

	for (size_t i = 0; i < sizeof factor / sizeof factor[0]; i++) {
		int64_t delay_ns = NS_PER_S + (int64_t)(factor[i] * 8e9);
		struct tw_scaled *scaled;
		struct fixture fixture;
		struct probe probe;

		fixture_open(&fixture, NULL);
		factor_set(&fixture, factor[i]);
		scaled = scaled_open(fixture.engine, NS_PER_S, 9 * NS_PER_S);
		fixture_advance(&fixture, 123456);
		(void)scaled_probe(&fixture, scaled, &probe);
		fixture_advance(&fixture, delay_ns - NS_PER_MS);
		fixture_advance(&fixture, NS_PER_MS - 1);
		check_int(probe.runs, 0);
		check_int(tw_scaled_pending(scaled), 1);
		fixture_advance(&fixture, NS_PER_MS + 1);
		check_int(probe.runs, 1);
		check_int(probe.end, TW_END_EXPIRED);
		check_int(tw_scaled_pending(scaled), 0);
		scaled_close(scaled);
		fixture_close(&fixture);
	}
}

/* The clock moves by half ticks. After each step, exactly the timeouts whose tick boundary has
 * passed must have run. */
Test(scaled, no_timeout_is_later_than_a_tick)
{
	enum { COUNT = 40 };
	struct probe probe[COUNT];
	int64_t deadline_ns[COUNT];
	struct tw_scaled *scaled;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, 2 * NS_PER_MS, 12 * NS_PER_MS);
	factor_set(&fixture, 0.5);
	for (int step = 0; step < 120; step++) {
		if (step < COUNT) {
			(void)scaled_probe(&fixture, scaled, &probe[step]);
			deadline_ns[step] = fixture.now_ns + 7 * NS_PER_MS;
		}
		fixture_advance(&fixture, 370001);
		for (int i = 0; i < COUNT && i <= step; i++) {
			int64_t boundary_ns = (deadline_ns[i] / NS_PER_MS + 1) * NS_PER_MS;

			if (fixture.now_ns < deadline_ns[i])
				check_int(probe[i].runs, 0);
			if (fixture.now_ns >= boundary_ns)
				check_int(probe[i].runs, 1);
		}
	}
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, pending_timeouts_follow_the_factor_both_ways)
{
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe old, young;
	int64_t deadline_ns;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 11 * NS_PER_S);
	(void)scaled_probe(&fixture, scaled, &old);
	fixture_advance(&fixture, 4 * NS_PER_S);
	handle = scaled_probe(&fixture, scaled, &young);
	check_int(tw_scaled_deadline(scaled, handle, &deadline_ns), 0);
	check_int(deadline_ns, 15 * NS_PER_S);
	/* With factor 0.4 the delay is 5 s. So the old timeout has one more second, and the young
	 * one five. */
	factor_set(&fixture, 0.4);
	fixture_flush(&fixture);
	check_int(old.runs, 0);
	check_int(tw_scaled_deadline(scaled, handle, &deadline_ns), 0);
	check_int(deadline_ns, 9 * NS_PER_S);
	/* With factor 0.2 the delay is 3 s, so the old timeout is overdue. */
	factor_set(&fixture, 0.2);
	fixture_flush(&fixture);
	check_int(old.runs, 1);
	check_int(young.runs, 0);
	/* The factor rises again, so the young timeout gets its long delay back. */
	factor_set(&fixture, 1);
	fixture_advance(&fixture, 10 * NS_PER_S);
	check_int(young.runs, 0);
	fixture_advance(&fixture, NS_PER_S - 1);
	check_int(young.runs, 0);
	fixture_advance(&fixture, NS_PER_MS + 1);
	check_int(young.runs, 1);
	scaled_close(scaled);
	fixture_close(&fixture);
}

/* No timeout may run before the least delay, however low the factor is and however often it
 * changes. */
Test(scaled, none_runs_before_the_least_delay)
{
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 100 * NS_PER_S);
	(void)scaled_probe(&fixture, scaled, &probe);
	for (int i = 0; i < 100; i++) {
		factor_set(&fixture, i % 2 == 0 ? 0 : 0.3);
		fixture_advance(&fixture, NS_PER_S / 100 - (i == 99));
		check_int(probe.runs, 0);
	}
	factor_set(&fixture, 0);
	fixture_advance(&fixture, NS_PER_MS + 1);
	check_int(probe.runs, 1);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, touch_restarts_the_delay)
{
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 3 * NS_PER_S);
	handle = scaled_probe(&fixture, scaled, &probe);
	for (int i = 0; i < 10; i++) {
		fixture_advance(&fixture, 2 * NS_PER_S);
		check_int(tw_scaled_touch(scaled, handle), TW_RESCHEDULE_DONE);
	}
	factor_set(&fixture, 0.5);
	fixture_advance(&fixture, 2 * NS_PER_S - 1);
	check_int(probe.runs, 0);
	fixture_advance(&fixture, NS_PER_MS + 1);
	check_int(probe.runs, 1);
	check_int(tw_scaled_touch(scaled, handle), TW_RESCHEDULE_EXPIRED);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, cancel_is_that_of_a_single_timeout)
{
	struct tw_timeout seen = {.size = sizeof seen};
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 3 * NS_PER_S);
	handle = scaled_probe(&fixture, scaled, &probe);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	check_int(tw_timeout_get(handle, &seen), 0);
	check_true(seen.engine == fixture.engine && seen.kind == &probe_final_kind &&
		   seen.arg == &probe);
	check_int(seen.deadline_ns, 3 * NS_PER_S);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(probe.end, TW_END_CANCELLED);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_scaled_touch(scaled, handle), TW_RESCHEDULE_CANCELLED);
	check_int(tw_timeout_state(handle), TW_STATE_CANCELLED);
	check_int(tw_scaled_pending(scaled), 0);
	fixture_advance(&fixture, 4 * NS_PER_S);
	check_int(probe.runs, 0);
	scaled_close(scaled);
	check_at_least(tw_cancel(handle), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
}

/* tw_reschedule sets the deadline for factor 1. If the worker sleeps until a later time, the call
 * must wake it. */
Test(scaled, reschedule_sets_the_deadline_at_factor_1)
{
	struct tw_scaled *scaled;
	struct tw_handle handle;
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, NS_PER_S, 3 * NS_PER_S);
	handle = scaled_probe(&fixture, scaled, &probe);
	fixture_flush(&fixture);
	check_int(tw_reschedule(handle, 2 * NS_PER_MS), TW_RESCHEDULE_DONE);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 0);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 1);
	handle = scaled_probe(&fixture, scaled, &probe);
	check_int(tw_reschedule(handle, TW_NEVER), TW_RESCHEDULE_DONE);
	factor_set(&fixture, 0);
	fixture_advance(&fixture, 1000 * NS_PER_S);
	check_int(probe.runs, 0);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, kinds_of_one_engine_share_the_factor)
{
	struct tw_scaled *idle, *request, *same;
	struct probe probe[3];
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	idle = scaled_open(fixture.engine, NS_PER_S, 101 * NS_PER_S);
	request = scaled_open(fixture.engine, 5 * NS_PER_S, 15 * NS_PER_S);
	same = scaled_open(fixture.engine, 0, 0);
	(void)scaled_probe(&fixture, idle, &probe[0]);
	(void)scaled_probe(&fixture, request, &probe[1]);
	(void)scaled_probe(&fixture, same, &probe[2]);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe[2].runs, 1);
	factor_set(&fixture, 0.1);
	fixture_advance(&fixture, 6 * NS_PER_S - NS_PER_MS - 1);
	check_int(probe[1].runs, 0);
	fixture_advance(&fixture, NS_PER_MS + 1);
	check_int(probe[1].runs, 1);
	check_int(probe[0].runs, 0);
	fixture_advance(&fixture, 5 * NS_PER_S);
	check_int(probe[0].runs, 1);
	scaled_close(idle);
	/* The next kind gets the seat of the closed one. */
	idle = scaled_open(fixture.engine, 0, 10 * NS_PER_S);
	(void)scaled_probe(&fixture, idle, &probe[0]);
	factor_set(&fixture, 1);
	fixture_advance(&fixture, 9 * NS_PER_S);
	check_int(probe[0].runs, 0);
	factor_set(&fixture, 0.5);
	fixture_flush(&fixture);
	check_int(probe[0].runs, 1);
	scaled_close(idle);
	scaled_close(request);
	scaled_close(same);
	fixture_close(&fixture);
}

/* A callback that makes calls on its own kind, and their results. */
struct again {
	struct tw_scaled *scaled;
	struct tw_engine *engine;
	int runs, left;
	int code, engine_right, touched, stopped;
	double factor;
};

static void on_again(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof run};
	struct again *again = arg;

	again->runs++;
	again->engine_right += tw_run_get(&run) == 0 && run.engine == again->engine;
	again->touched = tw_scaled_touch(again->scaled, self);
	again->stopped = tw_scaled_stop(again->scaled, NULL, NULL, 0);
	again->code |= tw_scaled_factor_set(again->engine, again->factor);
	if (--again->left > 0)
		again->code |= tw_scaled_schedule(again->scaled,
						  (const struct tw_kind *)run.context, again, NULL);
}

Test(scaled, callbacks_may_use_their_kind)
{
	struct tw_kind kind = TW_KIND_WITH(.callback = on_again, .context = &kind);
	struct again again = {.left = 5, .factor = 0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	again.engine = fixture.engine;
	again.scaled = scaled_open(fixture.engine, NS_PER_S, 10 * NS_PER_S);
	(void)scaled_schedule(again.scaled, &kind, &again);
	fixture_advance(&fixture, 11 * NS_PER_S);
	check_int(again.runs, 1);
	/* The callback has set the factor to 0, so the next runs come every second. */
	for (int i = 2; i <= 5; i++) {
		fixture_advance(&fixture, NS_PER_S + NS_PER_MS);
		check_int(again.runs, i);
	}
	check_int(again.engine_right, 5);
	check_int(again.touched, TW_RESCHEDULE_RUNNING);
	check_int(again.stopped, -EDEADLK);
	check_int(again.code, 0);
	scaled_close(again.scaled);
	fixture_close(&fixture);
}

/* More timeouts are overdue than a turn runs. None may be lost, and other timeouts must run
 * between the turns. */
Test(scaled, overdue_timeouts_run_in_portions)
{
	enum { COUNT = 20000 };
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct tw_stats stats;
	atomic_int runs = 0;
	uint64_t turns;

	fixture_open(&fixture, NULL);
	scaled = scaled_open(fixture.engine, 0, 1000 * NS_PER_S);
	for (int i = 0; i < COUNT; i++) {
		(void)scaled_schedule(scaled, &count_kind, &runs);
		if (i % 100 == 0)
			fixture_advance(&fixture, NS_PER_MS);
	}
	stats = stats_of(fixture.engine);
	turns = stats.turns;
	factor_set(&fixture, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, COUNT);
	stats = stats_of(fixture.engine);
	check_at_least(stats.turns - turns, COUNT / 2048);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, runs_in_an_executor)
{
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_RUN, 8);
	scaled = scaled_open(fixture.engine, NS_PER_MS, NS_PER_S);
	(void)scaled_probe(&fixture, scaled, &probe);
	factor_set(&fixture, 0);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 0);
	check_int(executor.count, 1);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(probe.runs, 1);
	scaled_close(scaled);
	fixture_close(&fixture);
}

static struct tw_engine *front;
static int stop_code;

static void on_stop(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	stop_code = tw_engine_stop(front, NULL, NULL, 0);
}

Test(scaled, engine_cannot_be_stopped_in_an_executor)
{
	static const struct tw_kind stops = TW_KIND(on_stop, NULL);
	struct tw_scaled *scaled;
	struct fixture fixture;

	executor_open(&fixture, TW_REJECTION_RUN, 8);
	front = fixture.engine;
	scaled = scaled_open(fixture.engine, NS_PER_MS, NS_PER_S);
	(void)scaled_schedule(scaled, &stops, NULL);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(executor.count, 1);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(stop_code, -EDEADLK);
	scaled_close(scaled);
	fixture_close(&fixture);
}

static void on_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	int *count = context;

	(void)self;
	(void)kind;
	(void)arg;
	(void)late_by_ns;
	++*count;
}

/* If the worker was stalled for longer than the bound on lateness, the kind's own timer must
 * still run. */
Test(scaled, bound_on_lateness_of_the_engine)
{
	struct tw_options options = fixture_options();
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;
	int late = 0;

	options.late_ns = 2 * NS_PER_MS;
	options.on_late = on_late;
	options.late_context = &late;
	fixture_open(&fixture, &options);
	scaled = scaled_open(fixture.engine, NS_PER_MS, 10 * NS_PER_MS);
	(void)scaled_probe(&fixture, scaled, &probe);
	fixture_advance(&fixture, NS_PER_S);
	check_int(probe.runs, 1);
	check_int(late, 0);
	scaled_close(scaled);
	fixture_close(&fixture);
}

Test(scaled, factor_moves_the_next_deadline_of_a_loop)
{
	struct tw_options options = fixture_options();
	struct tw_scaled *scaled;
	struct fixture fixture;
	struct probe probe;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	scaled = scaled_open(fixture.engine, NS_PER_S, 11 * NS_PER_S);
	(void)scaled_probe(&fixture, scaled, &probe);
	check_at_least(tw_engine_poll(fixture.engine, 0), 0);
	check_at_most(tw_engine_next_due(fixture.engine), 11 * NS_PER_S + NS_PER_MS);
	fixture_advance(&fixture, 5 * NS_PER_S);
	check_int(probe.runs, 0);
	factor_set(&fixture, 0.4);
	check_at_most(tw_engine_next_due(fixture.engine), fixture.now_ns);
	check_at_least(tw_engine_poll(fixture.engine, 0), 0);
	check_int(probe.runs, 1);
	scaled_close(scaled);
	check_int(tw_loop_exit(fixture.engine), 0);
	fixture_close(&fixture);
}
