/* SPDX-License-Identifier: MIT */
/* A function that both of libevent's peers use. */
#ifndef PERF_PEER_LINKED_LIBEVENT_H
#define PERF_PEER_LINKED_LIBEVENT_H

#include <stdint.h>
#include <sys/time.h>

/* Rounds up to the next microsecond, so that no timer is early. */
static inline struct timeval timeval_of_ns(int64_t ns)
{
	int64_t us = (ns + 999) / 1000;

	return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

#endif
