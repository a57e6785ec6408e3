/* SPDX-License-Identifier: MIT */
/*
 * A barrier in all threads, at the cost of one system call by the caller. Between the start and the
 * end of the call, each thread of the process executes a full barrier (membarrier(2), private
 * expedited).
 *
 * Purpose. Two threads each store and then load what the other has stored; normally both need a
 * fence. If one side runs a million times as often as the other, that side should need no fence. So
 * the rare side makes this barrier for both.
 */
#ifndef TWI_THREAD_BARRIER_H
#define TWI_THREAD_BARRIER_H

#include <stdbool.h>

/*
 * Registers the process for the barrier. Returns whether the system has it. Called when the library
 * is loaded, and again when a barrier fails, as it may in a forked child.
 */
bool twi_barrier_register(void);

/*
 * Returns whether the system has such a barrier. If not, each side must have its own fence. The
 * answer never changes.
 */
bool twi_barrier_able(void);

/* Makes the barrier, by a system call. If it returns false, nothing is ordered. */
bool twi_barrier_all(void);

#endif
