/* SPDX-License-Identifier: MIT */
/* [io] Applies a committed operation to its timer in memory. */
#ifndef TWI_DURABLE_SETTLE_H
#define TWI_DURABLE_SETTLE_H

#include "durable/set.h"

void twi_settle(struct tw_durable *set, const struct tw_durable_op *op,
		struct twi_durable_timer *timer);

/* Applies an operation that the store may or may not have executed. */
void twi_settle_lost(struct tw_durable *set, const struct tw_durable_op *op,
		     struct twi_durable_timer *timer);

#endif
