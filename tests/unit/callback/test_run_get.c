/* SPDX-License-Identifier: MIT */
/*
 * tw_run_get must return the data of the callback's own run, and an error in places that are not
 * inside a run.
 *
 * Seen to fail with these defects: tw_run_get returns the data of the outermost run instead of the
 * innermost one; lateness counts from the time of the schedule; a hand-back counts as a run.
 */
#include "fixture.h"
#include "probe.h"

#include <errno.h>

struct seen {
	struct tw_run run;
	int code;
	int calls;
};

static struct seen seen, seen_inside;
static struct fixture fixture;
static struct tw_engine *loop;

static void look(struct seen *ret)
{
	ret->run = (struct tw_run){.size = sizeof ret->run};
	ret->code = tw_run_get(&ret->run);
	ret->calls++;
}

static void on_look(struct tw_handle self, void *arg)
{
	(void)self;
	look(arg);
}

static void on_end(void *arg, enum tw_end end)
{
	(void)end;
	look(arg);
}

static int context;
static const struct tw_kind look_kind = TW_KIND_WITH(.callback = on_look, .context = &context);
static const struct tw_kind final_kind = TW_KIND(on_look, on_end);

static void check_run(const struct seen *run, struct tw_handle handle, int64_t deadline_ns,
		      int64_t late_ns)
{
	check_int(run->code, 0);
	check_true(run->run.engine == fixture.engine && run->run.arg == run);
	check_true(tw_handle_equal(run->run.handle, handle));
	check_int(run->run.deadline_ns, deadline_ns);
	check_int(run->run.late_ns, late_ns);
}

Test(run_get, callback_sees_its_engine_kind_deadline_and_lateness)
{
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, 10 * NS_PER_MS, &look_kind, &seen);
	fixture_advance(&fixture, 17 * NS_PER_MS);
	check_int(seen.calls, 1);
	check_run(&seen, handle, 10 * NS_PER_MS, 7 * NS_PER_MS);
	check_true(seen.run.kind == &look_kind && seen.run.context == &context);
	fixture_close(&fixture);
}

Test(run_get, each_run_of_a_periodic_timeout_has_its_own_deadline)
{
	static const struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_periodic(fixture.engine, &period, &look_kind, &seen, &handle), 0);
	for (int run = 1; run <= 3; run++) {
		fixture_advance_to(&fixture, run * 10 * NS_PER_MS + NS_PER_MS);
		check_int(seen.calls, run);
		check_run(&seen, handle, run * 10 * NS_PER_MS, NS_PER_MS);
	}
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

static void on_poll(struct tw_handle self, void *arg)
{
	(void)self;
	check_int(tw_schedule_at(loop, 0, &look_kind, &seen_inside, NULL), 0);
	check_int(tw_engine_poll(loop, 0), 1);
	look(arg);
}

Test(run_get, the_innermost_run_is_seen)
{
	static const struct tw_kind poll_kind = TW_KIND(on_poll, NULL);
	struct tw_options options;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &loop), 0);
	handle = must_schedule(fixture.engine, NS_PER_MS, &poll_kind, &seen);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(seen_inside.calls, 1);
	check_int(seen_inside.code, 0);
	check_true(seen_inside.run.engine == loop && seen_inside.run.kind == &look_kind);
	check_run(&seen, handle, NS_PER_MS, NS_PER_MS);
	check_true(seen.run.kind == &poll_kind && seen.run.context == NULL);
	check_int(tw_engine_stop(loop, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(loop), 0);
	fixture_close(&fixture);
}

static struct tw_due handed;

static size_t hand(void *unused, const struct tw_due *due, size_t count)
{
	(void)unused;
	handed = *due;
	return count;
}

Test(run_get, an_executor_sees_the_run_on_its_thread)
{
	struct tw_options options = fixture_options();
	struct tw_handle handle;

	options.dispatch = hand;
	fixture_open(&fixture, &options);
	handle = must_schedule(fixture.engine, NS_PER_MS, &look_kind, &seen);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(seen.calls, 0);
	check_int(tw_due_run(&handed), 0);
	check_run(&seen, handle, NS_PER_MS, NS_PER_MS);
	fixture_close(&fixture);
}

static void on_back(void *unused, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		    int64_t remaining_ns)
{
	(void)unused, (void)handle, (void)kind, (void)remaining_ns;
	look(arg);
}

Test(run_get, finalisers_see_a_run_only_after_a_callback)
{
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, NS_PER_MS, &final_kind, &seen);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(seen.calls, 2);
	check_run(&seen, handle, NS_PER_MS, NS_PER_MS);
	handle = must_schedule(fixture.engine, NS_PER_MS, &final_kind, &seen);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(seen.calls, 3);
	check_int(seen.code, -EPERM);
	(void)must_schedule(fixture.engine, TW_NEVER, &look_kind, &seen);
	check_int(tw_engine_stop(fixture.engine, on_back, NULL, TW_NEVER), 0);
	check_int(seen.calls, 4);
	check_int(seen.code, -EPERM);
	fixture_destroy(&fixture);
}

Test(run_get, outside_of_a_run_and_odd_arguments_are_rejected)
{
	struct tw_run run = {.size = sizeof run};

	check_int(tw_run_get(NULL), -EINVAL);
	check_int(tw_run_get(&run), -EPERM);
	run.size--;
	check_int(tw_run_get(&run), -EINVAL);
	run.size = 4097;
	check_int(tw_run_get(&run), -EINVAL);
}
