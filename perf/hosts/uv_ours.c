/* SPDX-License-Identifier: MIT */
/* Measures tickwheel-uv-timer in the loop of libuv. */
#include "hosts/subject.h"

#include <stdio.h>
#include <tickwheel/uv_timer.h>
#include <uv.h>

static uv_loop_t loop;
static struct tw_uv_timers *all;
static struct tw_uv_timer *timers;

static void on_expire(struct tw_uv_timer *timer)
{
	(void)timer;
	subject_fired();
}

static void subject_open(size_t count)
{
	timers = calloc(count, sizeof *timers);
	(void)uv_loop_init(&loop);
	if (tw_uv_timers_create(&loop, &all) != 0)
		abort();
	for (size_t i = 0; i < count; i++)
		(void)tw_uv_timer_init(all, &timers[i]);
}

static inline void subject_start(size_t i, unsigned ms)
{
	(void)tw_uv_timer_start(&timers[i], on_expire, ms, 0);
}

static inline void subject_update(void)
{
	uv_update_time(&loop);
}

static void subject_turn(void)
{
	(void)uv_run(&loop, UV_RUN_NOWAIT);
}

const struct hosts_subject hosts_uv_ours = {"libuv", "tw_uv_timer", subject_run};
