/* SPDX-License-Identifier: MIT */
/* [io] From staged items to the operations of a batch. */
#ifndef TWI_DURABLE_TAKE_H
#define TWI_DURABLE_TAKE_H

#include "durable/set.h"

/* Takes all that is staged, and commits it. True: there was something. */
bool twi_take_all(struct tw_durable *set);

/*
 * At the end of a close: takes back the starts that were stored, of runs that did not begin. Each would
 * count as an attempt at the next open, perhaps as the last one.
 */
void twi_take_starts_back(struct tw_durable *set);

#endif
