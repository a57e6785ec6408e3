/* SPDX-License-Identifier: MIT */
/* The tests of Dubbo's own suite for its HashedWheelTimer, with the numbers of that suite, in
 * virtual time. */
#include "probe.h"

#include <errno.h>
#include <string.h>

Test(dubbo, every_bad_argument_is_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	options.tick_ns = 0;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options = fixture_options();
	options.slots = 0;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.slots = UINT32_MAX;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options = fixture_options();
	options.tick_ns = INT64_MAX;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options = fixture_options();
	check_int(tw_engine_create(&options, NULL), -EINVAL);
	check_true(engine == NULL);
}

/*
 * Changes errno and overwrites its parameters. A C callback cannot throw; this is the nearest case.
 */
static void on_failing(struct tw_handle self, void *arg)
{
	memset(&self, 0, sizeof(self));
	errno = EIO;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind failing_kind = TW_KIND(on_failing, NULL);

Test(dubbo, failing_callback_does_not_stop_the_worker)
{
	struct fixture fixture;
	struct tw_handle handle;
	atomic_int runs = 0;
	int i;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, 1, &failing_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 1);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	for (i = 0; i < 10; i++)
		must_schedule(fixture.engine, 1, &failing_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 11);
	fixture_close(&fixture);
}

Test(dubbo, delay_of_minus_one_ms_fires)
{
	struct fixture fixture;
	atomic_int runs = 0;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, -NS_PER_MS, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 1);
	fixture_close(&fixture);
}

Test(dubbo, eight_of_eight_pending_one_more_is_rejected)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	options.tick_ns = 10000000;
	options.slots = 8;
	options.pending_limit = 8;
	fixture_open(&fixture, &options);
	for (i = 0; i < 8; i++)
		must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	check_int(tw_engine_pending(fixture.engine), 8);
	check_int(tw_schedule(fixture.engine, NS_PER_S, &count_kind, &runs, NULL), -EAGAIN);
	check_int(tw_engine_pending(fixture.engine), 8);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 8);
	fixture_close(&fixture);
}

struct stopper {
	struct tw_engine *engine;
	atomic_int result;
};

static void on_stopper(struct tw_handle self, void *arg)
{
	struct stopper *stopper = arg;

	(void)self;
	atomic_store(&stopper->result, tw_engine_stop(stopper->engine, NULL, NULL, TW_NEVER));
}

static const struct tw_kind stopper_kind = TW_KIND(on_stopper, NULL);

Test(dubbo, stop_from_inside_a_callback_is_rejected)
{
	struct fixture fixture;
	struct stopper stopper = {.result = 1};

	fixture_open(&fixture, NULL);
	stopper.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &stopper_kind, &stopper);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(stopper.result, -EDEADLK);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_RUNNING);
	fixture_close(&fixture);
}

static atomic_int warnings;

static void on_log(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)text;
	if (level == TW_LOG_WARNING)
		atomic_fetch_add(&warnings, 1);
}

/* Makes 128 engines with their threads at once. The library must warn exactly once. */
Test(dubbo, many_engines_trip_one_warning)
{
	static const struct tw_log log = {on_log, NULL};
	static struct fixture fixtures[128];
	struct tw_options options = fixture_options();
	atomic_int runs = 0;
	int i;

	options.slots = 16;
	check_int(tw_log_set(&log), 0);
	for (i = 0; i < 128; i++) {
		fixture_open(&fixtures[i], &options);
		must_schedule(fixtures[i].engine, 1, &count_kind, &runs);
	}
	for (i = 0; i < 128; i++)
		fixture_advance(&fixtures[i], NS_PER_MS);
	check_int(runs, 128);
	check_int(warnings, 1);
	for (i = 0; i < 128; i++)
		fixture_close(&fixtures[i]);
}
