/* SPDX-License-Identifier: MIT */
/* [io] The next step of a timer in memory when its operation is in the store. */
#ifndef TWI_DURABLE_SETTLE_H
#define TWI_DURABLE_SETTLE_H

#include "durable/set.h"

void twi_settle(struct tw_durable *set, const struct tw_durable_op *op,
		struct twi_durable_timer *timer);

/* It is unknown whether the store has done the operation. */
void twi_settle_lost(struct tw_durable *set, const struct tw_durable_op *op,
		     struct twi_durable_timer *timer);

#endif
