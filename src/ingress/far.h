/* SPDX-License-Identifier: MIT */
/*
 * Finds a thread's lane in an engine.
 *
 * Near lanes lie in the engine. Far lanes lie in blocks of 64. Block 0 is the engine's own, with the
 * near lanes. The others lie in pages, of which each is twice as large as the one before: page k has
 * the blocks 2^k to 2^(k+1) - 1. A page is made by the first thread that needs one of its lanes, and
 * stays until the engine is freed. So an engine has memory for at most twice as many far lanes as
 * there ever were threads at once.
 *
 * Protocol. A page slot changes once, from NULL to a zeroed page, or to a mark if there was no memory
 * (E130). From then on the threads of that page share lane 63, so that a thread does not change its
 * lane in the middle, which could change the order of its timeouts. The first thread of a lane
 * initialises it before the lane's bit is set.
 */
#ifndef TWI_INGRESS_FAR_H
#define TWI_INGRESS_FAR_H

#include "base/atomic.h"
#include "worker/worker.h"

/* There are so many blocks at most. */
enum { TWI_BLOCKS = TWI_LANES_MAX / TWI_LANES };

/* far.c: returns the first block, from number `from` on, that exists, or TWI_BLOCKS. */
uint32_t twi_lane_block_next(const struct twi_worker *worker, uint32_t from);

/* far.c: returns a block that exists. */
struct twi_lane_block *twi_lane_block_at(struct twi_worker *worker, uint32_t number);

/* far.c: returns a thread's far lane, which is made if necessary; or the shared lane. */
struct twi_lane *twi_lane_far(struct twi_worker *worker, uint32_t number);

/* far.c: the same, but makes nothing. */
struct twi_lane *twi_lane_far_made(struct twi_worker *worker, uint32_t number);

/* far.c: frees the pages. No thread may use the engine any more. */
void twi_far_free(struct twi_worker *worker);

/*
 * Returns the lanes of a block that the worker looks at. A lane that is not seen here is seen in the
 * next turn. After a grace period all lanes are seen.
 */
static inline uint64_t twi_lane_block_used(const struct twi_lane_block *block)
{
	/* E130: acquires the far lanes that were initialised before their bits were set. */
	return twi_load_acquire(&block->used);
}

/* Returns the calling thread's lane. The thread is attached. */
static inline struct twi_lane *twi_lane_of(struct twi_worker *worker,
					   const struct twi_thread *thread)
{
	if (TWI_UNLIKELY(thread->far != 0))
		return twi_lane_far(worker, thread->far);
	return &worker->near.lane[thread->lane];
}

/* Does the same for a caller that only counts. Makes no lane, so it returns the shared one instead. */
static inline struct twi_lane *twi_lane_made_of(struct twi_worker *worker,
						const struct twi_thread *thread)
{
	if (TWI_UNLIKELY(thread->far != 0))
		return twi_lane_far_made(worker, thread->far);
	return &worker->near.lane[thread->lane];
}

#endif
