/* SPDX-License-Identifier: MIT */
/* Measures libevent's own timers. */
#include "hosts/subject.h"

#include <event2/event.h>

static struct event_base *base;
static struct event **timers;

static void on_expire(evutil_socket_t none, short what, void *arg)
{
	(void)none;
	(void)what;
	(void)arg;
	subject_fired();
}

static void subject_open(size_t count)
{
	timers = calloc(count, sizeof *timers);
	base = event_base_new();
	for (size_t i = 0; i < count; i++)
		timers[i] = evtimer_new(base, on_expire, NULL);
}

static inline void subject_start(size_t i, unsigned ms)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};

	(void)evtimer_add(timers[i], &wait);
}

/* Does nothing: outside of its loop, libevent reads the clock at each add. */
static inline void subject_update(void)
{
}

static void subject_turn(void)
{
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

const struct hosts_subject hosts_event_own = {"libevent", "evtimer", subject_run};
