/* SPDX-License-Identifier: MIT */
/*
 * Passes batches from many threads to one. The batches form a stack, which the receiving thread
 * takes as a whole.
 *
 * Ownership. A batch and its link belong to the thread that pushes it, then to the thread that
 * takes it (E66). The receiving thread takes all batches at once, so no thread follows a link that
 * may change. There is no ABA problem, because a push compares the top but does not follow it.
 *
 * Progress. push is lock-free: it repeats its swap only if another push, or the take, has
 * succeeded. take is wait-free.
 */
#ifndef TWI_QUEUE_HANDOVER_H
#define TWI_QUEUE_HANDOVER_H

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
	/*
	 * RELAXED: a first guess that the compare-and-swap verifies. Nothing is read through the
	 * pointer.
	 */
	struct twi_handover_link *top = twi_load_relaxed(&handover->top);

	twi_tsan_release(handover);
	do
		link->next = top;
	/* E66: pairs with twi_handover_take(). Publishes the batch and its link. */
	while (!twi_cas_release(&handover->top, &top, link));
}

static inline bool twi_handover_empty(const struct twi_handover *handover)
{
	/* RELAXED: another thread may push at any time, so the answer is only a hint. */
	return twi_load_relaxed(&handover->top) == NULL;
}

/* Takes all batches that were pushed. The first one pushed comes first. */
static inline struct twi_handover_link *twi_handover_take(struct twi_handover *handover)
{
	/*
	 * E66: pairs with twi_handover_push(). All pushes that are taken form one release sequence,
	 * so this acquires the writes of all their threads.
	 */
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
