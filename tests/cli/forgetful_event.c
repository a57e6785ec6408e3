/* SPDX-License-Identifier: MIT */
/*
 * Loaded before libevent: an event that is added twice in turn is in truth added once. No error
 * shows it, because libevent allows to delete an event that is not there.
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
