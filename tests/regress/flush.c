/* SPDX-License-Identifier: MIT */
/*
 * Each thread that waits in tw_engine_flush must be notified, however the wait ends. When the
 * worker's thread could not be made, the waiting threads were not notified and waited for ever.
 *
 * Seen to fail with this defect: a failed start notifies no waiting thread, so the test hangs.
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

struct flusher {
	struct tw_engine *engine;
	pthread_t thread;
	int result;
};

static void *flusher_main(void *argument)
{
	struct flusher *flusher = argument;

	flusher->result = tw_engine_flush(flusher->engine, PATIENCE_NS);
	return NULL;
}

static void flusher_begin(struct flusher *flusher, struct tw_engine *engine)
{
	flusher->engine = engine;
	check_int(pthread_create(&flusher->thread, NULL, flusher_main, flusher), 0);
	/* Gives the flusher time to begin its wait. If the time is too short, the test is
	 * weaker, not wrong. */
	sleep_ns(20 * NS_PER_MS);
}

static int flusher_end(struct flusher *flusher)
{
	check_int(pthread_join(flusher->thread, NULL), 0);
	return flusher->result;
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

/* A flusher already waits when the attempt to make the worker's thread fails. */
Test(flush, flush_fails_when_the_start_fails)
{
	atomic_int attempts = 0;
	struct tw_options options;
	struct tw_engine *engine;
	struct flusher flusher;
	pthread_t starter;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.thread = slow_failure;
	options.thread_context = &attempts;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(pthread_create(&starter, NULL, starter_main, engine), 0);
	check_true(wait_until_at_least(&attempts, 1));
	flusher_begin(&flusher, engine);
	check_int(flusher_end(&flusher), -ENOMEM);
	check_int(pthread_join(starter, NULL), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* The engine is stopped while a callback holds the worker and a flusher waits for the worker. */
Test(flush, flush_returns_eshutdown_when_a_stop_comes)
{
	struct flusher flusher;
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	flusher_begin(&flusher, fixture.engine);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 0), -ETIMEDOUT);
	check_int(flusher_end(&flusher), -ESHUTDOWN);
	gate_open(&gate);
	fixture_close(&fixture);
}
