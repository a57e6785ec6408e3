/* SPDX-License-Identifier: MIT */
/* Tickwheel in a libuv loop: a uv_poll_t waits for the engine's descriptor. */
#include <stdio.h>
#include <tickwheel.h>
#include <uv.h>

static uv_poll_t poller;
static int left = 3;

static void on_tick(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof(run)};

	(void)self;
	(void)arg;
	printf("tick %d\n", left--);
	if (left == 0)
		uv_poll_stop(&poller);
	else if (tw_run_get(&run) == 0)
		tw_schedule(run.engine, TW_MS(20), run.kind, NULL, NULL);
}

static const struct tw_kind tick = TW_KIND(on_tick, NULL);

static void on_readable(uv_poll_t *handle, int status, int events)
{
	(void)events;
	if (status == 0)
		tw_engine_poll(handle->data, 0);
}

static int run(struct tw_engine *engine)
{
	uv_loop_t *loop = uv_default_loop();
	int fd = tw_engine_fd(engine);

	if (fd < 0 || uv_poll_init(loop, &poller, fd) != 0)
		return 1;
	poller.data = engine;
	uv_poll_start(&poller, UV_READABLE, on_readable);
	tw_schedule(engine, TW_MS(20), &tick, NULL, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&poller, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) == 0 ? 0 : 1;
}

int main(void)
{
	struct tw_options options;
	struct tw_engine *engine;
	int result;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0 || tw_loop_enter(engine) != 0)
		return 1;
	result = run(engine);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	return result;
}
