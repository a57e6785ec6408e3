/* SPDX-License-Identifier: MIT */
/*
 * Loaded before libevent: deleting an event takes it out, and says that it was not there.
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
