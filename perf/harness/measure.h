/* SPDX-License-Identifier: MIT */
/*
 * The figures that the harness reads from the system: clocks, CPU time, memory, context switches.
 */
#ifndef PERF_HARNESS_MEASURE_H
#define PERF_HARNESS_MEASURE_H

#include <stdint.h>

/* CLOCK_MONOTONIC. */
int64_t measure_now_ns(void);

/* User and system time of all threads of the process. */
int64_t measure_cpu_ns(void);

uint64_t measure_rss_bytes(void);

/* The process's own peak: a forked child begins anew. */
uint64_t measure_rss_peak_bytes(void);

/* Voluntary context switches of all threads but the calling one: each sleep ends in a wake-up. */
uint64_t measure_other_threads_sleeps(void);

/* CPUs this process may run on, at least 1. */
unsigned measure_cpu_count(void);

void measure_sleep_ns(int64_t duration_ns);

/* Sleeps until CLOCK_MONOTONIC reaches `until_ns`. */
void measure_sleep_until_ns(int64_t until_ns);

#endif
