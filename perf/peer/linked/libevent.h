/* SPDX-License-Identifier: MIT */
/*
 * What both of libevent's peers need.
 */
#ifndef PERF_PEER_LINKED_LIBEVENT_H
#define PERF_PEER_LINKED_LIBEVENT_H

#include <stdint.h>
#include <sys/time.h>

/* Not before its time: up to the next microsecond. */
static inline struct timeval timeval_of_ns(int64_t ns)
{
	int64_t us = (ns + 999) / 1000;

	return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

#endif
