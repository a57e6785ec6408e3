/* SPDX-License-Identifier: MIT */
/* Slows down producers that outrun the worker. */
#ifndef TWI_INGRESS_PRESSURE_H
#define TWI_INGRESS_PRESSURE_H

#include "ingress/push.h"

/*
 * How long a thread that schedules must pause: not at all (FREE), or by a yield (YIELD). The value
 * YIELD + n means a sleep of n ms.
 */
enum twi_throttle {
	TWI_THROTTLE_FREE = 0,
	TWI_THROTTLE_YIELD = 1,
};

enum {
	/*
	 * A thread checks whether the worker keeps up once in this many schedules. Must be a
	 * multiple of TWI_UNIT_TIMEOUTS.
	 */
	TWI_THROTTLE_UNIT = 16 * TWI_UNIT_TIMEOUTS,
};

/*
 * Adds `units` units (64 cancels each) to those that wait for the worker, and the lane's cancels to
 * the engine's sum. Called for cancels whose nodes the worker must reclaim. A thread that only
 * cancels does not pause itself, but its cancels must make the threads that schedule pause.
 */
void twi_cancelled_units_add(struct twi_worker *worker, struct twi_lane *lane, uint32_t units);

/* Decides how long the calling thread must pause. Must be called inside an RCU section. */
unsigned twi_throttle_level(struct twi_worker *worker, const struct twi_thread *thread);

/*
 * Pauses, and touches no engine. Must be called outside of an RCU section. `way`: the result of
 * twi_throttle_level, if it is not FREE.
 */
void twi_throttle_wait(unsigned way);

#endif
