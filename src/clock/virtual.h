/* SPDX-License-Identifier: MIT */
/*
 * A clock that stands still until a caller moves it. It serves tests and replays.
 *
 * Protocol. The mover stores the time, then wakes the worker. The worker looks at the time again
 * before it sleeps (edge E8). One worker at a time uses the clock.
 */
#ifndef TWI_CLOCK_VIRTUAL_H
#define TWI_CLOCK_VIRTUAL_H

#include "clock/clock.h"

struct twi_clock_virtual {
	struct tw_clock clock;  /* [const] */
	_Atomic int64_t now_ns; /* [atomic E8] */
	_Atomic(struct twi_park *)
		sleeper; /* [atomic E9] the park of the worker; NULL: no engine uses the clock */
	_Atomic uint32_t fork_epoch;   /* [atomic] the epoch of the sleeper's process */
	_Atomic int64_t wall_ahead_ns; /* [atomic E8] the wall clock minus now_ns */
	_Atomic uint32_t wall_steps;   /* [atomic E8] how often that was changed */
};

void twi_clock_virtual_init(struct twi_clock_virtual *clock, int64_t now_ns);

/*
 * Returns 0, or -EINVAL if the clock is of another type, or `now_ns` is a step back or the end of
 * time.
 */
int twi_clock_virtual_set(struct tw_clock *clock, int64_t now_ns);

/* Steps the wall clock. Returns 0, or -EINVAL as above; a step back is none. */
int twi_clock_virtual_set_wall(struct tw_clock *clock, int64_t wall_ns);

#endif
