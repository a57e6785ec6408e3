/* SPDX-License-Identifier: MIT */
/*
 * The worker's side of the lanes.
 */
#ifndef TWI_INGRESS_LANES_H
#define TWI_INGRESS_LANES_H

#include "worker/left.h"
#include "worker/worker.h"

/* Takes at most `most` nodes from one lane. Adds to *left the work that remains there. */
typedef uint64_t twi_lane_step(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			       unsigned *left);

/*
 * Called when take has returned NULL. Returns, as enum twi_left, what may still be hidden in the
 * queue. In an exclusive lane that can only be a push of the lane's own thread that is not linked
 * yet.
 */
static inline TWI_WORKER_ONLY unsigned twi_lane_left(const struct twi_lane *lane,
						     const struct twi_mpsc_node *last,
						     const struct twi_mpsc_out *out)
{
	if (last == &out->stub && out->tail == &out->stub)
		return TWI_LEFT_NOTHING;
	return lane->number == TWI_LANE_SHARED ? TWI_LEFT_CUT : TWI_LEFT_HIDDEN;
}

/* Returns whether every node that was pushed to the lane has been taken. */
TWI_WORKER_ONLY bool twi_lane_idle(const struct twi_lane *lane);

/* Returns the same for all lanes. */
TWI_WORKER_ONLY bool twi_lanes_idle(struct twi_worker *worker);

/* Returns whether nothing was ever pushed. No other thread may use the engine. */
bool twi_lanes_unused(const struct twi_worker *worker);

/* Takes a batch, with a share from each lane. Returns how many nodes were taken. */
TWI_WORKER_ONLY uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step,
					uint64_t batch, unsigned *left);

/* Frees the rings, and the blocks of far lanes. */
void twi_lanes_free(struct twi_worker *worker);

#endif
