/* SPDX-License-Identifier: MIT */
/*
 * A barrier in all threads, which only the calling thread pays for. Between the begin and the end
 * of the call, each thread of the process passes through a full barrier (membarrier(2), private
 * expedited).
 *
 * Purpose. If one side of a store-then-load pair runs a million times as often as the other, the
 * frequent side should need no fence. So the rare side makes the barrier for both.
 */
#ifndef TWI_THREAD_BARRIER_H
#define TWI_THREAD_BARRIER_H

#include <stdbool.h>

/*
 * Returns false if the system has no such barrier. Then each side must have its own fence. The
 * answer never changes.
 */
bool twi_barrier_able(void);

/* Makes the barrier, by a system call. If it returns false, nothing is ordered. */
bool twi_barrier_all(void);

#endif
