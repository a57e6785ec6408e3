/* SPDX-License-Identifier: MIT */
/*
 * Batches on their way to the one thread that may take them: a stack that is taken as a whole.
 *
 * Who owns what. A batch: who pushes it, then who takes it (E66). The link: likewise. Since all are taken at
 * once, no pop looks at a link that may change: a top that comes again is the same list.
 *
 * Progress. push: lock-free, repeated only where another push, or the take, has succeeded. take: wait-free.
 */
#ifndef TWI_MECH_HANDOVER_H
#define TWI_MECH_HANDOVER_H

#include "base/atomic.h"
#include "base/tsan.h"

#include <stddef.h>

struct twi_handover_link {
	struct twi_handover_link *next; /* [handoff E66] */
};

struct twi_handover {
	_Atomic(struct twi_handover_link *) top; /* [atomic E66] */
};

static inline void twi_handover_push(struct twi_handover *handover, struct twi_handover_link *link)
{
	/* RELAXED: a first guess; the swap decides, and nothing is read through it. */
	struct twi_handover_link *top = twi_load_relaxed(&handover->top);

	twi_tsan_release(handover);
	do
		link->next = top;
	/* E66: the batch, and its link. */
	while (!twi_cas_release(&handover->top, &top, link));
}

static inline bool twi_handover_empty(const struct twi_handover *handover)
{
	/* RELAXED: a guess to others than its taker. */
	return twi_load_relaxed(&handover->top) == NULL;
}

/* All that was pushed, the first one first. */
static inline struct twi_handover_link *twi_handover_take(struct twi_handover *handover)
{
	/* E66: each push is a step of one release sequence, or was taken before. */
	struct twi_handover_link *link = twi_exchange_acquire(&handover->top, NULL);
	struct twi_handover_link *first = NULL;

	twi_tsan_acquire(handover);
	while (link != NULL) {
		struct twi_handover_link *next = link->next;

		link->next = first;
		first = link;
		link = next;
	}
	return first;
}

#endif
