/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that are late by more than a bound must be counted. For each of them the library calls
 * the late hook, or the callback if there is no hook.
 *
 * Seen to fail with these defects: both callback and hook run; a timeout that is late by exactly
 * the bound counts as late; late timeouts are not counted; the lateness of a timeout in an executor
 * is not checked; the greatest lateness of a batch is not recorded.
 */
#include "probe.h"

#include <errno.h>
#include <string.h>

#define BOUND_NS (5 * NS_PER_MS)

static struct {
	int count;
	int64_t late_by_ns;
	void *arg;
	const struct tw_kind *kind;
	int own_cancel;
	int64_t rescheduled;
} hooked;

static void late_hook(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		      int64_t late_by_ns)
{
	struct fixture *fixture = context;

	hooked.count++;
	hooked.late_by_ns = late_by_ns;
	hooked.arg = arg;
	hooked.kind = kind;
	hooked.own_cancel = tw_cancel(self);
	hooked.rescheduled = tw_schedule(fixture->engine, NS_PER_MS, &count_kind,
					 &((struct probe *)arg)->runs, NULL);
}

static void late_open(struct fixture *fixture, bool with_hook, tw_dispatch_hook *dispatch)
{
	struct tw_options options = fixture_options();

	memset(&hooked, 0, sizeof(hooked));
	options.late_ns = (uint64_t)BOUND_NS;
	options.on_late = with_hook ? late_hook : NULL;
	options.late_context = fixture;
	options.dispatch = dispatch;
	fixture_open(fixture, &options);
}

/* Schedules a probe for 0.5 ms, and moves the clock to `late_by_ns` after that. */
static void probe_late(struct fixture *fixture, struct probe *probe, int64_t late_by_ns)
{
	probe_init(probe, fixture->engine);
	check_int(tw_schedule_at(fixture->engine, NS_PER_MS / 2, &probe_final_kind, probe, NULL),
		  0);
	fixture_flush(fixture);
	fixture_advance_to(fixture, NS_PER_MS / 2 + late_by_ns);
}

Test(late, at_the_bound_is_not_late)
{
	struct fixture fixture;
	struct probe probe;

	late_open(&fixture, true, NULL);
	probe_late(&fixture, &probe, BOUND_NS);
	check_int(probe.runs, 1);
	check_int(hooked.count, 0);
	check_int(stats_of(fixture.engine).late, 0);
	check_int(stats_of(fixture.engine).latest_ns, BOUND_NS);
	fixture_close(&fixture);
}

Test(late, beyond_it_goes_to_the_hook)
{
	struct fixture fixture;
	struct probe probe;

	late_open(&fixture, true, NULL);
	probe_late(&fixture, &probe, BOUND_NS + 1);
	check_int(probe.runs, 0);
	check_int(hooked.count, 1);
	check_int(hooked.late_by_ns, BOUND_NS + 1);
	check_true(hooked.arg == &probe && hooked.kind == &probe_final_kind);
	check_int(hooked.own_cancel, TW_CANCEL_RUNNING);
	check_int(hooked.rescheduled, 0);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(stats_of(fixture.engine).late, 1);
	check_int(stats_of(fixture.engine).latest_ns, BOUND_NS + 1);
	check_int(stats_of(fixture.engine).expired, 1);
	/* The hook has scheduled a timeout, which must run on time. */
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(hooked.count, 1);
	check_int(stats_of(fixture.engine).latest_ns, BOUND_NS + 1);
	fixture_close(&fixture);
}

Test(late, without_a_hook_it_still_fires)
{
	struct fixture fixture;
	struct probe probe;

	late_open(&fixture, false, NULL);
	probe_late(&fixture, &probe, 3600 * NS_PER_S);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	check_int(stats_of(fixture.engine).late, 1);
	check_int(stats_of(fixture.engine).latest_ns, 3600 * NS_PER_S);
	fixture_close(&fixture);
}

static struct tw_due taken;

static size_t take_one(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)count;
	taken = *due;
	return 1;
}

/* The timeout is on time when the hook hands it to the executor, and late when the executor runs
 * it. */
Test(late, an_executor_is_late)
{
	struct fixture fixture;
	struct probe probe;

	late_open(&fixture, true, take_one);
	probe_late(&fixture, &probe, NS_PER_MS);
	check_int(hooked.count, 0);
	fixture_advance(&fixture, BOUND_NS);
	check_int(tw_due_run(&taken), 0);
	check_int(hooked.count, 1);
	check_int(probe.runs, 0);
	check_int(tw_due_run(&taken), -ESTALE);
	check_int(hooked.count, 1);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(tw_due_run(&taken), 0);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/* After a stall of an hour, each timeout must end exactly once. The timeouts with the latest
 * deadlines must be on time. */
Test(late, after_a_stall_each_timeout_ends_once)
{
	enum { COUNT = 5000 };
	static struct probe probe[COUNT];
	const int64_t stall_ns = 3600 * NS_PER_S;
	struct fixture fixture;
	int on_time = 0;

	late_open(&fixture, true, NULL);
	for (int i = 0; i < COUNT; i++) {
		probe_init(&probe[i], fixture.engine);
		must_schedule_at(fixture.engine, stall_ns - i * NS_PER_MS / 2, &probe_final_kind,
				 &probe[i]);
	}
	fixture_flush(&fixture);
	fixture_advance_to(&fixture, stall_ns + NS_PER_MS);
	for (int i = 0; i < COUNT; i++) {
		check_int(probe[i].finalised, 1);
		on_time += probe[i].runs;
	}
	/* Nine timeouts have a deadline within the last 4 ms of the stall. */
	check_int(on_time, 9);
	check_int(hooked.count, COUNT - 9);
	check_int(stats_of(fixture.engine).late, COUNT - 9);
	check_int(stats_of(fixture.engine).expired, COUNT);
	fixture_close(&fixture);
}

Test(late, bad_options_are_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	options.on_late = late_hook;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.late_ns = options.tick_ns - 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.late_ns = (uint64_t)INT64_MAX + 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.late_ns = options.tick_ns;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	options.late_ns = INT64_MAX;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}
