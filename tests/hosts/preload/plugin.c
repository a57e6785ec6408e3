/* SPDX-License-Identifier: MIT */
/*
 * A library that uses libuv in its constructor and in its destructor. Its constructor runs before
 * that of the preloaded library, and its destructor after that of the preloaded library.
 *
 * Seen to fail with this defect: the preloaded library looks up libuv's functions only in its
 * constructor.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

__attribute__((visibility("default"))) int plugin_runs;

static uv_loop_t loop;
static uv_timer_t timer;

static void on_run(uv_timer_t *handle)
{
	(void)handle;
	plugin_runs++;
}

/* Writes without the C library's streams, which may already be closed. */
static void say(const char *text)
{
	(void)!write(STDOUT_FILENO, text, strlen(text));
}

static __attribute__((constructor)) void begin(void)
{
	if (uv_loop_init(&loop) != 0 || uv_timer_init(&loop, &timer) != 0 ||
	    uv_timer_start(&timer, on_run, 1, 1) != 0)
		say("it does not begin\n");
	(void)uv_run(&loop, UV_RUN_ONCE);
}

static __attribute__((destructor)) void end(void)
{
	(void)uv_timer_stop(&timer);
	(void)uv_timer_start(&timer, on_run, 1000, 0);
	uv_close((uv_handle_t *)&timer, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	say(uv_loop_close(&loop) == 0 ? "the loop is closed\n" : "the loop is not closed\n");
}
