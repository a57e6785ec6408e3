/* SPDX-License-Identifier: MIT */
/*
 * A library that is preloaded before libevent. A delete removes the event, but reports that the
 * event was not there.
 */
#include <dlfcn.h>

struct event;

int event_del(struct event *event);

int event_del(struct event *event)
{
	int (*real)(struct event * event);

	*(void **)&real = dlsym(RTLD_NEXT, "event_del");
	real(event);
	return -1;
}
