/* SPDX-License-Identifier: MIT */
/*
 * The worker's side of the lanes.
 */
#ifndef TWI_INGRESS_LANES_H
#define TWI_INGRESS_LANES_H

#include "worker/left.h"
#include "worker/worker.h"

/* Takes at most `most` from one lane. Adds to *left what remains there. */
typedef uint64_t twi_lane_step(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			       unsigned *left);

/*
 * What hides in the queue when take has returned NULL, as enum twi_left. In an exclusive lane that
 * can only be pushes of the lane's own thread.
 */
static inline TWI_WORKER_ONLY unsigned twi_lane_left(const struct twi_worker *worker,
						     const struct twi_lane *lane,
						     const struct twi_mpsc_node *last,
						     const struct twi_mpsc_out *out)
{
	if (last == &out->stub && out->tail == &out->stub)
		return TWI_LEFT_NOTHING;
	return lane == &worker->lane[TWI_LANE_SHARED] ? TWI_LEFT_CUT : TWI_LEFT_HIDDEN;
}

/* Whether everything that was pushed to one lane has been taken. */
TWI_WORKER_ONLY bool twi_lane_idle(const struct twi_lane *lane);

/* The same, of all lanes. */
TWI_WORKER_ONLY bool twi_lanes_idle(const struct twi_worker *worker);

/* Takes a batch from all lanes, a share from each. Returns how many were taken. */
TWI_WORKER_ONLY uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step,
					uint64_t batch, unsigned *left);

/* Frees the rings. */
void twi_lanes_free(struct twi_worker *worker);

#endif
