/* SPDX-License-Identifier: MIT */
/*
 * The time of the tests of this folder. The program's clock_gettime and epoll_wait come before the C
 * library's, for libuv, libevent and everything else: time stands still until the test moves it, and
 * a wait in epoll moves it by its timeout instead of waiting. So no test depends on how fast the
 * machine is.
 */
#ifndef TESTS_HOSTS_CLOCK_H
#define TESTS_HOSTS_CLOCK_H

#include <stdint.h>

/* The time that the clocks tell, on the calling thread. NULL: the true one. */
extern _Thread_local int64_t *clock_ns;

/* How often a wait in epoll has waited. */
extern _Thread_local uint64_t clock_waits;

#endif
