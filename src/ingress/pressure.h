/* SPDX-License-Identifier: MIT */
/* Slows down producers that outrun the worker. */
#ifndef TWI_INGRESS_PRESSURE_H
#define TWI_INGRESS_PRESSURE_H

#include "ingress/push.h"

/*
 * How long a thread that schedules must pause: not at all; by a yield; or, for each value above
 * that, by one more ms of sleep.
 */
enum twi_throttle {
	TWI_THROTTLE_FREE = 0,
	TWI_THROTTLE_YIELD = 1,
};

enum {
	/*
	 * After so many schedules a thread checks whether the worker keeps up. Must be a multiple
	 * of TWI_UNIT_TIMEOUTS.
	 */
	TWI_THROTTLE_UNIT = 16 * TWI_UNIT_TIMEOUTS,
};

/*
 * Called once per unit of cancels whose nodes the worker reclaims. Adds the units to those that wait
 * for the worker, and the lane's cancels to the sum. A thread that only cancels never asks how long
 * it must pause, but the threads that schedule must hear of its cancels.
 */
void twi_cancelled_units_add(struct twi_worker *worker, struct twi_lane *lane, uint32_t units);

/* Decides how long the calling thread must pause. Must be called inside a section. */
unsigned twi_throttle_level(struct twi_worker *worker, const struct twi_thread *thread);

/* Pauses, and touches no engine. Must be called outside of a section. */
void twi_throttle_wait(unsigned way);

#endif
