/* SPDX-License-Identifier: MIT */
/*
 * A clock that shows the time of another clock. A queue cannot use the engine's clock itself,
 * because a virtual clock serves only one engine at a time.
 */
#ifndef TWI_SCALED_CLOCK_H
#define TWI_SCALED_CLOCK_H

#include "clock/clock.h"

struct twi_clock_follow {
	struct tw_clock clock;
	struct tw_clock *front; /* [const] */
};

void twi_clock_follow_init(struct twi_clock_follow *clock, struct tw_clock *front);

#endif
