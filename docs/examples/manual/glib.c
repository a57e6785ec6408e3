/* SPDX-License-Identifier: MIT */
/* Callbacks run in threads of GLib. */
#include "check.h"

#include <tickwheel/glib.h>

/* example: tw_glib_create tw_glib_dispatch */
/* Callbacks run in four threads; up to 10,000 may wait for a
 * thread. */
static int pool_open(struct tw_options *options,
		     struct tw_glib **ret_executor)
{
	int code = tw_glib_create(4, 10000, ret_executor);

	if (code < 0)
		return code;
	options->dispatch = tw_glib_dispatch;
	options->dispatch_context = *ret_executor;
	return 0;
}
/* end */

/* example: tw_glib_destroy */
/* Ends the engine first, because it uses the executor. */
static int pool_close(struct tw_engine *engine,
		      struct tw_glib *executor)
{
	int code = tw_engine_stop(engine, NULL, NULL, TW_NEVER);

	if (code == 0)
		code = tw_engine_destroy(engine);
	return code < 0 ? code : tw_glib_destroy(executor);
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
	struct tw_glib *executor;
	struct tw_engine *engine;

	CHECK(pool_open(&options, &executor) == 0);
	CHECK(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < JOBS; i++)
		CHECK(tw_schedule(engine, 0, &job, NULL, NULL) ==
		      0);
	while (tw_engine_pending(engine) > 0)
		CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	CHECK(pool_close(engine, executor) == 0 && runs == JOBS);
	return 0;
}
