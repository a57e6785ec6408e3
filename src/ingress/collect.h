/* SPDX-License-Identifier: MIT */
/* Takes the entries out of the rings. */
#ifndef TWI_INGRESS_COLLECT_H
#define TWI_INGRESS_COLLECT_H

#include "ingress/lanes.h"

/* Moves the timeouts that the ring names into the wheel or out of it. */
TWI_WORKER_ONLY twi_lane_step twi_lane_collect;

#endif
