/* SPDX-License-Identifier: MIT */
/* tw_engine_stop and tw_engine_destroy. */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

Test(stop, hands_back_with_the_remaining_time)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, 300 * NS_PER_MS);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(fixture.back.remaining_ns, 700 * NS_PER_MS);
	check_true(fixture.back.arg == &probe);
	check_true(fixture.back.kind == &probe_final_kind);
	check_true(same_handle(fixture.back.handle, handle));
	check_int(probe.runs, 0);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}

Test(stop, hands_back_what_was_not_transferred)
{
	struct fixture fixture;
	struct gate gate;
	atomic_int runs = 0;
	int i;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	for (i = 0; i < 1000; i++)
		must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	gate_open(&gate);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1000);
	check_int(stats_of(fixture.engine).unexpired, 1000);
	check_int(runs, 0);
	fixture_close(&fixture);
}

/* A timeout that is overdue at the stop must have run, or be handed back with a negative
 * remaining time. */
Test(stop, overdue_is_unexpired_or_has_run)
{
	struct fixture fixture;
	struct gate gate;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &runs);
	gate_hold(&fixture, &gate);
	check_int(tw_clock_set(fixture.clock, 20 * NS_PER_MS), 0);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 0), -ETIMEDOUT);
	gate_open(&gate);
	fixture_stop(&fixture);
	check_int(runs + fixture.back.count, 1);
	if (fixture.back.count == 1)
		check_int(fixture.back.remaining_ns, -15 * NS_PER_MS);
	fixture_close(&fixture);
}

Test(stop, stop_without_a_hook_finalises)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_int(probe.end, TW_END_UNEXPIRED);
	check_int(stats_of(fixture.engine).unexpired, 1);
	fixture_close(&fixture);
}

Test(stop, twice_the_first_hook_counts)
{
	struct fixture fixture;
	struct back_log second = {0};
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_stop(&fixture);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &second, TW_NEVER), 0);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &second, 0), 0);
	check_int(fixture.back.count, 1);
	check_int(second.count, 0);
	check_int(probe.finalised, 1);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPED);
	fixture_close(&fixture);
}

Test(stop, unstarted_engine_stops_and_rejects_calls)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPED);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, NULL, NULL), -ESHUTDOWN);
	check_int(tw_engine_start(fixture.engine), -ESHUTDOWN);
	fixture_close(&fixture);
}

Test(stop, null_engine_is_rejected_except_by_destroy)
{
	check_int(tw_engine_stop(NULL, NULL, NULL, 0), -EINVAL);
	check_int(tw_engine_start(NULL), -EINVAL);
	check_int(tw_engine_state(NULL), -EINVAL);
	check_int(tw_engine_flush(NULL, 0), -EINVAL);
	check_int(tw_engine_now(NULL), -EINVAL);
	check_int(tw_engine_destroy(NULL), 0);
}

Test(stop, destroy_of_a_new_engine_works)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	fixture_destroy(&fixture);
}

Test(stop, destroy_while_running_is_busy)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	probe_schedule(&fixture, &probe, 1);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(stop, calls_after_stop_return_eshutdown)
{
	struct fixture fixture;
	struct tw_stats stats = {.size = sizeof(stats)};
	struct tw_handle handle = {0};
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, 1);
	fixture_stop(&fixture);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &probe, &handle), -ESHUTDOWN);
	check_int(tw_schedule_at(fixture.engine, 0, &probe_kind, &probe, &handle), -ESHUTDOWN);
	check_true(handle.node == NULL);
	check_int(tw_engine_start(fixture.engine), -ESHUTDOWN);
	check_int(tw_engine_flush(fixture.engine, NS_PER_S), -ESHUTDOWN);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPED);
	check_int(tw_engine_now(fixture.engine), 0);
	check_int(tw_stats_get(fixture.engine, &stats), 0);
	check_int(stats.unexpired, 1);
	check_int(stats.rejected, 2);
	fixture_close(&fixture);
}

Test(stop, times_out_while_a_callback_blocks)
{
	struct fixture fixture;
	struct probe probe;
	struct gate gate;
	int64_t begin_ns;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	probe_schedule(&fixture, &probe, NS_PER_S);
	begin_ns = monotonic_ns();
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 30 * NS_PER_MS),
		  -ETIMEDOUT);
	check_at_least(monotonic_ns() - begin_ns, 30 * NS_PER_MS);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPING);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &probe, NULL), -ESHUTDOWN);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, -1), -ETIMEDOUT);
	gate_open(&gate);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_int(fixture.back.count, 1);
	check_int(probe.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}

/* In the next test, a hand-back hook may make the same calls as a callback. */
struct curious {
	struct tw_engine *engine;
	atomic_int schedule;
	atomic_int stop;
	atomic_int state;
	atomic_int cancel;
	atomic_int count;
};

static void curious_hook(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	struct curious *curious = context;

	(void)kind;
	(void)remaining_ns;
	atomic_store(&curious->schedule, tw_schedule(curious->engine, 1, &count_kind, arg, NULL));
	atomic_store(&curious->stop, tw_engine_stop(curious->engine, NULL, NULL, TW_NEVER));
	atomic_store(&curious->state, tw_timeout_state(handle));
	atomic_store(&curious->cancel, tw_cancel(handle));
	atomic_fetch_add(&curious->count, 1);
}

Test(stop, calls_from_the_hand_back_hook_see_a_closed_engine)
{
	struct curious curious = {0};
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	curious.engine = fixture.engine;
	probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_engine_stop(fixture.engine, curious_hook, &curious, PATIENCE_NS), 0);
	check_int(curious.count, 1);
	check_int(curious.schedule, -ESHUTDOWN);
	check_int(curious.stop, -EDEADLK);
	check_true(curious.state != TW_STATE_INIT);
	check_int(curious.cancel, TW_CANCEL_CANCELLED);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}
