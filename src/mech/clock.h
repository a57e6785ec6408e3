/* SPDX-License-Identifier: MIT */
/*
 * The clock interface. A clock never steps back, not from one thread to another either, and never
 * reads ahead of the time that it stands for. It may read behind it, by its lag at most: a delay is
 * counted from a reading, so the lag is added to it, and no timeout comes early.
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
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/clock.h>

struct twi_clock_ops {
	/* Nanoseconds, 0 or more. Any thread. */
	int64_t (*now_ns)(struct tw_clock *clock);
	/* What to give to a futex (CLOCK_MONOTONIC) to sleep until `until_ns` of this clock. */
	int64_t (*futex_until_ns)(struct tw_clock *clock, int64_t until_ns);
	/*
	 * In place of the futex, where that does not count this clock's time: sleeps until a wake,
	 * `until_ns` of this clock, or `at_most_ns` from now (INT64_MAX: neither). May return early.
	 * NULL: a futex will do.
	 */
	void (*wait)(struct tw_clock *clock, struct twi_park *park, int64_t until_ns,
		     int64_t at_most_ns);
	/* A worker begins to live by this clock: 0, or a negative errno value. NULL: nothing to do. */
	int (*attach)(struct tw_clock *clock, struct twi_park *park);
	void (*detach)(struct tw_clock *clock, struct twi_park *park);
	/* In a forked child: what the park shares with the parent is made anew. 0, or a negative errno
	 * value, and all is as before. NULL: nothing to do. */
	int (*inherit)(struct tw_clock *clock, struct twi_park *park);
	/* Whether an engine lives by it. */
	bool (*busy)(struct tw_clock *clock);
	/* What it counts now. */
	enum tw_clock_type (*type)(struct tw_clock *clock);
	/* A caller moves it, and wakes the worker through the park. */
	bool moved;
};

struct tw_clock {
	const struct twi_clock_ops *ops; /* [const] */
	int64_t lag_ns;                  /* [const] the most that a reading is behind */
	int64_t resolution_ns;           /* [const] the smallest tick that it can serve */
};

/* CLOCK_MONOTONIC. */
extern struct tw_clock twi_clock_monotonic;

static inline int64_t twi_clock_now_ns(struct tw_clock *clock)
{
	if (TWI_LIKELY(clock == &twi_clock_monotonic))
		return twi_monotonic_ns();
	return clock->ops->now_ns(clock);
}

/* The deadline of a delay that begins now; held at INT64_MAX, a negative delay is none. */
static inline int64_t twi_clock_after_ns(struct tw_clock *clock, int64_t delay_ns)
{
	int64_t now_ns = twi_clock_now_ns(clock);

	if (TWI_UNLIKELY(clock != &twi_clock_monotonic))
		now_ns = twi_deadline_after(now_ns, clock->lag_ns);
	return twi_deadline_after(now_ns, delay_ns);
}

#endif
