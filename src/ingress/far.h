/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread's lane in an engine.
 *
 * Lanes lie in blocks of 64. Block 0 lies in the engine and has the near lanes. All other blocks
 * have far lanes and lie in pages. Each page is twice as large as the one before: page k has the
 * blocks 2^k to 2^(k+1) - 1. The first thread that needs a lane of a page makes the page, which
 * stays until the engine is freed. So an engine has memory for at most twice as many far lanes as
 * there ever were threads at once.
 *
 * Protocol. An engine's pointer to a page changes only once, from NULL to a zeroed page, or to a
 * mark if there was no memory (E130). If the pointer is the mark, the threads of that page share
 * lane 63 for good: if a thread changed its lane later, its timeouts could get out of order. The
 * first thread that uses a lane initialises it before it sets the lane's bit.
 */
#ifndef TWI_INGRESS_FAR_H
#define TWI_INGRESS_FAR_H

#include "base/atomic.h"
#include "worker/worker.h"

/* The largest number of blocks. */
enum { TWI_BLOCKS = TWI_LANES_MAX / TWI_LANES };

/* far.c: returns the number of the first block from `from` on that exists, or TWI_BLOCKS. */
uint32_t twi_lane_block_next(const struct twi_worker *worker, uint32_t from);

/* far.c: returns the block with this number, which must exist. */
struct twi_lane_block *twi_lane_block_at(struct twi_worker *worker, uint32_t number);

/*
 * far.c: returns the far lane with this number. Makes it if necessary. If there is no memory,
 * returns the shared lane.
 */
struct twi_lane *twi_lane_far(struct twi_worker *worker, uint32_t number);

/*
 * far.c: returns the far lane with this number, but makes nothing. If the lane was never used,
 * returns the shared lane.
 */
struct twi_lane *twi_lane_far_made(struct twi_worker *worker, uint32_t number);

/* far.c: frees the pages. No thread may use the engine any more. */
void twi_far_free(struct twi_worker *worker);

/*
 * Returns a bitmap of a block's lanes that the worker must look at. If a thread is just setting a
 * lane's bit, the worker may miss the bit here. Then it finds the bit in the next turn. After a
 * grace period the worker sees all bits.
 */
static inline uint64_t twi_lane_block_used(const struct twi_lane_block *block)
{
	/* E130: acquires the far lanes that were initialised before their bits were set. */
	return twi_load_acquire(&block->used);
}

/* Returns the calling thread's lane. The thread must be attached. */
static inline struct twi_lane *twi_lane_of(struct twi_worker *worker,
					   const struct twi_thread *thread)
{
	if (TWI_UNLIKELY(thread->far != 0))
		return twi_lane_far(worker, thread->far);
	return &worker->near.lane[thread->lane];
}

/*
 * Returns the calling thread's lane, for a caller that only counts. Makes no lane: if the thread
 * has none here, returns the shared one.
 */
static inline struct twi_lane *twi_lane_made_of(struct twi_worker *worker,
						const struct twi_thread *thread)
{
	if (TWI_UNLIKELY(thread->far != 0))
		return twi_lane_far_made(worker, thread->far);
	return &worker->near.lane[thread->lane];
}

#endif
