/* SPDX-License-Identifier: MIT */
/*
 * Clocks that the system keeps. Any number of engines may live by one; they are counted, so that it
 * is not freed under them (E9).
 */
#ifndef TWI_MECH_CLOCK_SYSTEM_H
#define TWI_MECH_CLOCK_SYSTEM_H

#include "base/atomic.h"
#include "mech/clock.h"

#include <time.h>

struct twi_clock_system {
	struct tw_clock clock;    /* [const] */
	_Atomic uint32_t engines; /* [atomic E9] that live by it */
};

static inline struct twi_clock_system *twi_clock_system_of(struct tw_clock *clock)
{
	return TWI_CONTAINER_OF(clock, struct twi_clock_system, clock);
}

/* For the ops tables. */
int twi_clock_system_attach(struct tw_clock *clock, struct twi_park *park);
void twi_clock_system_detach(struct tw_clock *clock, struct twi_park *park);
bool twi_clock_system_busy(struct tw_clock *clock);

/* Nanoseconds of one of the system's clocks. */
int64_t twi_system_ns(clockid_t id);

/* Makes the clock of a kind, in memory that is zero. 0, or -EOPNOTSUPP: the system has none. */
int twi_clock_monotonic_init(struct twi_clock_system *clock);
int twi_clock_boottime_init(struct twi_clock_system *clock);
int twi_clock_coarse_init(struct twi_clock_system *clock);

#endif
