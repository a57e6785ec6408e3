/* SPDX-License-Identifier: MIT */
/* An engine from its creation to its destroy, and the calls of a
 * health check. */
#include "check.h"

enum { REQUESTS_MAX = 2 };

static int unexpired;

static void on_unexpired(void *context, struct tw_handle handle,
			 const struct tw_kind *kind, void *arg,
			 int64_t remaining_ns)
{
	(void)context, (void)handle, (void)kind, (void)arg,
		(void)remaining_ns;
	unexpired++;
}

/* example: tw_options_init tw_engine_create */
static int timers_open(struct tw_engine **ret_engine)
{
	struct tw_options options;
	int code = tw_options_init(&options, sizeof(options));

	if (code < 0)
		return code;
	options.thread_name = "timers";
	options.pending_limit = 100000; /* more are rejected */
	options.late_ns = TW_MS(20);    /* later runs are counted */
	return tw_engine_create(&options, ret_engine);
}
/* end */

/* example: tw_engine_start */
/* Called when the server starts, so that it can report a
 * failure. */
static int timers_start(struct tw_engine *engine)
{
	int code = tw_engine_start(engine);

	if (code < 0)
		fprintf(stderr, "no timers: %s\n",
			tw_strerror(code));
	return code;
}
/* end */

/* example: tw_engine_stop tw_engine_destroy */
/* on_unexpired receives each timeout that has not run. */
static int timers_close(struct tw_engine *engine)
{
	int code = tw_engine_stop(engine, on_unexpired, NULL,
				  TW_S(30));

	if (code == 0)
		code = tw_engine_destroy(engine);
	else if (code == -ETIMEDOUT)
		fputs("a callback still runs\n", stderr);
	return code;
}
/* end */

/* example: tw_engine_pending */
/* Each request has one timeout. Returns whether another request may
 * begin. */
static bool request_acceptable(struct tw_engine *engine)
{
	int64_t pending = tw_engine_pending(engine);

	return pending >= 0 && pending < REQUESTS_MAX;
}
/* end */

/* example: tw_engine_state tw_engine_state_name */
static bool timers_healthy(struct tw_engine *engine)
{
	int state = tw_engine_state(engine);

	if (state >= TW_ENGINE_NEW && state <= TW_ENGINE_RUNNING)
		return true;
	printf("timers: %s\n", tw_engine_state_name(state));
	return false;
}
/* end */

/* example: tw_engine_watch */
/* Called each second, on a thread other than the worker. */
static bool timers_responsive(struct tw_engine *engine)
{
	int slow = tw_engine_watch(engine);

	if (slow > 0)
		printf("%d callbacks take too long\n", slow);
	return slow == 0;
}
/* end */

static void on_timeout(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static const struct tw_kind request_timeout =
	TW_KIND(on_timeout, NULL);

static void life_show(void)
{
	struct tw_engine *engine;

	CHECK(timers_open(&engine) == 0);
	CHECK(timers_start(engine) == 0 && timers_healthy(engine));
	for (int i = 0; i < REQUESTS_MAX; i++) {
		CHECK(request_acceptable(engine));
		CHECK(tw_schedule(engine, TW_HOURS(1),
				  &request_timeout, NULL,
				  NULL) == 0);
	}
	CHECK(!request_acceptable(engine));
	CHECK(timers_close(engine) == 0 &&
	      unexpired == REQUESTS_MAX);
}

static bool responsive;

/* Takes a second of the virtual clock. */
static void on_slow(struct tw_handle self, void *arg)
{
	struct bench *bench = arg;

	(void)self;
	CHECK(tw_clock_set(bench->clock,
			   tw_clock_now(bench->clock) + TW_S(1)) ==
	      0);
	responsive = timers_responsive(bench->engine);
}

static const struct tw_kind slow = TW_KIND(on_slow, NULL);

static void watch_show(void)
{
	struct tw_options options = bench_options();
	struct bench bench;

	options.slow_ns = TW_MS(50);
	bench = bench_open(options);
	CHECK(timers_responsive(bench.engine));
	CHECK(tw_schedule(bench.engine, 0, &slow, &bench, NULL) ==
	      0);
	bench_pass(&bench, TW_MS(2));
	CHECK(!responsive && timers_responsive(bench.engine));
	bench_stop(&bench);
	CHECK(!timers_healthy(bench.engine));
	bench_close(&bench);
}

int main(void)
{
	life_show();
	watch_show();
	return 0;
}
