/* SPDX-License-Identifier: MIT */
/*
 * For programs compiled with -fsanitize=thread that use this library as installed, without
 * instrumentation.
 *
 * ThreadSanitizer sees the program's accesses and none of the library's. So it does not know the
 * library's ordering edges, and reports races between accesses that these edges order. An example
 * is the caller's write to an argument and the callback's read. Therefore the library reports its
 * edges itself. It reports a release before the access that publishes, and an acquire after the
 * access that reads the published value. Both reports name the same address. It reports only edges
 * that order the program's own memory, or memory that an interceptor of the sanitizer touches
 * (free, memcpy, memcmp).
 *
 * Detection. The sanitizer's runtime defines __tsan_acquire. The reference here is weak, so the
 * address is NULL in all other programs. clang's runtime is part of the executable and exports the
 * name; gcc's is a shared library.
 *
 * Cost. The hot paths do not check for the sanitizer. Instead, if it is present, a check that they
 * make anyway fails: a thread keeps no free blocks (thread/thread.c), each handle is checked as in
 * a forked process (thread/fork.c), and each run is checked (engine/create.c). So only the slow
 * paths run, and these report the edges.
 *
 * A library that is itself instrumented needs no reports, because the sanitizer sees its atomics.
 */
#ifndef TWI_BASE_TSAN_H
#define TWI_BASE_TSAN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

#if TWI_TSAN

static inline bool twi_tsan_there(void)
{
	return false;
}

static inline void twi_tsan_release(const volatile void *address)
{
	(void)address;
}

static inline void twi_tsan_acquire(const volatile void *address)
{
	(void)address;
}

#else

TWI_WEAK void __tsan_acquire(void *address);
TWI_WEAK void __tsan_release(void *address);

/* Returns whether the sanitizer's runtime is in the program. */
static inline bool twi_tsan_there(void)
{
	return TWI_UNLIKELY(__tsan_acquire != NULL);
}

/*
 * Reports a release. What the calling thread did before this call happens before what another
 * thread does after an acquire of the same address.
 */
static inline void twi_tsan_release(const volatile void *address)
{
	if (twi_tsan_there())
		__tsan_release((void *)address);
}

static inline void twi_tsan_acquire(const volatile void *address)
{
	if (twi_tsan_there())
		__tsan_acquire((void *)address);
}

#endif

#endif
