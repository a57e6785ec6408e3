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
 * The same without a fence. A processor that waits for an earlier load runs ahead of it by what it can
 * hold, some hundred instructions; no load takes longer than TWI_TSC_EARLY_NS.
 */
static inline uint64_t twi_tsc_read_early(void)
{
#if defined(TWI_TSC_READ_EARLY)
	/* A test's. */
	return TWI_TSC_READ_EARLY();
#elif defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

#define TWI_TSC_EARLY_NS INT64_C(1000)

/*
 * Nanoseconds of CLOCK_MONOTONIC per 2^32 counts, measured for a millisecond; 0: there is no counter
 * that runs evenly, or the kernel does not trust it.
 */
uint64_t twi_tsc_rate(void);

#endif
