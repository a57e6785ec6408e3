/* SPDX-License-Identifier: MIT */
/*
 * A fork while other threads run, in a build with a sanitizer. Those of Debian 12 do not hold the locks of
 * their allocators while a process forks: a child that allocates, or makes a thread, then waits for ever
 * for a lock that a thread of its parent had. In such a build what the library allocates is kept out of the
 * fork by a lock; elsewhere, where libc sees to it, nothing is. A thread that begins allocates as well, so
 * the program forks only when all of its threads have begun. Included once per program.
 */
#ifndef TESTS_HEIR_MEMORY_H
#define TESTS_HEIR_MEMORY_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEIR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEIR_SANITIZED 1
#endif
#endif

#include <unistd.h>

#if !defined(HEIR_SANITIZED)

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

/* Before the first engine. */
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
