/* SPDX-License-Identifier: MIT */
/*
 * The clock interface. A clock never steps back.
 *
 * To add one: an ops table in a file of its own, and a way to get it (a constructor, or a constant
 * object like the monotonic one).
 */
#ifndef TWI_MECH_CLOCK_H
#define TWI_MECH_CLOCK_H

#include "base/compiler.h"
#include "mech/futex.h"
#include "mech/park.h"

#include <stdbool.h>
#include <stdint.h>

struct tw_clock;

struct twi_clock_ops {
	/* Nanoseconds, 0 or more. Any thread. */
	int64_t (*now_ns)(struct tw_clock *clock);
	/* What to give to a futex (CLOCK_MONOTONIC) to sleep until `until_ns` of this clock. */
	int64_t (*futex_until_ns)(struct tw_clock *clock, int64_t until_ns);
	/* A worker begins to live by this clock: 0, or -EBUSY. NULL: nothing to do. */
	int (*attach)(struct tw_clock *clock, struct twi_park *park);
	void (*detach)(struct tw_clock *clock);
};

struct tw_clock {
	const struct twi_clock_ops *ops; /* [const] */
};

/* CLOCK_MONOTONIC. */
extern struct tw_clock twi_clock_monotonic;

static inline int64_t twi_clock_now_ns(struct tw_clock *clock)
{
	if (TWI_LIKELY(clock == &twi_clock_monotonic))
		return twi_monotonic_ns();
	return clock->ops->now_ns(clock);
}

#endif
