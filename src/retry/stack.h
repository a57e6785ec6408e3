/* SPDX-License-Identifier: MIT */
/*
 * A stack of links that never cease to be links, for any number of threads.
 *
 * Top and a counter of changes lie side by side and change in one step of 128 bits, so a pop whose
 * link went and came back meanwhile fails. A link may be read when it is no longer in the stack:
 * then its `next` says nothing, and the counter is another one.
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
		/* RELAXED, all three: nothing is read of what is there; the swap publishes. */
		seen.half[1] = twi_load_relaxed(&stack->top[1]);
		seen.half[0] = twi_load_relaxed(&stack->top[0]); /* RELAXED */
		twi_store_relaxed(&link->next,
				  (struct twi_link *)(uintptr_t)seen.half[0]); /* RELAXED */
		next.half[0] = (uint64_t)(uintptr_t)link;
		next.half[1] = seen.half[1] + 1;
		/* E42, pairs with pop: what was done with it. */
	} while (!twi_cas_pair_acq_rel(stack->top, seen, next));
}

static inline struct twi_link *twi_stack_pop(struct twi_stack *stack)
{
	struct twi_pair seen, next;
	struct twi_link *link;

	do {
		/* E42, pairs with push: the top, its link, and what was done with it. */
		seen.half[1] = twi_load_acquire(&stack->top[1]);
		/*
		 * E42, as above. As new as the counter; if newer, the swap fails, and the link is
		 * read all the same: its memory has to be initialised by then.
		 */
		seen.half[0] = twi_load_acquire(&stack->top[0]);
		link = (struct twi_link *)(uintptr_t)seen.half[0];
		if (link == NULL)
			return NULL;
		/* RELAXED: read with the counter that the swap compares, or in vain. */
		next.half[0] = (uint64_t)(uintptr_t)twi_load_relaxed(&link->next);
		next.half[1] = seen.half[1] + 1;
		TWI_TEST_POINT("retry:popping");
	} while (!twi_cas_pair_acquire(stack->top, seen, next)); /* E42 */
	return link;
}

#endif
