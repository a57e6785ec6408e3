/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

_Thread_local int64_t *clock_ns;
_Thread_local uint64_t clock_waits;

/* Replaces the C library's function, because the program's definition comes first. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (clock_ns == NULL)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	ret_time->tv_sec = *clock_ns / NS_PER_S;
	ret_time->tv_nsec = *clock_ns % NS_PER_S;
	return 0;
}

static int wait_true(int fd, struct epoll_event *events, int most, int timeout_ms,
		     const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout_ms, mask, 8);
}

/* In substituted time only a timer can end a wait, so a wait without a time limit is a defect. */
__attribute__((visibility("default"))) int epoll_pwait(int fd, struct epoll_event *events, int most,
						       int timeout_ms, const sigset_t *mask)
{
	int count;

	if (clock_ns == NULL)
		return wait_true(fd, events, most, timeout_ms, mask);
	count = wait_true(fd, events, most, 0, mask);
	if (count != 0 || timeout_ms == 0)
		return count;
	if (timeout_ms < 0) {
		(void)fprintf(stderr, "waits for ever\n");
		abort();
	}
	clock_waits++;
	*clock_ns += (int64_t)timeout_ms * NS_PER_MS;
	return 0;
}

__attribute__((visibility("default"))) int epoll_wait(int fd, struct epoll_event *events, int most,
						      int timeout_ms)
{
	return epoll_pwait(fd, events, most, timeout_ms, NULL);
}
