/* SPDX-License-Identifier: MIT */
/*
 * Threads in a forked child under ThreadSanitizer, which has the parent's threads on its list still, by
 * the addresses of their stacks. libc gives these to the child's threads; ones of another size it makes
 * anew. Included once per program.
 */
#ifndef TESTS_HEIR_THREADS_H
#define TESTS_HEIR_THREADS_H

#include <pthread.h>
#include <stddef.h>
#include <tickwheel/fork.h>

/* It would else end a forked child that makes a thread. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* In a child, before its first thread. */
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
