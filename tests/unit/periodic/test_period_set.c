/* SPDX-License-Identifier: MIT */
/*
 * tw_period_set: a run changes the period of its chain permanently.
 *
 * Seen to fail with these defects: the new period is not kept after the next run; the interval
 * after this run is still the old one.
 */
#include "periodic_scene.h"

#include <errno.h>

static struct fixture fixture;
static int runs, code;
static int64_t ran_ms[16];
static struct tw_handle other;

static void on_tick(struct tw_handle self, void *arg)
{
	int64_t now_ns = tw_engine_now(fixture.engine);

	(void)arg;
	ran_ms[runs++] = now_ns / NS_PER_MS;
	if (runs == 2) {
		check_int(tw_period_set(self, 0), -EINVAL);
		check_int(tw_period_set(self, -1), -EINVAL);
		check_int(tw_period_set(self, INT64_MIN), -ERANGE);
		check_int(tw_period_set(other, TW_MS(5)), -EPERM);
		code = tw_period_set(self, TW_MS(30));
	}
	if (runs == 4)
		check_int(tw_period_next(self, TW_MS(5)), 0);
	if (runs == 6) {
		check_int(tw_period_next(self, TW_MS(5)), 0);
		check_int(tw_period_set(self, TW_NEVER), 0);
	}
}

static const struct tw_kind tick_kind = TW_KIND(on_tick, NULL);

static void check_runs(const struct tw_period *period)
{
	static const int64_t due_ms[] = {10, 20, 50, 80, 85, 115};
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	other = must_schedule(fixture.engine, TW_NEVER, &tick_kind, NULL);
	check_int(tw_schedule_periodic(fixture.engine, period, &tick_kind, NULL, &handle), 0);
	for (int ms = 1; ms <= 300; ms++)
		fixture_advance_to(&fixture, ms * NS_PER_MS);
	check_int(code, 0);
	check_int(runs, 6);
	for (int run = 0; run < runs; run++)
		check_true(ran_ms[run] >= due_ms[run] && ran_ms[run] <= due_ms[run] + 1 + run);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	check_int(tw_period_set(handle, TW_MS(5)), -EPERM);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

Test(period_set, a_fixed_rate_goes_on_with_the_new_period)
{
	static const struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);

	check_runs(&period);
}

Test(period_set, a_fixed_delay_goes_on_with_the_new_period)
{
	static const struct tw_period period = TW_PERIOD_DELAY(10 * NS_PER_MS);

	check_runs(&period);
}

Test(period_set, wrong_handles_are_rejected)
{
	check_int(tw_period_set(TW_HANDLE_NONE, TW_MS(1)), -EINVAL);
	fixture_open(&fixture, NULL);
	other = must_schedule(fixture.engine, TW_NEVER, &tick_kind, NULL);
	check_int(tw_period_set(other, TW_MS(1)), -EPERM);
	check_int(tw_cancel(other), TW_CANCEL_DONE);
	fixture_close(&fixture);
}
