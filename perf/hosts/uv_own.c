/* SPDX-License-Identifier: MIT */
/* Measures libuv's own timers. */
#include "hosts/subject.h"

#include <uv.h>

static uv_loop_t loop;
static uv_timer_t *timers;

static void on_expire(uv_timer_t *timer)
{
	(void)timer;
	subject_fired();
}

static void subject_open(size_t count)
{
	timers = calloc(count, sizeof *timers);
	(void)uv_loop_init(&loop);
	for (size_t i = 0; i < count; i++)
		(void)uv_timer_init(&loop, &timers[i]);
}

static inline void subject_start(size_t i, unsigned ms)
{
	(void)uv_timer_start(&timers[i], on_expire, ms, 0);
}

static inline void subject_update(void)
{
	uv_update_time(&loop);
}

static void subject_turn(void)
{
	(void)uv_run(&loop, UV_RUN_NOWAIT);
}

const struct hosts_subject hosts_uv_own = {"libuv", "uv_timer_t", subject_run};
