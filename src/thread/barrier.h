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

#include "thread/futex.h"

#include <stdbool.h>
#include <stdlib.h>

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

/*
 * Makes the barrier. If it fails, tries again. If the system forbids it now (a sandbox that began
 * later), ends the process: threads rely on the barrier and have none of their own.
 */
static inline void twi_barrier_force(void)
{
	enum { LOOK_AGAIN_NS = 100 * 1000 };

	/* E162: pairs with twi_presence_enter(). E163: pairs with twi_ring_will_read(). */
	while (!twi_barrier_all()) {
		if (!twi_barrier_register())
			abort();
		twi_futex_rest(LOOK_AGAIN_NS);
	}
}

#endif
