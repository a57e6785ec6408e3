/* SPDX-License-Identifier: MIT */
/*
 * The one order of all sequentially consistent accesses, where it need not be that of the run.
 *
 * It has to agree with what happens before, and with each object's modification order: a load comes
 * after the stores up to the one that it reads, and after who has read an older one; and before the
 * stores that are newer, and before who has read those. A load that is about to read an old store may
 * do so when all that makes no circle.
 */
#ifndef MODEL_ORDER_H
#define MODEL_ORDER_H

#include "runtime/fiber.h"

#include <stdint.h>

enum { ORDER_EVENTS = 256, ORDER_WORDS = ORDER_EVENTS / 64 };

/* Sequentially consistent accesses. */
struct order_set {
	uint64_t bit[ORDER_WORDS];
};

static inline void order_join(struct order_set *set, const struct order_set *other)
{
	for (unsigned i = 0; i < ORDER_WORDS; i++)
		set->bit[i] |= other->bit[i];
}

void order_begin(void);

/* Whether this harness asks for it, and a run has not had too many such accesses. */
bool order_open(void);

/* What happens before an access of the calling fiber that knows `clock`. */
struct order_set order_before(const struct model_clock *clock);

/* Whether an access may stand after all of one set, and before all of the other. */
bool order_allows(const struct order_set *before, const struct order_set *after);

/* One more access, there. Its number goes into `ret_set`. */
void order_add(const struct order_set *before, const struct order_set *after, bool writes,
	       struct order_set *ret_set);

#endif
