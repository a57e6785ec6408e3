/* SPDX-License-Identifier: MIT */
/*
 * A clock that stands still until the user moves it, for tests and replays.
 *
 * Protocol. The thread that moves the clock stores the time, then wakes the worker. The worker
 * reads the time once more before it sleeps (edge E8). Only one worker at a time uses the clock.
 */
#ifndef TWI_CLOCK_VIRTUAL_H
#define TWI_CLOCK_VIRTUAL_H

#include "clock/clock.h"

struct twi_clock_virtual {
	struct tw_clock clock;  /* [const] */
	_Atomic int64_t now_ns; /* [atomic E8] */
	_Atomic(struct twi_park *)
		/* [atomic E9] the park of the worker, or NULL if no engine uses the clock */
		sleeper;
	_Atomic uint32_t fork_epoch;   /* [atomic] the fork epoch of the sleeper's process */
	_Atomic int64_t wall_ahead_ns; /* [atomic E8] the wall clock minus now_ns */
	_Atomic uint32_t wall_steps;   /* [atomic E8] how often wall_ahead_ns was changed */
};

void twi_clock_virtual_init(struct twi_clock_virtual *clock, int64_t now_ns);

/*
 * Moves the clock. Returns 0, or -EINVAL if the clock is of another type, or if `now_ns` is before
 * the present time or is INT64_MAX.
 */
int twi_clock_virtual_set(struct tw_clock *clock, int64_t now_ns);

/*
 * Sets the wall time, which may step back. Returns 0, or -EINVAL if the clock is of another type,
 * or if `wall_ns` is negative or INT64_MAX.
 */
int twi_clock_virtual_set_wall(struct tw_clock *clock, int64_t wall_ns);

#endif
