/* SPDX-License-Identifier: MIT */
/*
 * A library that is preloaded before libevent. If an event is added twice in a row, the second add
 * does nothing. No error shows this, because libevent permits deleting an event that was not added.
 */
#include <dlfcn.h>

struct event;
struct timeval;

int event_add(struct event *event, const struct timeval *delay);

int event_add(struct event *event, const struct timeval *delay)
{
	static struct event *last;
	int (*real)(struct event * event, const struct timeval *delay);

	if (event == last)
		return 0;
	last = event;
	*(void **)&real = dlsym(RTLD_NEXT, "event_add");
	return real(event, delay);
}
