/* SPDX-License-Identifier: MIT */
/* Callbacks run in the work queue of libuv. */
#include "check.h"

#include <tickwheel/uv.h>
#include <uv.h>

/* example: tw_uv_create tw_uv_dispatch */
/* Callbacks run in libuv's threads while the loop runs. */
static int queue_open(struct tw_options *options, uv_loop_t *loop,
		      struct tw_uv **ret_executor)
{
	int code = tw_uv_create(loop, 10000, ret_executor);

	if (code < 0)
		return code;
	options->dispatch = tw_uv_dispatch;
	options->dispatch_context = *ret_executor;
	return 0;
}
/* end */

/* example: tw_uv_flush */
/* For the loop's thread: a plain stop there would wait for
 * itself. */
static int timers_stop(struct tw_engine *engine,
		       struct tw_uv *executor)
{
	int code;

	while ((code = tw_engine_stop(engine, NULL, NULL,
				      TW_MS(1))) == -ETIMEDOUT)
		tw_uv_flush(executor);
	return code < 0 ? code : tw_engine_destroy(engine);
}
/* end */

/* example: tw_uv_close */
/* Call it when no engine uses the executor any more. */
static int queue_close(uv_loop_t *loop, struct tw_uv *executor)
{
	while (tw_uv_close(executor) == -EBUSY)
		uv_run(loop, UV_RUN_ONCE);
	uv_run(loop, UV_RUN_DEFAULT); /* frees the executor */
	return uv_loop_close(loop);
}
/* end */

static int runs;

static void on_job(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
	__atomic_fetch_add(&runs, 1, __ATOMIC_RELAXED);
}

static const struct tw_kind job = TW_KIND(on_job, NULL);

int main(void)
{
	enum { JOBS = 10 };
	struct tw_options options = bench_options();
	struct tw_engine *engine;
	struct tw_uv *executor;
	uv_loop_t loop;

	CHECK(uv_loop_init(&loop) == 0);
	CHECK(queue_open(&options, &loop, &executor) == 0);
	CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < JOBS; i++)
		CHECK(tw_schedule(engine, 0, &job, NULL, NULL) ==
		      0);
	while (tw_engine_pending(engine) > 0)
		uv_run(&loop, UV_RUN_ONCE);
	CHECK(timers_stop(engine, executor) == 0 &&
	      queue_close(&loop, executor) == 0);
	CHECK(runs == JOBS);
	return 0;
}
