/* SPDX-License-Identifier: MIT */
/* Engines on clocks of the system, and on a virtual clock that a
 * test moves. */
#include "check.h"

#include <time.h>

/* example: tw_clock_create */
/* The timeouts also count the time of a suspend. */
static int leases_open(struct tw_clock **ret_clock,
		       struct tw_engine **ret_engine)
{
	struct tw_options options;
	int code = tw_clock_create(TW_CLOCK_BOOTTIME, ret_clock);

	if (code < 0)
		return code;
	tw_options_init(&options, sizeof(options));
	options.clock = *ret_clock;
	return tw_engine_create(&options, ret_engine);
}
/* end */

/* example: tw_clock_destroy */
/* Frees the clock last, because the engine uses it. */
static int engine_close(struct tw_engine *engine,
			struct tw_clock *clock)
{
	int code = tw_engine_stop(engine, NULL, NULL, TW_NEVER);

	if (code == 0)
		code = tw_engine_destroy(engine);
	return code < 0 ? code : tw_clock_destroy(clock);
}
/* end */

/* example: tw_clock_type tw_clock_lag */
/* For a clock that was created with TW_CLOCK_TSC. */
static void clock_report(struct tw_clock *clock)
{
	if (tw_clock_type(clock) == TW_CLOCK_MONOTONIC)
		puts("the processor's counter is not trusted");
	printf("readings are at most %" PRId64 " ns behind\n",
	       tw_clock_lag(clock));
}
/* end */

/* example: tw_clock_create_virtual */
/* A test: time stands still until the test moves it. */
static int test_open(struct tw_clock **ret_clock,
		     struct tw_engine **ret_engine)
{
	struct tw_options options;
	int code = tw_clock_create_virtual(0, ret_clock);

	if (code < 0)
		return code;
	tw_options_init(&options, sizeof(options));
	options.clock = *ret_clock;
	return tw_engine_create(&options, ret_engine);
}
/* end */

/* example: tw_clock_set tw_clock_now tw_engine_flush */
/* When it returns 0, all timeouts that became due have run. */
static int test_pass(struct tw_clock *clock,
		     struct tw_engine *engine, int64_t ns)
{
	int code = tw_clock_set(clock, tw_clock_now(clock) + ns);

	if (code == 0)
		code = tw_engine_flush(engine, TW_S(60));
	return code;
}
/* end */

/* example: tw_schedule_wall */
/* The timeout runs at this date, even if the wall clock is set. */
static int session_end_at(struct tw_engine *engine, time_t date,
			  const struct tw_kind *kind, void *arg)
{
	return tw_schedule_wall(engine, TW_S((int64_t)date), kind,
				arg, NULL);
}
/* end */

/* example: tw_clock_set_wall */
/* A test: sets the wall clock, but no time passes for the
 * engine. */
static int test_set_date(struct tw_clock *clock,
			 struct tw_engine *engine, time_t date)
{
	int code = tw_clock_set_wall(clock, TW_S((int64_t)date));

	if (code == 0)
		code = tw_engine_flush(engine, TW_S(60));
	return code;
}
/* end */

static void on_expired(struct tw_handle self, void *arg)
{
	(void)self;
	*(bool *)arg = true;
}

static const struct tw_kind session = TW_KIND(on_expired, NULL);

static void system_show(void)
{
	struct tw_clock *clock;
	struct tw_engine *engine;

	CHECK(leases_open(&clock, &engine) == 0);
	CHECK(tw_clock_type(clock) == TW_CLOCK_BOOTTIME &&
	      tw_clock_destroy(clock) == -EBUSY);
	CHECK(engine_close(engine, clock) == 0);
	CHECK(tw_clock_create(TW_CLOCK_TSC, &clock) == 0);
	clock_report(clock);
	CHECK(tw_clock_lag(clock) >= 0 &&
	      tw_clock_destroy(clock) == 0);
}

static void virtual_show(void)
{
	struct tw_clock *clock;
	struct tw_engine *engine;
	bool expired = false;

	CHECK(test_open(&clock, &engine) == 0);
	CHECK(tw_schedule(engine, TW_MINUTES(30), &session,
			  &expired, NULL) == 0);
	CHECK(test_pass(clock, engine, TW_MINUTES(29)) == 0 &&
	      !expired);
	CHECK(test_pass(clock, engine, TW_MINUTES(2)) == 0 &&
	      expired);
	CHECK(tw_clock_now(clock) == TW_MINUTES(31));
	CHECK(engine_close(engine, clock) == 0);
}

static void date_show(void)
{
	const time_t date = 1767225600; /* 2026-01-01 */
	struct tw_clock *clock;
	struct tw_engine *engine;
	bool ended = false;

	CHECK(test_open(&clock, &engine) == 0);
	CHECK(test_set_date(clock, engine, date) == 0);
	CHECK(session_end_at(engine, date + 3600, &session,
			     &ended) == 0);
	CHECK(test_set_date(clock, engine, date + 3599) == 0 &&
	      !ended);
	CHECK(test_set_date(clock, engine, date + 3600) == 0 &&
	      ended);
	CHECK(engine_close(engine, clock) == 0);
}

int main(void)
{
	system_show();
	virtual_show();
	date_show();
	return 0;
}
