/* SPDX-License-Identifier: MIT */
/*
 * The system call under every wait of the library. Spurious returns are allowed everywhere.
 */
#ifndef TWI_MECH_FUTEX_H
#define TWI_MECH_FUTEX_H

#include "base/tick.h"

#include <stdint.h>
#include <time.h>

/*
 * Sleeps while *word is `value`, until a wake or CLOCK_MONOTONIC reaches `until_ns` (INT64_MAX:
 * never). Returns 0, or -ETIMEDOUT when the time has come.
 */
int twi_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until_ns);

/* What to give to twi_futex_wait for a wait that begins now; INT64_MAX waits for ever. */
int64_t twi_until_ns(int64_t timeout_ns);

/* CLOCK_MONOTONIC, the time that futexes count in. */
static inline int64_t twi_monotonic_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

/* Wakes every sleeper of `word`. Reads nothing through the pointer: the word may be gone. */
void twi_futex_wake(_Atomic uint32_t *word);

#endif
