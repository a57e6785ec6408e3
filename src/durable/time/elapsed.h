/* SPDX-License-Identifier: MIT */
/*
 * Elapsed time, for the kinds that count it. It is a clock of the set that no step of the wall clock
 * changes: CLOCK_BOOTTIME and a number. In the first boot of a store it equals the wall clock at the
 * first open. The number is kept in the store. So a later open in the same boot goes on with the same
 * clock, whatever the wall clock has done meanwhile.
 *
 * CLOCK_BOOTTIME means nothing to the next boot. There only the wall clock says how long the machine
 * was off. So the store keeps how far the two clocks are apart, too, and the new boot goes on with the
 * same distance: a deadline stays where it was on the wall clock last.
 */
#ifndef TWI_DURABLE_TIME_ELAPSED_H
#define TWI_DURABLE_TIME_ELAPSED_H

#include "durable/set.h"

/* The clock of the system, and the name of its boot; "": it has none that can be read. */
int64_t twi_elapsed_system_ns(void *context);
void twi_elapsed_system_boot(char *ret, size_t size);

/* At open, when the store is open. 0, or a code of the store. */
int twi_elapsed_open(struct tw_durable *set);
/* Notes a step of the wall clock, in the store first. 0, or a code of the store. */
int twi_elapsed_follow(struct tw_durable *set);

#endif
