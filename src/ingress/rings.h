/* SPDX-License-Identifier: MIT */
/*
 * The memory of a lane's ring: its first array, larger ones when it is full, and smaller ones when
 * only few of its places were in use for a long time.
 */
#ifndef TWI_INGRESS_RINGS_H
#define TWI_INGRESS_RINGS_H

#include "worker/worker.h"

/* Makes the ring before a lane's first push. If there is no memory, the lane never gets a ring. */
void twi_lane_ring_make(struct twi_worker *worker, struct twi_lane *lane);

/*
 * Looks whether the worker has taken entries. If the ring is still full, makes it larger. Returns
 * whether there is a free entry. The lane's thread calls it if it knows of fewer than `wanted` free
 * entries.
 */
bool twi_lane_ring_room(struct twi_worker *worker, struct twi_lane *lane, uint32_t wanted);

/* Frees the ring. No thread may use the lane any more. */
void twi_lane_ring_free(const struct tw_allocator *allocator, struct twi_lane *lane);

#endif
