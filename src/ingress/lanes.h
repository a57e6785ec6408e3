/* SPDX-License-Identifier: MIT */
/*
 * The worker's side of the lanes.
 */
#ifndef TWI_INGRESS_LANES_H
#define TWI_INGRESS_LANES_H

#include "worker/left.h"
#include "worker/worker.h"

/*
 * Takes at most `most` entries from one lane. Adds bits of enum twi_left to *left, for the work
 * that remains there.
 */
typedef uint64_t twi_lane_step(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			       unsigned *left);

/*
 * Called after twi_mpsc_take_sc has returned NULL. Returns, as enum twi_left, which pushes the
 * queue may still hide. If one thread uses the lane, that can only be a push which that thread has
 * not completed. In the shared lane, such a push may hide completed pushes by other threads.
 */
static inline TWI_WORKER_ONLY unsigned twi_lane_left(const struct twi_lane *lane,
						     const struct twi_mpsc_node *last,
						     const struct twi_mpsc_out *out)
{
	if (last == &out->stub && out->tail == &out->stub)
		return TWI_LEFT_NOTHING;
	return lane->number == TWI_LANE_SHARED ? TWI_LEFT_CUT : TWI_LEFT_HIDDEN;
}

/* Returns whether the worker has taken every entry that was pushed to the lane. */
TWI_WORKER_ONLY bool twi_lane_idle(const struct twi_lane *lane);

/* Returns whether all lanes are idle. */
TWI_WORKER_ONLY bool twi_lanes_idle(struct twi_worker *worker);

/* Returns whether no thread ever pushed to the engine. No other thread may use the engine. */
bool twi_lanes_unused(const struct twi_worker *worker);

/*
 * Calls `step` for each lane to take a batch, with a share from each lane. Returns how many entries
 * were taken.
 */
TWI_WORKER_ONLY uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step,
					uint64_t batch, unsigned *left);

/* Frees the rings, and the blocks of far lanes. */
void twi_lanes_free(struct twi_worker *worker);

#endif
