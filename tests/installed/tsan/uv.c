/* SPDX-License-Identifier: MIT */
/*
 * The executor of libuv: a worker, the loop's thread, libuv's threads.
 * ThreadSanitizer must not report any of their accesses.
 */
#include "scene.h"

#include <tickwheel/uv.h>
#include <uv.h>

enum { TIMEOUTS = 300 };

static int values[TIMEOUTS];

static void on_timeout(struct tw_handle self, void *arg)
{
	(void)self;
	must(*(int *)arg == 1);
	*(int *)arg = 2;
	done_note();
}

static void *schedules(void *engine)
{
	static const struct tw_kind kind = TW_KIND(on_timeout, NULL);

	for (int i = 0; i < TIMEOUTS; i++) {
		values[i] = 1;
		must(tw_schedule(engine, i % 3 * MS, &kind, &values[i], NULL) == 0);
	}
	return NULL;
}

int main(void)
{
	struct tw_options options = options_default();
	struct tw_engine *engine;
	struct tw_uv *executor;
	pthread_t thread;
	uv_loop_t loop;

	must(uv_loop_init(&loop) == 0);
	must(tw_uv_create(&loop, 0, &executor) == 0);
	options.dispatch = tw_uv_dispatch;
	options.dispatch_context = executor;
	must(tw_engine_create(&options, &engine) == 0);
	thread = thread_begin(schedules, engine);
	await((tw_uv_flush(executor), uv_run(&loop, UV_RUN_NOWAIT), done_now() == TIMEOUTS));
	engine_end(engine);
	for (int i = 0; i < TIMEOUTS; i++)
		must(values[i] == 2);
	await((uv_run(&loop, UV_RUN_NOWAIT), tw_uv_close(executor) == 0));
	must(uv_run(&loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&loop) == 0);
	thread_end(thread);
	return 0;
}
