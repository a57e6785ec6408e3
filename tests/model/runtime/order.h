/* SPDX-License-Identifier: MIT */
/*
 * The single order of all sequentially consistent accesses, for harnesses in which this order may
 * differ from the order of the run.
 *
 * The order must agree with happens-before and with each object's modification order. So a load
 * comes after the store that it reads, after all older stores, and after the loads that read an
 * older store. It comes before all newer stores, and before the loads that read a newer store. A
 * load may read an old store, and a store may be put before a newer one, if these rules make no
 * circle.
 */
#ifndef MODEL_ORDER_H
#define MODEL_ORDER_H

#include "runtime/fiber.h"

#include <stdint.h>

enum { ORDER_EVENTS = 256, ORDER_WORDS = ORDER_EVENTS / 64 };

/* A set of sequentially consistent accesses. */
struct order_set {
	uint64_t bit[ORDER_WORDS];
};

static inline void order_join(struct order_set *set, const struct order_set *other)
{
	for (unsigned i = 0; i < ORDER_WORDS; i++)
		set->bit[i] |= other->bit[i];
}

void order_begin(void);

/*
 * Returns whether this harness asks for any order, and the run has not made too many such accesses.
 */
bool order_open(void);

/* Returns the accesses that happen before an access of the calling fiber that knows `clock`. */
struct order_set order_before(const struct model_clock *clock);

/* Returns whether an access may come after all of one set and before all of the other. */
bool order_allows(const struct order_set *before, const struct order_set *after);

/* Adds an access at that position. Stores its number in `ret_set`. */
void order_add(const struct order_set *before, const struct order_set *after, bool writes,
	       struct order_set *ret_set);

#endif
