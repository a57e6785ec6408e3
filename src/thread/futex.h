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
 * Returns the time `until_ns` for a wait that begins now. INT64_MAX stands for a wait without a
 * limit.
 */
int64_t twi_until_ns(int64_t timeout_ns);

/* Returns the time of CLOCK_MONOTONIC, the clock that futexes use. */
static inline int64_t twi_monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

/*
 * Wakes every sleeper on `word`. Does not read through the pointer, because the memory may already
 * be freed.
 */
void twi_futex_wake(_Atomic uint32_t *word);

#endif
