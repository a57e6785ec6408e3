/* SPDX-License-Identifier: MIT */
/*
 * Lets a process fork while its other threads run, in a build with a sanitizer (sanitized.h).
 * During the fork, a lock keeps the library's other threads out of the allocator; in other builds
 * libc does that. A new thread also allocates when it begins. So the program must fork only when
 * all of its threads have begun. Include this file once per program.
 */
#ifndef TESTS_HEIR_MEMORY_H
#define TESTS_HEIR_MEMORY_H

#include "sanitized.h"

#include <unistd.h>

#if !defined(TESTS_SANITIZED)

static inline void heir_memory_begin(void)
{
}

static inline pid_t heir_fork(void)
{
	return fork();
}

#else

#include <pthread.h>
#include <stdlib.h>
#include <tickwheel/memory.h>

static pthread_mutex_t heir_memory_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void *heir_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	(void)pthread_mutex_lock(&heir_memory_lock);
	if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0)
		memory = NULL;
	(void)pthread_mutex_unlock(&heir_memory_lock);
	return memory;
}

static inline void heir_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	(void)pthread_mutex_lock(&heir_memory_lock);
	free(memory);
	(void)pthread_mutex_unlock(&heir_memory_lock);
}

/* Must be called before the first engine is created. */
static inline void heir_memory_begin(void)
{
	static const struct tw_allocator allocator = {
		.allocate = heir_allocate,
		.release = heir_release,
	};

	(void)tw_memory_allocator_set(&allocator);
}

static inline pid_t heir_fork(void)
{
	pid_t child;

	(void)pthread_mutex_lock(&heir_memory_lock);
	child = fork();
	(void)pthread_mutex_unlock(&heir_memory_lock);
	return child;
}

#endif

#endif
