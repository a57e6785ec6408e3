/* SPDX-License-Identifier: MIT */
/*
 * The peer for libev, which keeps timers in a heap with four children for each node, and the
 * deadlines in the heap's array.
 *
 * `ev_timer_start` reads no clock: it uses the time that the loop has read before.
 */
#include <ev.h>

typedef ev_timer peer_timer;

#include "peer/loop.h"
#include "peer/table.h"

static struct ev_loop *base;

static void on_expire(struct ev_loop *loop, ev_timer *timer, int what)
{
	(void)loop;
	(void)timer;
	(void)what;
	loop_expired();
}

static inline void peer_timer_init(peer_timer *timer)
{
	ev_timer_init(timer, on_expire, 0., 0.);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	ev_timer_set(timer, (double)delay_ns * 1e-9, 0.);
	ev_timer_start(base, timer);
	return 0;
}

/*
 * ev_timer_stop returns nothing. So this function reads from the timer's field whether the stop has
 * succeeded.
 */
static inline int peer_timer_stop(peer_timer *timer)
{
	ev_timer_stop(base, timer);
	return ev_is_active(timer) ? -EIO : 0;
}

static inline bool peer_timer_pending(peer_timer *timer)
{
	return ev_is_active(timer);
}

static const char *version(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d.%02d", ev_version_major(), ev_version_minor());
	return text;
}

static int open_loop(void)
{
	base = ev_loop_new(0);
	return base ? 0 : -ENOMEM;
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
		.version = version, .open = open_loop, .run = run_loop};

	(void)self;
	return loop_run(&hooks, task, ret_sample);
}

const struct peer peer_libev = {.name = "libev", .workloads = WORKLOAD_KIND_LOOP, .run = run};
