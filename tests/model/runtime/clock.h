/* SPDX-License-Identifier: MIT */
/*
 * Vector clocks: what happened before.
 *
 * Writes and reads are counted apart, because ConcurrencyKit's fences order only one of the two;
 * for C11 both sides always move together.
 */
#ifndef MODEL_CLOCK_H
#define MODEL_CLOCK_H

#include "model.h"

struct model_clock {
	uint32_t w[MODEL_FIBERS]; /* writes of that fiber up to this epoch come before */
	uint32_t r[MODEL_FIBERS]; /* reads likewise */
};

static inline void clock_join(struct model_clock *clock, const struct model_clock *other)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++) {
		clock->w[i] = clock->w[i] > other->w[i] ? clock->w[i] : other->w[i];
		clock->r[i] = clock->r[i] > other->r[i] ? clock->r[i] : other->r[i];
	}
}

#endif
