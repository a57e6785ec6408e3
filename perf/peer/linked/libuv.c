/* SPDX-License-Identifier: MIT */
/*
 * The peer for libuv, which keeps timers in a binary heap of linked nodes and counts milliseconds.
 *
 * `uv_timer_start` reads no clock: it uses the time that the loop has read before.
 */
#include <uv.h>

typedef uv_timer_t peer_timer;

#include "peer/loop.h"
#include "peer/table.h"

enum { NS_PER_MS = 1000000 };

static uv_loop_t base;

static void on_expire(uv_timer_t *timer)
{
	(void)timer;
	loop_expired();
}

static inline void peer_timer_init(peer_timer *timer)
{
	(void)uv_timer_init(&base, timer);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	return uv_timer_start(timer, on_expire, ((uint64_t)delay_ns + NS_PER_MS - 1) / NS_PER_MS,
			      0);
}

static inline int peer_timer_stop(peer_timer *timer)
{
	return uv_timer_stop(timer);
}

static inline bool peer_timer_pending(peer_timer *timer)
{
	return uv_is_active((const uv_handle_t *)timer);
}

static int open_loop(void)
{
	return uv_loop_init(&base);
}

/*
 * Runs outside of the loop. The loop has read its time when it was created, so the time is as fresh
 * as inside the loop.
 */
static int run_loop(struct loop_course *course)
{
	loop_body(course);
	return 0;
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct loop_hooks hooks = {
		.version = uv_version_string, .open = open_loop, .run = run_loop};

	(void)self;
	return loop_run(&hooks, task, ret_sample);
}

const struct peer peer_libuv = {.name = "libuv", .workloads = WORKLOAD_KIND_LOOP, .run = run};
