/* SPDX-License-Identifier: MIT */
/*
 * The processor's time stamp counter.
 */
#ifndef TWI_MECH_TSC_H
#define TWI_MECH_TSC_H

#include <stdint.h>

/* The counter; after all earlier loads, and before nothing that comes later in the program. */
uint64_t twi_tsc_read(void);

/*
 * Nanoseconds of CLOCK_MONOTONIC per 2^32 counts, measured for a millisecond; 0: there is no counter
 * that runs evenly, or the kernel does not trust it.
 */
uint64_t twi_tsc_rate(void);

#endif
