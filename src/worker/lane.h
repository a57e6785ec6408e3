/* SPDX-License-Identifier: MIT */
/*
 * A lane: one thread's queues to the worker. It has a ring for the timeouts that the thread
 * schedules, and for those in the wheel that it has cancelled or rescheduled to an earlier
 * deadline. Two link queues are used while the ring is full or missing. In an engine with an order,
 * scheduled timeouts always go through a link queue. The lane also has the thread's counters.
 *
 * Each thread has its own lane in every engine (thread/thread.h). So producers do not share a cache
 * line, and a producer that is stopped in the middle of a push delays only its own timeouts. The
 * lanes with low numbers (near) lie in the engine. The lanes with higher numbers (far) lie in
 * blocks that are made on demand (ingress/far.h). Threads without a number share lane 63. So do
 * threads that got no memory for a lane. Lane 63 has no ring, because a ring has one producer, and
 * the counters of that lane need locked additions. In every other lane the first push makes the
 * ring. If there is no memory for it, the lane uses its link queues from then on.
 *
 * Entries in the ring and in the queues have no order between them. None is needed, because the
 * state word decides about a cancel, and the deadline decides when a timeout is due.
 */
#ifndef TWI_WORKER_LANE_H
#define TWI_WORKER_LANE_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "queue/mpsc.h"
#include "queue/ring.h"
#include "thread/thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct twi_lane {
	/* The producer's cache line. */
	TWI_CACHE_ALIGNED struct twi_ring_in ring;
	_Atomic uint64_t cancelled_count; /* [producer] cancels whose node the worker frees */
	/*
	 * A pair that readers load as one: how many timeouts the lane's threads have scheduled, and
	 * how many they have cancelled.
	 */
	_Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t scheduled_count; /* [producer E90] */
	_Atomic uint64_t ended_count;       /* [producer E90] every cancel, in any state */
	_Atomic uint64_t rescheduled_count; /* [producer] */
	uint32_t number;                    /* [const] the lane's number; the shared lane has 63 */
	_Atomic bool known;    /* [producer E15] the lane's bit was set, before the first push */
	_Atomic bool unfenced; /* [worker E8] pushes need no fence; the mark is never removed */
	bool joined;           /* [producer] the first push has set the lane up */
	_Atomic bool again;    /* [worker] the thread may use ring entries again (ring.h); a hint */
	/* The producers' cache line, used if there is no ring or the ring is full. */
	TWI_CACHE_ALIGNED struct twi_mpsc_in ingress;
	struct twi_mpsc_in cancelled;
	struct twi_ring_arrays arrays;
	_Atomic uint64_t rejected_count; /* [producer] */
	_Atomic uint64_t stopped_count;  /* [producer] chains cancelled during a run */
	/* [producer] the part of cancelled_count that is in the worker's cancelled_sum */
	_Atomic uint64_t summed_count;
	/* The worker's cache line. */
	TWI_CACHE_ALIGNED struct twi_ring_out ring_out;
	struct twi_mpsc_out ingress_out;
	struct twi_mpsc_out cancelled_out;
	bool links_first;        /* [worker] the next batch reads the link queues before the ring */
	bool repeats;            /* [worker] most entries of the last large batch were repeated */
	uint64_t scheduled_seen; /* [worker] scheduled_count when `again` was last judged */
};

_Static_assert(offsetof(struct twi_lane, ended_count) ==
		       offsetof(struct twi_lane, scheduled_count) + sizeof(uint64_t),
	       "begins and ends are a pair");

/* Marks a ring entry whose node must be handled like one from the cancel queue. */
#define TWI_ENTRY_CANCELLED ((uintptr_t)1)

/* Page k has 2^k blocks of far lanes: enough for TWI_LANES_MAX in all. */
enum { TWI_FAR_PAGES = 10 };

/* A block of lanes with consecutive numbers. */
struct twi_lane_block {
	/*
	 * A bit for each lane that the worker looks at. The worker may clear the bit of a far lane
	 * that is idle before a sleep (ingress/rest.h).
	 */
	TWI_CACHE_ALIGNED _Atomic uint64_t used; /* [atomic E8] */
	struct twi_lane lane[TWI_LANES];
};

static inline void twi_lane_init(struct twi_lane *lane, uint32_t number)
{
	lane->number = number;
	twi_mpsc_init(&lane->ingress, &lane->ingress_out);
	twi_mpsc_init(&lane->cancelled, &lane->cancelled_out);
}

/*
 * Adds 1 to one of the lane's counters. RELAXED: counters publish nothing. An exclusive lane has
 * one writer at a time, and E7 orders the change of owner.
 */
static inline void twi_lane_count(const struct twi_lane *lane, _Atomic uint64_t *counter)
{
	if (TWI_UNLIKELY(lane->number == TWI_LANE_SHARED))
		(void)twi_fetch_add_relaxed(counter, 1);
	else
		twi_count_add(counter, 1);
}

/*
 * Adds to one half of a pair. The caller must be the only writer of that half. Returns the new
 * count. E90: readers see schedules and ends in the order in which the writer counted them. With an
 * end they see everything that the writer counted before it.
 */
static inline uint64_t twi_half_count(_Atomic uint64_t *half, uint64_t more)
{
	/* RELAXED: only this thread writes this half. */
	uint64_t count = twi_load_relaxed(half) + more;

	twi_store_release(half, count); /* E90: readers acquire both halves at once. */
	return count;
}

/* Does the same as twi_half_count in a lane, which may be the shared one. */
static inline uint64_t twi_lane_half_count(const struct twi_lane *lane, _Atomic uint64_t *half,
					   uint64_t more)
{
	if (TWI_UNLIKELY(lane->number == TWI_LANE_SHARED))
		return twi_fetch_add_release(half, more) + more; /* E90: as in twi_half_count. */
	return twi_half_count(half, more);
}

/* Counts a schedule. Returns the new count. */
static inline uint64_t twi_lane_begin_count(struct twi_lane *lane)
{
	return twi_lane_half_count(lane, &lane->scheduled_count, 1);
}

/* Counts the cancels that leave the worker nothing to do. */
static inline void twi_lane_end_count(struct twi_lane *lane, uint64_t count)
{
	(void)twi_lane_half_count(lane, &lane->ended_count, count);
}

/*
 * Counts cancels of one kind, in its counter `kind` and in ended_count. `kind` must be raised
 * first, because readers subtract it from ended_count. Returns the new count of `kind`. RELAXED: as
 * in twi_lane_count; the addition to ended_count publishes this count.
 */
static inline uint64_t twi_lane_end_count_as(struct twi_lane *lane, _Atomic uint64_t *kind,
					     uint64_t count)
{
	uint64_t of_kind;

	if (TWI_UNLIKELY(lane->number == TWI_LANE_SHARED)) {
		of_kind = twi_fetch_add_relaxed(kind, count) + count;
		(void)twi_fetch_add_release(&lane->ended_count, count); /* E90: as above. */
		return of_kind;
	}
	of_kind = twi_load_relaxed(kind) + count;
	twi_store_relaxed(kind, of_kind);
	(void)twi_half_count(&lane->ended_count, count);
	return of_kind;
}

#endif
