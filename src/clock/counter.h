/* SPDX-License-Identifier: MIT */
/*
 * The processor's time stamp counter.
 */
#ifndef TWI_CLOCK_COUNTER_H
#define TWI_CLOCK_COUNTER_H

#include <stdint.h>

/* Reads the counter after all earlier loads. Later instructions may execute before the reading. */
uint64_t twi_tsc_read(void);

/*
 * Reads the counter without a fence, so the processor may read it before earlier loads are
 * complete. While it waits for a load, it executes some hundred later instructions. No load takes
 * longer than TWI_TSC_EARLY_NS, so the reading is early by no more than that.
 */
static inline uint64_t twi_tsc_read_early(void)
{
#if defined(TWI_TSC_READ_EARLY)
	/* A test may define this macro, to replace the reading. */
	return TWI_TSC_READ_EARLY();
#elif defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

#define TWI_TSC_EARLY_NS INT64_C(1000)

/*
 * Returns the nanoseconds of CLOCK_MONOTONIC per 2^32 counts, measured for a millisecond. Returns 0
 * if the processor has no counter that runs evenly, or if the kernel does not trust it.
 */
uint64_t twi_tsc_rate(void);

#endif
