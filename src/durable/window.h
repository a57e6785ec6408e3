/* SPDX-License-Identifier: MIT */
/* [io] Loads the near window, follows the wall clock, and reserves serials. */
#ifndef TWI_DURABLE_WINDOW_H
#define TWI_DURABLE_WINDOW_H

#include "durable/set.h"

/* Reads the clocks, and acts on a step of the wall clock. Begins each step of the I/O thread. */
void twi_window_clock(struct tw_durable *set);
/* Reads the clocks when a set is opened, and accepts the readings. */
void twi_window_clock_init(struct tw_durable *set);

/*
 * Loads a slice of the timers that are due soon. Returns 1 if another slice can follow at once, 0
 * if not, or a code of the store.
 */
int twi_window_load(struct tw_durable *set);

/* Reserves serials if few are left. Returns 0 or a code of the store. */
int twi_window_reserve(struct tw_durable *set);

/*
 * Returns the nanoseconds until the next load is due. Returns INT64_MAX if the load waits for free
 * memory, or until the wall clock is accepted.
 */
int64_t twi_window_wait_ns(struct tw_durable *set);

#endif
