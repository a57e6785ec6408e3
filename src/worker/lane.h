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
#include <stddef.h>
#include <stdint.h>

struct twi_lane {
	/* The producer's line. */
	TWI_CACHE_ALIGNED struct twi_ring_in ring;
	_Atomic uint64_t
		cancelled_count; /* [producer] of ended_count: the worker gives them back */
	/* A pair, which readers read as one: what the lane's threads began, less what they ended. */
	_Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t scheduled_count; /* [producer E90] */
	_Atomic uint64_t ended_count;       /* [producer E90] every cancel, wherever it found it */
	_Atomic uint64_t refused_count;     /* [producer] */
	_Atomic uint64_t rescheduled_count; /* [producer] */
	/* The producers' line, where there is no ring or no room in it. */
	TWI_CACHE_ALIGNED struct twi_mpsc_in ingress;
	struct twi_mpsc_in cancelled;
	_Atomic bool known; /* [producer E15] the worker looks at this lane */
	_Atomic uint64_t
		stopped_count; /* [producer] of ended_count: chains cancelled while they ran */
	/* The worker's line. */
	TWI_CACHE_ALIGNED struct twi_ring_out ring_out;
	struct twi_mpsc_out ingress_out;
	struct twi_mpsc_out cancelled_out;
	bool links_first; /* [worker] next time, before the ring */
};

_Static_assert(offsetof(struct twi_lane, ended_count) ==
		       offsetof(struct twi_lane, scheduled_count) + sizeof(uint64_t),
	       "begins and ends are a pair");

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

/*
 * A half of a pair, by its one writer. Returns the new count. E90: readers see begins and ends in the order
 * in which the writer counted them, and with an end whatever the writer counted before it.
 */
static inline uint64_t twi_half_count(_Atomic uint64_t *half, uint64_t more)
{
	/* RELAXED: the writer's own. */
	uint64_t count = twi_load_relaxed(half) + more;

	twi_store_release(half, count); /* E90 */
	return count;
}

/* The same in a lane, which may be the shared one. */
static inline uint64_t twi_lane_half_count(const struct twi_thread *thread, _Atomic uint64_t *half,
					   uint64_t more)
{
	if (TWI_UNLIKELY(thread->lane == TWI_LANE_SHARED))
		return twi_fetch_add_release(half, more) + more; /* E90 */
	return twi_half_count(half, more);
}

/* A schedule. Returns the new count. */
static inline uint64_t twi_lane_begin_count(const struct twi_thread *thread, struct twi_lane *lane)
{
	return twi_lane_half_count(thread, &lane->scheduled_count, 1);
}

/* Cancels that leave nothing to the worker. */
static inline void twi_lane_end_count(const struct twi_thread *thread, struct twi_lane *lane,
				      uint64_t count)
{
	(void)twi_lane_half_count(thread, &lane->ended_count, count);
}

/*
 * Other cancels: `kind` is the counter that says which, and comes first, because readers subtract it from
 * ended_count. Returns its new count. RELAXED: as above; the end publishes it.
 */
static inline uint64_t twi_lane_end_count_as(const struct twi_thread *thread, struct twi_lane *lane,
					     _Atomic uint64_t *kind, uint64_t count)
{
	uint64_t of_kind;

	if (TWI_UNLIKELY(thread->lane == TWI_LANE_SHARED)) {
		of_kind = twi_fetch_add_relaxed(kind, count) + count;
		(void)twi_fetch_add_release(&lane->ended_count, count); /* E90 */
		return of_kind;
	}
	of_kind = twi_load_relaxed(kind) + count;
	twi_store_relaxed(kind, of_kind);
	(void)twi_half_count(&lane->ended_count, count);
	return of_kind;
}

#endif
