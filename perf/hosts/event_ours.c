/* SPDX-License-Identifier: MIT */
/* Measures tickwheel-event in the loop of libevent. */
#include "hosts/subject.h"

#include <event2/event.h>
#include <tickwheel/event.h>

static struct event_base *base;
static struct tw_events *events;
static struct tw_event **timers;

static void on_expire(int none, short what, void *arg)
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
	if (tw_events_create(base, &events) != 0)
		abort();
	for (size_t i = 0; i < count; i++)
		if (tw_event_new(events, 0, on_expire, NULL, &timers[i]) != 0)
			abort();
}

static inline void subject_start(size_t i, unsigned ms)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};

	(void)tw_event_add(timers[i], &wait);
}

/*
 * Does nothing: outside of a callback, tickwheel-event reads the clock at each add, like libevent.
 */
static inline void subject_update(void)
{
}

static void subject_turn(void)
{
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

const struct hosts_subject hosts_event_ours = {"libevent", "tw_event", subject_run};
