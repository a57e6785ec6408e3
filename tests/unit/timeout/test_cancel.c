/* SPDX-License-Identifier: MIT */
/* tw_cancel: every outcome. The finaliser must run exactly once, with the right end. */
#include "probe.h"

#include <errno.h>

static void check_ended_once(struct probe *probe, int runs, enum tw_end end)
{
	check_int(probe->runs, runs);
	check_int(probe->finalised, 1);
	check_int(probe->end, end);
}

Test(cancel, cancel_before_transfer_finalises_once)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
	fixture_advance(&fixture, NS_PER_S);
	fixture_close(&fixture);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
}

Test(cancel, cancel_in_the_wheel_finalises_once)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 5 * NS_PER_MS);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(stats_of(fixture.engine).transferred, 1);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_advance(&fixture, NS_PER_S);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
}

Test(cancel, second_cancel_returns_cancelled)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, TW_NEVER);
	fixture_flush(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_CANCELLED);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
}

Test(cancel, cancel_after_expiry_returns_expired)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	check_int(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_EXPIRED);
	check_ended_once(&probe, 1, TW_END_EXPIRED);
	check_int(stats_of(fixture.engine).cancelled, 0);
	fixture_close(&fixture);
}

Test(cancel, cancel_after_stop_returns_cancelled)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_stop(&fixture);
	check_ended_once(&probe, 0, TW_END_UNEXPIRED);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
	check_ended_once(&probe, 0, TW_END_UNEXPIRED);
}

Test(cancel, cancel_after_destroy_changes_nothing)
{
	struct fixture fixture;
	struct probe probes[3];
	struct tw_handle handles[3];
	int i;
	int outcome;

	fixture_open(&fixture, NULL);
	handles[0] = probe_schedule(&fixture, &probes[0], NS_PER_S);
	handles[1] = probe_schedule(&fixture, &probes[1], 1);
	handles[2] = probe_schedule(&fixture, &probes[2], NS_PER_S);
	check_int(tw_cancel(handles[2]), TW_CANCEL_DONE);
	fixture_advance(&fixture, NS_PER_MS);
	fixture_close(&fixture);
	for (i = 0; i < 3; i++) {
		outcome = tw_cancel(handles[i]);
		check_true(outcome != TW_CANCEL_DONE && outcome != TW_CANCEL_RUNNING);
		check_at_least(outcome, 0);
		check_true(tw_timeout_state(handles[i]) != TW_STATE_INIT);
	}
	check_ended_once(&probes[0], 0, TW_END_UNEXPIRED);
	check_ended_once(&probes[1], 1, TW_END_EXPIRED);
	check_ended_once(&probes[2], 0, TW_END_CANCELLED);
}

Test(cancel, cancel_of_a_zero_handle_is_rejected)
{
	const struct tw_handle zeros = {0};

	check_int(tw_cancel(zeros), -EINVAL);
	check_int(tw_cancel_wait(zeros, 0), -EINVAL);
	check_int(tw_cancel_wait(zeros, TW_NEVER), -EINVAL);
}

Test(cancel, handle_of_a_stopped_engine_cancels_no_other)
{
	struct fixture first;
	struct fixture second;
	struct probe probe;
	struct probe other;
	struct tw_handle handle;

	fixture_open(&first, NULL);
	fixture_open(&second, NULL);
	handle = probe_schedule(&first, &probe, NS_PER_S);
	probe_schedule(&second, &other, NS_PER_S);
	fixture_close(&first);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_engine_pending(second.engine), 1);
	fixture_advance(&second, 2 * NS_PER_S);
	check_ended_once(&other, 1, TW_END_EXPIRED);
	fixture_close(&second);
}

Test(cancel, cancel_during_another_engines_callback_is_done)
{
	struct fixture first;
	struct fixture second;
	struct probe probe;
	struct gate gate;
	struct tw_handle handle;

	fixture_open(&first, NULL);
	fixture_open(&second, NULL);
	gate_hold(&first, &gate);
	handle = probe_schedule(&second, &probe, NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	gate_open(&gate);
	fixture_close(&first);
	fixture_close(&second);
	check_ended_once(&probe, 0, TW_END_CANCELLED);
}

struct self_cancel {
	atomic_int cancel;
	atomic_int wait;
	atomic_int finalised;
};

static void on_self_cancel(struct tw_handle self, void *arg)
{
	struct self_cancel *own = arg;

	atomic_store(&own->cancel, tw_cancel(self));
	atomic_store(&own->wait, tw_cancel_wait(self, TW_NEVER));
}

static void on_self_cancel_end(void *arg, enum tw_end end)
{
	struct self_cancel *own = arg;

	if (end == TW_END_EXPIRED)
		atomic_fetch_add(&own->finalised, 1);
}

static const struct tw_kind self_cancel_kind = TW_KIND(on_self_cancel, on_self_cancel_end);

Test(cancel, own_timeout_in_its_callback_is_running)
{
	struct self_cancel own = {-1, -1, 0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 1, &self_cancel_kind, &own);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(own.cancel, TW_CANCEL_RUNNING);
	check_int(own.wait, TW_CANCEL_RUNNING);
	check_int(own.finalised, 1);
	fixture_close(&fixture);
	check_int(own.finalised, 1);
}

Test(cancel, finaliser_has_run_when_cancel_returns)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 1000; i++) {
		handle = probe_schedule(&fixture, &probe, i % 3 * NS_PER_S + 1);
		if (i % 2)
			fixture_flush(&fixture);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
		check_ended_once(&probe, 0, TW_END_CANCELLED);
	}
	fixture_close(&fixture);
}
