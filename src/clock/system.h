/* SPDX-License-Identifier: MIT */
/*
 * Clocks of the operating system. Any number of engines may use one clock. The clock counts them,
 * so that it is not freed while an engine uses it (E9).
 */
#ifndef TWI_CLOCK_SYSTEM_H
#define TWI_CLOCK_SYSTEM_H

#include "base/atomic.h"
#include "clock/clock.h"

#include <time.h>

struct twi_clock_system {
	struct tw_clock clock;    /* [const] */
	_Atomic uint32_t engines; /* [atomic E9] how many engines use the clock */
};

static inline struct twi_clock_system *twi_clock_system_of(struct tw_clock *clock)
{
	return TWI_CONTAINER_OF(clock, struct twi_clock_system, clock);
}

/* Functions that the ops tables of these clocks share. */
int twi_clock_system_attach(struct tw_clock *clock, struct twi_park *park);
void twi_clock_system_detach(struct tw_clock *clock, struct twi_park *park);
bool twi_clock_system_busy(struct tw_clock *clock);

/* Returns the time of one of the system's clocks, in nanoseconds. */
int64_t twi_system_ns(clockid_t id);

/*
 * Initialise a clock, each function one of another type, in zeroed memory. Return 0, or -EOPNOTSUPP
 * if the system has no such clock.
 */
int twi_clock_monotonic_init(struct twi_clock_system *clock);
int twi_clock_boottime_init(struct twi_clock_system *clock);
int twi_clock_coarse_init(struct twi_clock_system *clock);

#endif
