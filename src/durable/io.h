/* SPDX-License-Identifier: MIT */
/* [io] The steps of the I/O thread, and its loop. */
#ifndef TWI_DURABLE_IO_H
#define TWI_DURABLE_IO_H

#include "durable/set.h"

/* One step. Tests make it themselves. True: another should follow at once. */
bool twi_io_step(struct tw_durable *set);

/* The thread. */
void *twi_io_main(void *set);

#endif
