/* SPDX-License-Identifier: MIT */
/*
 * Producers that outrun the worker give way to it.
 */
#ifndef TWI_INGRESS_PRESSURE_H
#define TWI_INGRESS_PRESSURE_H

#include "ingress/push.h"

/*
 * How a thread that schedules gives way to the worker: not at all, by a yield, or, for each value
 * above that, by one more ms of sleep.
 */
enum twi_throttle {
	TWI_THROTTLE_FREE = 0,
	TWI_THROTTLE_YIELD = 1,
};

enum {
	/*
	 * After so many schedules a thread checks whether the worker keeps up. Must be a multiple
	 * of the unit.
	 */
	TWI_THROTTLE_UNIT = 16 * TWI_UNIT_TIMEOUTS,
};

/* Decides how much the calling thread gives way. Must be inside a section. */
unsigned twi_throttle_level(const struct twi_worker *worker, const struct twi_thread *thread);

/* Gives way, and touches no engine. Must be outside a section. */
void twi_throttle_wait(unsigned way);

#endif
