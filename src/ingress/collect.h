/* SPDX-License-Identifier: MIT */
/* Takes the entries out of the rings. */
#ifndef TWI_INGRESS_COLLECT_H
#define TWI_INGRESS_COLLECT_H

#include "ingress/lanes.h"

/* Takes entries out of a lane's ring: transfers or reclaims the timeouts that they name. */
TWI_WORKER_ONLY twi_lane_step twi_lane_collect;

#endif
