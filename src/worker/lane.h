/* SPDX-License-Identifier: MIT */
/*
 * A lane: one thread's way to the worker. A ring for what it schedules, cancelled in the wheel, or made
 * earlier there; two link queues for when the ring is full; and its counters.
 *
 * Each thread has a lane of its own in every engine (mech/thread.h), so producers do not share a
 * line with each other, and one that is stopped in the middle of a push delays nobody else's
 * timeouts. Threads beyond the 63rd share the last lane, which has no ring, since that is one producer's,
 * and whose counters need locked additions. A ring is made by the first push to its lane; where there is
 * no memory for it the link queues serve for good.
 *
 * What is in the ring and what is in the queues has no order: a cancel goes by the word, and whatever
 * is due goes by its deadline.
 */
#ifndef TWI_WORKER_LANE_H
#define TWI_WORKER_LANE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "mech/mpsc.h"
#include "mech/ring.h"
#include "mech/thread.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_lane {
	/* The producer's line. */
	TWI_CACHE_ALIGNED struct twi_ring_in ring;
	_Atomic uint64_t scheduled_count;   /* [producer] */
	_Atomic uint64_t cancelled_count;   /* [producer] the worker gives them back */
	_Atomic uint64_t withdrawn_count;   /* [producer] cancelled, and given back by who did it */
	_Atomic uint64_t refused_count;     /* [producer] */
	_Atomic uint64_t rescheduled_count; /* [producer] */
	/* The producers' line, where there is no ring or no room in it. */
	TWI_CACHE_ALIGNED struct twi_mpsc_in ingress;
	struct twi_mpsc_in cancelled;
	_Atomic bool known;             /* [producer E15] the worker looks at this lane */
	_Atomic uint64_t stopped_count; /* [producer] chains cancelled while they ran: seldom */
	/* The worker's line. */
	TWI_CACHE_ALIGNED struct twi_ring_out ring_out;
	struct twi_mpsc_out ingress_out;
	struct twi_mpsc_out cancelled_out;
	bool links_first; /* [worker] next time, before the ring */
};

/* What a ring's entry says of the node whose address it is: it comes out of the cancel queue. */
#define TWI_ENTRY_CANCELLED ((uintptr_t)1)

static inline void twi_lane_init(struct twi_lane *lane)
{
	twi_mpsc_init(&lane->ingress, &lane->ingress_out);
	twi_mpsc_init(&lane->cancelled, &lane->cancelled_out);
}

/*
 * Returns the new count. RELAXED: counters publish nothing. Exclusive lanes have one writer at a
 * time; the change of owner is ordered by E7.
 */
static inline uint64_t twi_lane_count_by(const struct twi_thread *thread, _Atomic uint64_t *counter,
					 uint64_t more)
{
	uint64_t count;

	if (TWI_UNLIKELY(thread->lane == TWI_LANE_SHARED))
		return twi_fetch_add_relaxed(counter, more) + more;
	count = twi_load_relaxed(counter) + more;
	twi_store_relaxed(counter, count);
	return count;
}

static inline uint64_t twi_lane_count(const struct twi_thread *thread, _Atomic uint64_t *counter)
{
	return twi_lane_count_by(thread, counter, 1);
}

#endif
