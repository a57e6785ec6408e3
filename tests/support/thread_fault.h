/* SPDX-License-Identifier: MIT */
/*
 * Makes pthread_create fail when the test asks for it. Include this file once per test program.
 */
#ifndef TESTS_THREAD_FAULT_H
#define TESTS_THREAD_FAULT_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* create_error is the error that pthread_create returns; 0: it works as usual. The next
 * create_before calls still succeed, and the failures begin after them. */
static atomic_int create_error, create_before;

/* Called before each failure, if it is not NULL. A test may make the caller wait there. */
static void (*create_fails)(void);

/*
 * If ThreadSanitizer is linked into the program (clang does this), this is ThreadSanitizer's own
 * pthread_create. Our function must then call that function.
 */
extern __typeof__(pthread_create) __interceptor_pthread_create __attribute__((weak));

/* Replaces the C library's function. The shared libraries then call this one. */
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
