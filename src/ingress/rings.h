/* SPDX-License-Identifier: MIT */
/*
 * The memory of a lane's ring: its first array, larger ones if it is full, smaller ones if few of its
 * places are used for long.
 */
#ifndef TWI_INGRESS_RINGS_H
#define TWI_INGRESS_RINGS_H

#include "worker/worker.h"

/* Before a lane's first push. If there is no memory, the lane stays without a ring. */
void twi_lane_ring_make(struct twi_worker *worker, struct twi_lane *lane);

/*
 * For the lane's thread, if it knows of fewer than `wanted` free entries. Looks whether the worker
 * has taken some. If the ring is full, makes it larger. Returns whether there is a free entry.
 */
bool twi_lane_ring_room(struct twi_worker *worker, struct twi_lane *lane, uint32_t wanted);

/* At the end of the engine. */
void twi_lane_ring_free(const struct tw_allocator *allocator, struct twi_lane *lane);

#endif
