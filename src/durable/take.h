/* SPDX-License-Identifier: MIT */
/* [io] Makes the operations of a batch from the staged items. */
#ifndef TWI_DURABLE_TAKE_H
#define TWI_DURABLE_TAKE_H

#include "durable/set.h"

/* Takes all staged items, and commits them. Returns true if there were any. */
bool twi_take_all(struct tw_durable *set);

/*
 * Takes back stored starts whose runs did not begin. Called at the end of a close. Otherwise each
 * would count as an attempt after the next open, perhaps as the last attempt that the kind allows.
 */
void twi_take_starts_back(struct tw_durable *set);

#endif
