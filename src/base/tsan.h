/* SPDX-License-Identifier: MIT */
/*
 * A program compiled with -fsanitize=thread that uses this library as installed, without instrumentation.
 *
 * ThreadSanitizer sees the program's accesses and none of the library's. So it does not see the library's
 * ordering edges either, and reports as a race what they order: the caller's write to an argument against
 * the callback's read. Therefore the library reports its edges itself: release before the access that
 * publishes, acquire after the access that has seen it, with the same address on both sides. Only edges that
 * order the program's own memory are reported, or memory that an interceptor of the sanitizer touches (free,
 * memcpy, memcmp).
 *
 * Detection. The sanitizer's runtime defines __tsan_acquire; the reference here is weak, so the address is
 * NULL in all other programs. clang's runtime is part of the executable and exports the name, gcc's is a
 * shared library.
 *
 * Cost. The hot paths do not ask. With the sanitizer a check that they have anyway fails: a thread keeps no
 * free blocks (mech/thread.c), each handle is looked at as in a forked process (mech/fork.c), and each run is
 * judged (engine/create.c). What is left are their slow paths, and those report.
 *
 * A library that is instrumented itself needs none of this: its atomics are seen.
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

/* Whether the program has the sanitizer's runtime. */
static inline bool twi_tsan_there(void)
{
	return TWI_UNLIKELY(__tsan_acquire != NULL);
}

/* All that the calling thread did before happens before what follows an acquire of this address. */
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
