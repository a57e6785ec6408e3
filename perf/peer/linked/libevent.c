/* SPDX-License-Identifier: MIT */
/*
 * The peer for libevent in its own loop, without locks. It keeps timers in a binary heap of
 * pointers.
 *
 * The workload runs inside a callback, where the loop's time is cached and `event_add` reads no
 * clock.
 */
#include <event2/event.h>
#include <event2/event_struct.h>

typedef struct event peer_timer;

#include "peer/linked/libevent.h"
#include "peer/loop.h"
#include "peer/table.h"

static struct event_base *base;

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	loop_expired();
}

static inline void peer_timer_init(peer_timer *timer)
{
	(void)evtimer_assign(timer, base, on_expire, NULL);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	struct timeval delay = timeval_of_ns(delay_ns);

	return event_add(timer, &delay);
}

static inline int peer_timer_stop(peer_timer *timer)
{
	return event_del(timer);
}

static inline bool peer_timer_pending(peer_timer *timer)
{
	return evtimer_pending(timer, NULL);
}

static int open_loop(void)
{
	base = event_base_new();
	return base ? 0 : -ENOMEM;
}

static void in_the_loop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	loop_body(arg);
}

static int run_loop(struct loop_course *course)
{
	const struct timeval now = {0, 0};

	/* This error stays if the loop never runs the callback. */
	course->error = -EIO;
	if (event_base_once(base, -1, EV_TIMEOUT, in_the_loop, course, &now))
		return -EIO;
	return event_base_loop(base, EVLOOP_ONCE) < 0 ? -EIO : 0;
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct loop_hooks hooks = {
		.version = event_get_version, .open = open_loop, .run = run_loop};

	(void)self;
	return loop_run(&hooks, task, ret_sample);
}

const struct peer peer_libevent = {.name = "libevent", .workloads = WORKLOAD_KIND_LOOP, .run = run};
