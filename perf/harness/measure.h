/* SPDX-License-Identifier: MIT */
/*
 * The figures that the harness reads from the system: clocks, CPU time, memory, context switches.
 */
#ifndef PERF_HARNESS_MEASURE_H
#define PERF_HARNESS_MEASURE_H

#include <stdint.h>

/* Returns the time of CLOCK_MONOTONIC. */
int64_t measure_now_ns(void);

/* Returns the user and system time of all threads of the process. */
int64_t measure_cpu_ns(void);

uint64_t measure_rss_bytes(void);

/*
 * Returns the peak of resident memory of this process. A forked child does not inherit its parent's
 * peak.
 */
uint64_t measure_rss_peak_bytes(void);

/*
 * Returns how often all threads but the calling one have slept: their voluntary context switches.
 */
uint64_t measure_other_threads_sleeps(void);

/* Returns how many CPUs this process may run on, at least 1. */
unsigned measure_cpu_count(void);

void measure_sleep_ns(int64_t duration_ns);

/* Sleeps until CLOCK_MONOTONIC reaches `until_ns`. */
void measure_sleep_until_ns(int64_t until_ns);

#endif
