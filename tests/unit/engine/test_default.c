/* SPDX-License-Identifier: MIT */
/*
 * The default engine: made once, by the options that were set before, and there until the exit.
 * Each test has a process of its own.
 *
 * Seen to fail: options that are accepted after the engine exists; a destroy that is accepted.
 */
#include "fixture.h"
#include "probe.h"

#include <errno.h>

/*
 * For ThreadSanitizer. The engine stays until the exit, and so does its thread, which a destroy would
 * join.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

static atomic_int runs;

static void stop(void)
{
	check_int(tw_engine_stop(tw_default_engine(), NULL, NULL, TW_NEVER), 0);
}

Test(default_engine, every_call_returns_the_same_one)
{
	struct tw_engine *engine = tw_default_engine();

	check_true(engine != NULL && tw_default_engine() == engine);
	check_int(tw_engine_state(engine), TW_ENGINE_NEW);
	check_int(tw_schedule(engine, 0, &count_kind, &runs, NULL), 0);
	check_true(wait_until_at_least(&runs, 1));
	check_int(tw_engine_destroy(engine), -EBUSY);
	stop();
	check_true(tw_default_engine() == engine);
	check_int(tw_engine_destroy(engine), -EBUSY);
	check_int(tw_schedule(engine, 0, &count_kind, &runs, NULL), -ESHUTDOWN);
}

Test(default_engine, the_last_options_count_until_the_first_call)
{
	struct tw_options options;
	struct tw_clock *clock;

	check_int(tw_clock_create_virtual(77, &clock), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_default_options_set(&options), 0);
	options.flags = 0;
	options.clock = clock;
	check_int(tw_default_options_set(&options), 0);
	check_int(tw_engine_now(tw_default_engine()), 77);
	check_int(tw_engine_poll(tw_default_engine(), 0), -EINVAL);
	check_int(tw_default_options_set(&options), -EBUSY);
	stop();
}

Test(default_engine, bad_options_change_nothing)
{
	struct tw_options options;

	check_int(tw_default_options_set(NULL), -EINVAL);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.tick_ns = 0;
	check_int(tw_default_options_set(&options), -EINVAL);
	check_true(tw_default_engine() != NULL);
	check_int(tw_default_options_set(&options), -EINVAL);
	stop();
}

/* A clock that has an engine already cannot serve another one. */
Test(default_engine, a_creation_that_fails_is_tried_again)
{
	struct tw_options options;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.clock = fixture.clock;
	check_int(tw_default_options_set(&options), 0);
	check_true(tw_default_engine() == NULL);
	check_int(tw_default_options_set(&options), -EBUSY);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(fixture.engine), 0);
	check_true(tw_default_engine() != NULL);
	stop();
}
