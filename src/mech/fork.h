/* SPDX-License-Identifier: MIT */
/*
 * After fork the child has the parent's engines, but not their workers. It is told so by -ECHILD.
 */
#ifndef TWI_MECH_FORK_H
#define TWI_MECH_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* How often this process and its ancestors forked with engines at hand. [const] between forks */
extern uint32_t twi_fork_epoch;

/* From the first engine on, a fork counts. */
void twi_fork_watch(void);

static inline bool twi_forked(void)
{
	return twi_fork_epoch != 0;
}

#endif
