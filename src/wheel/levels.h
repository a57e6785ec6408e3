/* SPDX-License-Identifier: MIT */
/*
 * The geometry of the hierarchical wheel: how wide the slots of a level are, and how far a level
 * reaches.
 */
#ifndef TWI_WHEEL_LEVELS_H
#define TWI_WHEEL_LEVELS_H

#include <stdint.h>

enum {
	/* The width of a slot grows by this many bits per level. */
	STEP_BITS = 6,
	SLOTS = 256,
	/*
	 * A level takes timeouts that are fewer slot widths away than this. If a level took
	 * timeouts that are farther away, two slots of different times could have the same index.
	 */
	REACH = SLOTS - 1,
	/* Enough for 2^63 ticks. */
	LEVELS = 11,
};

static inline unsigned level_shift(unsigned level)
{
	return level * STEP_BITS;
}

/* Returns the lowest level that can hold a timeout which is due `distance` ticks from now. */
static inline unsigned level_of(uint64_t distance)
{
	unsigned level = 0;

	if (distance >= REACH) {
		unsigned bits = 64 - (unsigned)__builtin_clzll(distance);

		level = (bits - 8 + STEP_BITS - 1) / STEP_BITS;
		level += distance >> level_shift(level) >= REACH;
	}
	return level;
}

/* Returns the first tick of slot `at`. The slots of a level are counted from tick 0. */
static inline uint64_t slot_begin(unsigned level, uint64_t at)
{
	return at << level_shift(level);
}

#endif
