/* SPDX-License-Identifier: MIT */
#include "clock/system.h"

int64_t twi_system_ns(clockid_t id)
{
	struct timespec now;

	(void)clock_gettime(id, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

int64_t twi_clock_wall_ns(struct tw_clock *clock)
{
	return clock->ops->wall_ns != NULL ? clock->ops->wall_ns(clock)
					   : twi_system_ns(CLOCK_REALTIME);
}

int twi_clock_system_attach(struct tw_clock *clock, struct twi_park *park)
{
	(void)park;
	/*
	 * RELAXED: no thread may free the clock during this call, and the engine has not used the
	 * clock yet, so there is nothing to publish.
	 */
	(void)twi_fetch_add_relaxed(&twi_clock_system_of(clock)->engines, 1);
	return 0;
}

void twi_clock_system_detach(struct tw_clock *clock, struct twi_park *park)
{
	(void)park;
	/*
	 * E9: pairs with twi_clock_system_busy(). Otherwise the clock could be freed while this
	 * engine still reads it.
	 */
	(void)twi_fetch_sub_release(&twi_clock_system_of(clock)->engines, 1);
}

bool twi_clock_system_busy(struct tw_clock *clock)
{
	/*
	 * E9: pairs with twi_clock_system_detach(). Without it the last reads by a detached engine
	 * could come after the clock is freed.
	 */
	return twi_load_acquire(&twi_clock_system_of(clock)->engines) != 0;
}
