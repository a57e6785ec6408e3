/* SPDX-License-Identifier: MIT */
/*
 * The clock interface. A clock never steps back: if a thread reads the clock after another thread
 * did, it does not get a smaller time. A reading is never ahead of the time that the clock
 * represents, but may be behind that time, at most by the clock's lag. A delay is counted from a
 * reading, so the lag is added to the delay. Otherwise a timeout could be early.
 *
 * To add a clock, write an ops table in a file of its own, and give users a constructor, or a
 * constant object like the monotonic clock.
 */
#ifndef TWI_CLOCK_CLOCK_H
#define TWI_CLOCK_CLOCK_H

#include "base/compiler.h"
#include "thread/futex.h"
#include "thread/park.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/clock.h>

struct twi_clock_ops {
	/* Returns the time in nanoseconds, 0 or more. Any thread may call it. */
	int64_t (*now_ns)(struct tw_clock *clock);
	/*
	 * Returns the CLOCK_MONOTONIC time until which a futex must wait to sleep until `until_ns`
	 * of this clock. NULL if the clock has `wait`.
	 */
	int64_t (*futex_until_ns)(struct tw_clock *clock, int64_t until_ns);
	/*
	 * Sleeps until a wake-up, until `until_ns` of this clock, or for `at_most_ns`. INT64_MAX
	 * means no limit. May return early. A clock has this function if a futex cannot wait by its
	 * time. If `wait` is NULL, the worker waits on a futex.
	 */
	void (*wait)(struct tw_clock *clock, struct twi_park *park, int64_t until_ns,
		     int64_t at_most_ns);
	/*
	 * Prepares the clock for a worker that begins to use it. Returns 0 or a negative errno
	 * value. NULL if there is nothing to do.
	 */
	int (*attach)(struct tw_clock *clock, struct twi_park *park);
	void (*detach)(struct tw_clock *clock, struct twi_park *park);
	/*
	 * Replaces the objects that the park shares with the parent by new ones, in a forked child.
	 * Returns 0. If it fails, it returns a negative errno value and changes nothing. NULL if
	 * there is nothing to do.
	 */
	int (*inherit)(struct tw_clock *clock, struct twi_park *park);
	/* Returns whether an engine uses the clock. */
	bool (*busy)(struct tw_clock *clock);
	/*
	 * Returns the present type of the clock. It may change, because a clock may fall back to
	 * another type.
	 */
	enum tw_clock_type (*type)(struct tw_clock *clock);
	/*
	 * True if the user's calls move the clock. Each such call wakes the worker through its
	 * park.
	 */
	bool moved;
	/*
	 * The wall time that belongs to the clock, and a counter of its steps (E8). A thread that
	 * steps the wall time wakes the worker through its park. If both functions are NULL, the
	 * wall time is CLOCK_REALTIME.
	 */
	int64_t (*wall_ns)(struct tw_clock *clock);
	_Atomic uint32_t *(*wall_steps)(struct tw_clock *clock);
};

struct tw_clock {
	const struct twi_clock_ops *ops; /* [const] */
	int64_t lag_ns;                  /* [const] how far a reading may be behind, at most */
	int64_t resolution_ns;           /* [const] the smallest tick that it can be used for */
};

extern struct tw_clock twi_clock_monotonic;

static inline int64_t twi_clock_now_ns(struct tw_clock *clock)
{
	if (TWI_LIKELY(clock == &twi_clock_monotonic))
		return twi_monotonic_ns();
	return clock->ops->now_ns(clock);
}

/* system.c: returns the wall time that belongs to the clock. Unlike the clock, it may step back. */
int64_t twi_clock_wall_ns(struct tw_clock *clock);

/*
 * Returns the deadline of a delay that begins now, at most INT64_MAX. A negative delay counts as 0.
 */
static inline int64_t twi_clock_after_ns(struct tw_clock *clock, int64_t delay_ns)
{
	int64_t now_ns = twi_clock_now_ns(clock);

	if (TWI_UNLIKELY(clock != &twi_clock_monotonic))
		now_ns = twi_deadline_after(now_ns, clock->lag_ns);
	return twi_deadline_after(now_ns, delay_ns);
}

#endif
