/* SPDX-License-Identifier: MIT */
/*
 * A stack for any number of threads. The memory of a link must never be used for anything else.
 *
 * Top and a counter of changes lie next to each other and change in one step of 128 bits. So if a
 * link leaves the stack and comes back during a pop, the pop fails. A pop may read a link that is
 * no longer in the stack. Then its `next` is meaningless, but the counter has changed too, so the
 * pop fails.
 *
 * Progress: lock-free.
 */
#ifndef TWI_RETRY_STACK_H
#define TWI_RETRY_STACK_H

#include "base/atomic.h"
#include "base/test_point.h"

#include <stddef.h>
#include <stdint.h>

struct twi_link {
	_Atomic(struct twi_link *) next; /* [atomic E42] */
};

struct twi_stack {
	_Alignas(16) _Atomic uint64_t top[2]; /* [atomic E42] the first link, and the counter */
};

static inline void twi_stack_push(struct twi_stack *stack, struct twi_link *link)
{
	struct twi_pair seen, next;

	do {
		/*
		 * RELAXED, two loads and a store: this thread reads no field of the top link, and
		 * the swap publishes.
		 */
		seen.half[1] = twi_load_relaxed(&stack->top[1]);
		seen.half[0] = twi_load_relaxed(&stack->top[0]); /* RELAXED: as above */
		twi_store_relaxed(&link->next,
				  (struct twi_link *)(uintptr_t)seen.half[0]); /* RELAXED */
		next.half[0] = (uint64_t)(uintptr_t)link;
		next.half[1] = seen.half[1] + 1;
		/* E42: pairs with pop. Publishes everything that was done with the link. */
	} while (!twi_cas_pair_acq_rel(stack->top, seen, next));
}

static inline struct twi_link *twi_stack_pop(struct twi_stack *stack)
{
	struct twi_pair seen, next;
	struct twi_link *link;

	do {
		/*
		 * E42: pairs with push. Acquires the top, its link, and everything that was done
		 * with it.
		 */
		seen.half[1] = twi_load_acquire(&stack->top[1]);
		/*
		 * E42: as above. The top is as new as the counter, or newer. If it is newer, the
		 * swap fails, but the link is read all the same, so its memory must be initialised
		 * by then.
		 */
		seen.half[0] = twi_load_acquire(&stack->top[0]);
		link = (struct twi_link *)(uintptr_t)seen.half[0];
		if (link == NULL)
			return NULL;
		/*
		 * RELAXED: if the link does not belong to the counter that was read, the swap
		 * fails.
		 */
		next.half[0] = (uint64_t)(uintptr_t)twi_load_relaxed(&link->next);
		next.half[1] = seen.half[1] + 1;
		TWI_TEST_POINT("retry:popping");
	} while (!twi_cas_pair_acquire(stack->top, seen, next)); /* E42: as above */
	return link;
}

#endif
