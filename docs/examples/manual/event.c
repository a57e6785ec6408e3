/* SPDX-License-Identifier: MIT */
/* Timers in a loop of libevent. */
#include "check.h"

#include <event2/event.h>
#include <tickwheel/event.h>

static int runs;

/* example: tw_events_create tw_events_close */
static int base_open(struct event_base **ret_base,
		     struct tw_events **ret_events)
{
	*ret_base = event_base_new();
	return tw_events_create(*ret_base, ret_events);
}

static void base_close(struct event_base *base,
		       struct tw_events *events)
{
	CHECK(tw_events_close(events) == 0); /* all are freed */
	event_base_free(base);
}
/* end */

static void on_timeout(int none, short what, void *arg)
{
	(void)none, (void)what, (void)arg;
	runs++;
}

/* example: tw_event_new tw_event_add */
static int wait_for(struct tw_events *events, long ms,
		    struct tw_event **ret_event)
{
	struct timeval wait = {ms / 1000, ms % 1000 * 1000};
	int code = tw_event_new(events, 0, on_timeout, NULL,
				ret_event);

	return code < 0 ? code : tw_event_add(*ret_event, &wait);
}
/* end */

/* example: tw_event_pending tw_event_active */
/* Lets a pending timer run at once. */
static void hurry(struct tw_event *event)
{
	if (tw_event_pending(event, EV_TIMEOUT, NULL))
		tw_event_active(event, EV_TIMEOUT);
}
/* end */

/* example: tw_event_del tw_event_free */
/* Gives a timer another time; if `wait` is NULL, frees it. */
static void change(struct tw_event *event,
		   const struct timeval *wait)
{
	tw_event_del(event);
	if (wait == NULL)
		tw_event_free(event);
	else
		tw_event_add(event, wait);
}
/* end */

int main(void)
{
	struct timeval soon = {0, 1000};
	struct event_base *base;
	struct tw_events *events;
	struct tw_event *event;

	CHECK(base_open(&base, &events) == 0);
	CHECK(wait_for(events, 60000, &event) == 0);
	hurry(event);
	CHECK(event_base_dispatch(base) == 1 && runs == 1);
	change(event, &soon);
	CHECK(event_base_dispatch(base) == 1 && runs == 2);
	change(event, NULL);
	base_close(base, events);
	return 0;
}
