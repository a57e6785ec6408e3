/* SPDX-License-Identifier: MIT */
/*
 * The clock of the tests in this folder. The program defines clock_gettime and epoll_wait, so that
 * libuv, libevent and all other code call these instead of the C library's. Time stands still until
 * the test moves it. A wait in epoll moves the time by the timeout instead of waiting. So no test
 * depends on how fast the machine is.
 */
#ifndef TESTS_HOSTS_CLOCK_H
#define TESTS_HOSTS_CLOCK_H

#include <stdint.h>

/* The time that all clocks show on the calling thread. NULL: they show the real time. */
extern _Thread_local int64_t *clock_ns;

/* How many calls of epoll_wait would have waited. */
extern _Thread_local uint64_t clock_waits;

#endif
