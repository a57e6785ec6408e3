/* SPDX-License-Identifier: MIT */
/*
 * The executor of the race programs, built on tickwheel-uv. One of the threads runs the loop. It
 * hands the due timeouts to libuv's own threads, which run the callbacks.
 */
#include "dues.h"

#include "race.h"

#include <errno.h>
#include <tickwheel/uv.h>
#include <uv.h>

/* so small that the queue is sometimes full */
enum { QUEUE_MAX = 64, LOOK_MS = 1 };

static uv_loop_t loop;
static uv_timer_t timer;
static struct tw_uv *executor;
static _Atomic bool closed, taken;

/* Runs on a timer, and ends the loop when the round has ended. */
static void on_look(uv_timer_t *self)
{
	if (!atomic_load(&closed))
		return;
	if (executor != NULL && tw_uv_close(executor) == -EBUSY)
		return;
	executor = NULL;
	uv_close((uv_handle_t *)self, NULL);
}

void dues_open(void)
{
	atomic_store(&closed, false);
	atomic_store(&taken, false);
	RACE_CHECK(uv_loop_init(&loop) == 0);
	RACE_CHECK(tw_uv_create(&loop, QUEUE_MAX, &executor) == 0);
	RACE_CHECK(uv_timer_init(&loop, &timer) == 0);
	RACE_CHECK(uv_timer_start(&timer, on_look, LOOK_MS, LOOK_MS) == 0);
}

size_t dues_put(const struct tw_due *due, size_t count)
{
	return tw_uv_dispatch(executor, due, count);
}

void *dues_main(void *argument)
{
	if (atomic_exchange(&taken, true))
		return argument;
	RACE_CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	RACE_CHECK(uv_loop_close(&loop) == 0);
	return argument;
}

void dues_close(void)
{
	atomic_store(&closed, true);
}
