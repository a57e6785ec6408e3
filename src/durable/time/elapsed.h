/* SPDX-License-Identifier: MIT */
/*
 * Elapsed time, for the kinds that count it. It is a clock of the set that no step of the wall
 * clock changes: CLOCK_BOOTTIME plus a number. In the first boot of a store it equals the wall
 * clock at the first open. The number is kept in the store. So a later open in the same boot
 * continues with the same clock, even if the wall clock was set meanwhile.
 *
 * CLOCK_BOOTTIME means nothing to the next boot. After a reboot only the wall clock says how long
 * the machine was off. So the store also keeps the distance of the two clocks, and the new boot
 * continues with the same distance. A deadline stays at the wall-clock time that it had last.
 */
#ifndef TWI_DURABLE_TIME_ELAPSED_H
#define TWI_DURABLE_TIME_ELAPSED_H

#include "durable/set.h"

/*
 * Return the time of CLOCK_BOOTTIME, and the name of the system's boot. The name is "" if it cannot
 * be read.
 */
int64_t twi_elapsed_system_ns(void *context);
void twi_elapsed_system_boot(char *ret, size_t size);

/*
 * Reads or makes the clock, after the store is opened. Returns 0, -EUCLEAN, or a code of the store.
 */
int twi_elapsed_open(struct tw_durable *set);
/* Records a step of the wall clock, first in the store. Returns 0, or a code of the store. */
int twi_elapsed_follow(struct tw_durable *set);

#endif
