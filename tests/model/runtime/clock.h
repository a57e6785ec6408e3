/* SPDX-License-Identifier: MIT */
/*
 * Vector clocks, which record what happened before.
 *
 * Writes and reads have separate counters, because each of ConcurrencyKit's fences orders only one
 * of the two. In C11 both always move together.
 */
#ifndef MODEL_CLOCK_H
#define MODEL_CLOCK_H

#include "model.h"

struct model_clock {
	uint32_t w[MODEL_FIBERS]; /* all writes of that fiber up to this epoch are covered */
	uint32_t r[MODEL_FIBERS]; /* the same for its reads */
};

static inline void clock_join(struct model_clock *clock, const struct model_clock *other)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++) {
		clock->w[i] = clock->w[i] > other->w[i] ? clock->w[i] : other->w[i];
		clock->r[i] = clock->r[i] > other->r[i] ? clock->r[i] : other->r[i];
	}
}

#endif
