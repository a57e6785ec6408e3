/* SPDX-License-Identifier: MIT */
/*
 * A thread that waits in tw_engine_settle must be notified in every case. When the worker's thread
 * could not be made, waiting threads were not notified, and they waited for ever.
 *
 * Seen to fail: with a start that fails in silence (hangs).
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

struct settler {
	struct tw_engine *engine;
	pthread_t thread;
	int result;
};

static void *settler_main(void *argument)
{
	struct settler *settler = argument;

	settler->result = tw_engine_settle(settler->engine, PATIENCE_NS);
	return NULL;
}

static void settler_begin(struct settler *settler, struct tw_engine *engine)
{
	settler->engine = engine;
	check_int(pthread_create(&settler->thread, NULL, settler_main, settler), 0);
	/* Time for the settler to wait. If it is too short, the test is weaker, not wrong. */
	sleep_ns(20 * NS_PER_MS);
}

static int settler_end(struct settler *settler)
{
	check_int(pthread_join(settler->thread, NULL), 0);
	return settler->result;
}

static int slow_failure(void *context, void *(*body)(void *arg), void *arg)
{
	(void)body;
	(void)arg;
	atomic_fetch_add((atomic_int *)context, 1);
	sleep_ns(100 * NS_PER_MS);
	return EAGAIN;
}

static void *starter_main(void *engine)
{
	(void)tw_engine_start(engine);
	return NULL;
}

/* The worker's thread cannot be made while a settler already waits. */
Test(settle, settle_fails_when_the_start_fails)
{
	atomic_int attempts = 0;
	struct tw_options options;
	struct tw_engine *engine;
	struct settler settler;
	pthread_t starter;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.thread = slow_failure;
	options.thread_context = &attempts;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(pthread_create(&starter, NULL, starter_main, engine), 0);
	check_true(wait_until_at_least(&attempts, 1));
	settler_begin(&settler, engine);
	check_int(settler_end(&settler), -ENOMEM);
	check_int(pthread_join(starter, NULL), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* A stop comes while the worker is held in a callback and a settler waits for it. */
Test(settle, settle_returns_eshutdown_when_a_stop_comes)
{
	struct settler settler;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	settler_begin(&settler, fixture.engine);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 0), -ETIMEDOUT);
	check_int(settler_end(&settler), -ESHUTDOWN);
	gate_open(&gate);
	fixture_close(&fixture);
}
