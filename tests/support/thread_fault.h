/* SPDX-License-Identifier: MIT */
/*
 * A program in which no threads can be made when the test says so. Included once per test program.
 */
#ifndef TESTS_THREAD_FAULT_H
#define TESTS_THREAD_FAULT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The error that pthread_create returns, or 0, and how many calls succeed before. */
static atomic_int create_error, create_before;

/* Called before each failure, if it is not NULL: a test may hold the caller there. */
static void (*create_fails)(void);

/*
 * The function of a ThreadSanitizer that is linked into the program, as clang's is. If it exists,
 * ours must call it.
 */
extern __typeof__(pthread_create) __interceptor_pthread_create __attribute__((weak));

/* Replaces the C library's function, because the shared libraries then call this one. */
int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*body)(void *),
		   void *arg)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");
	int error = atomic_load(&create_error);

	memcpy(&next, &symbol, sizeof(next));
	if (__interceptor_pthread_create != NULL)
		next = __interceptor_pthread_create;
	if (error != 0 && atomic_fetch_sub(&create_before, 1) <= 0) {
		if (create_fails != NULL)
			create_fails();
		return error;
	}
	return next(ret_thread, attributes, body, arg);
}

#endif
