/* SPDX-License-Identifier: MIT */
/* [io] The steps of the I/O thread, and its loop. */
#ifndef TWI_DURABLE_IO_H
#define TWI_DURABLE_IO_H

#include "durable/set.h"

/*
 * Makes one step. Tests without an I/O thread call it themselves. Returns true if another step
 * should follow at once.
 */
bool twi_io_step(struct tw_durable *set);

/* Runs the I/O thread. `set` is a struct tw_durable. */
void *twi_io_main(void *set);

#endif
