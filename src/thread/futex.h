/* SPDX-License-Identifier: MIT */
/*
 * The futex system call, by which the library's threads wait for each other. Each wait may return
 * spuriously.
 */
#ifndef TWI_THREAD_FUTEX_H
#define TWI_THREAD_FUTEX_H

#include "base/tick.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * Sleeps while *word is `value`, until a wake-up or until CLOCK_MONOTONIC reaches `until_ns`
 * (INT64_MAX: no limit). Returns -ETIMEDOUT if that time has come, otherwise 0.
 */
int twi_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until_ns);

/*
 * Returns the time of CLOCK_MONOTONIC at which a wait that begins now and lasts `timeout_ns` must
 * end. INT64_MAX, as argument and as result, means no limit.
 */
int64_t twi_until_ns(int64_t timeout_ns);

/* Sleeps for `rest_ns`. No thread wakes the caller. May return earlier. */
static inline void twi_futex_rest(int64_t rest_ns)
{
	_Atomic uint32_t never = 0;

	(void)twi_futex_wait(&never, 0, twi_until_ns(rest_ns));
}

/* Returns the time of CLOCK_MONOTONIC, the clock that futexes use. */
static inline int64_t twi_monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

/*
 * Sleeps for `rest_ns`, before the caller looks again for what it waits for. Returns false if
 * CLOCK_MONOTONIC has reached `until_ns` (INT64_MAX: no limit).
 */
static inline bool twi_futex_rest_until(int64_t rest_ns, int64_t until_ns)
{
	if (until_ns != INT64_MAX && twi_monotonic_ns() >= until_ns)
		return false;
	twi_futex_rest(rest_ns);
	return true;
}

/*
 * Wakes every thread that sleeps on `word`. Does not read through the pointer, so the memory may
 * already be freed.
 */
void twi_futex_wake(_Atomic uint32_t *word);

#endif
