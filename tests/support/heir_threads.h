/* SPDX-License-Identifier: MIT */
/*
 * Lets a forked child make threads under ThreadSanitizer, and reports where that is impossible. In
 * the child, TSan still lists the parent's threads by the addresses of their stacks. libc would
 * reuse those stacks for the child's threads. Stacks of another size are allocated anew, so the
 * child asks for another size. Include this file once per program.
 */
#ifndef TESTS_HEIR_THREADS_H
#define TESTS_HEIR_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <tickwheel/fork.h>

/* Returns options for TSan. Without them, it would end a forked child that makes a thread. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* A user-mode emulator ends a forked child that makes a thread. */
static inline bool heir_threads_possible(void)
{
	return getenv("TESTS_EMULATED") == NULL;
}

/* Must be called in a child before its first thread is made. */
static inline void heir_threads_begin(void)
{
	size_t bytes = (size_t)(10 + 2 * tw_fork_generation()) << 20;
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return;
	if (pthread_attr_setstacksize(&attributes, bytes) == 0)
		(void)pthread_setattr_default_np(&attributes);
	(void)pthread_attr_destroy(&attributes);
}

#endif
