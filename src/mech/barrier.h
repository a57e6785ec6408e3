/* SPDX-License-Identifier: MIT */
/*
 * A barrier that one thread pays for all: after it, each thread of the process has passed through a
 * full barrier between the call's begin and its end (membarrier(2), private expedited).
 *
 * What for. Where one side of a store-then-load pair runs a million times as often as the other, the
 * frequent side does without a fence, and the rare side makes up for both.
 */
#ifndef TWI_MECH_BARRIER_H
#define TWI_MECH_BARRIER_H

#include <stdbool.h>

/* False: the system has none, and each side needs its own fence. It does not change. */
bool twi_barrier_able(void);

/* False: it failed, and nothing is ordered. A system call. */
bool twi_barrier_all(void);

#endif
