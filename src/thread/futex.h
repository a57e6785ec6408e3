/* SPDX-License-Identifier: MIT */
/*
 * The system call behind every wait of the library. Each wait may return spuriously.
 */
#ifndef TWI_THREAD_FUTEX_H
#define TWI_THREAD_FUTEX_H

#include "base/tick.h"

#include <stdint.h>
#include <time.h>

/*
 * Sleeps while *word is `value`, until a wake or until CLOCK_MONOTONIC reaches `until_ns`
 * (INT64_MAX: never). Returns -ETIMEDOUT when that time has come, otherwise 0.
 */
int twi_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until_ns);

/*
 * Returns the `until_ns` of a wait that begins now. If `timeout_ns` is INT64_MAX, that wait is for
 * ever.
 */
int64_t twi_until_ns(int64_t timeout_ns);

/* CLOCK_MONOTONIC, the clock that futexes use. */
static inline int64_t twi_monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

/*
 * Wakes every sleeper on `word`. Reads nothing through the pointer, because the word's memory may
 * be gone.
 */
void twi_futex_wake(_Atomic uint32_t *word);

#endif
