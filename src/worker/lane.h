/* SPDX-License-Identifier: MIT */
/*
 * A lane: one thread's way to the worker. Ingress for what it schedules, a queue for what it
 * cancelled in the wheel, and its counters.
 *
 * Each thread has a lane of its own in every engine (mech/thread.h), so producers do not share a
 * line with each other, and one that is stopped in the middle of a push delays nobody else's
 * timeouts. Threads beyond the 63rd share the last lane, whose counters need locked additions.
 */
#ifndef TWI_WORKER_LANE_H
#define TWI_WORKER_LANE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "mech/mpsc.h"
#include "mech/thread.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_lane {
	/* The producers' line. */
	TWI_CACHE_ALIGNED struct twi_mpsc_in ingress;
	struct twi_mpsc_in cancelled;
	_Atomic uint64_t scheduled_count; /* [producer] */
	_Atomic uint64_t cancelled_count; /* [producer] */
	_Atomic uint64_t refused_count;   /* [producer] */
	_Atomic bool known;               /* [producer E15] the worker looks at this lane */
	/* The worker's line. */
	TWI_CACHE_ALIGNED struct twi_mpsc_out ingress_out;
	struct twi_mpsc_out cancelled_out;
};

static inline void twi_lane_init(struct twi_lane *lane)
{
	twi_mpsc_init(&lane->ingress, &lane->ingress_out);
	twi_mpsc_init(&lane->cancelled, &lane->cancelled_out);
}

/*
 * Returns the new count. RELAXED: counters publish nothing. Exclusive lanes have one writer at a
 * time; the change of owner is ordered by E7.
 */
static inline uint64_t twi_lane_count(const struct twi_thread *thread, _Atomic uint64_t *counter)
{
	uint64_t count;

	if (TWI_UNLIKELY(thread->lane == TWI_LANE_SHARED))
		return twi_fetch_add_relaxed(counter, 1) + 1;
	count = twi_load_relaxed(counter) + 1;
	twi_store_relaxed(counter, count);
	return count;
}

#endif
