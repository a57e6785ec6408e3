/* SPDX-License-Identifier: MIT */
/*
 * A probe measures one figure of the machine. The figures of the workloads are compared with these.
 */
#ifndef PERF_HARNESS_PROBE_H
#define PERF_HARNESS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe {
	const char *name;
	const char *summary;
	/* Measures once. Returns ns per operation, or NAN after an error. */
	double (*run)(const struct probe *probe);
	/* An argument for `run`. */
	const void *parameter;
	unsigned producers;
};

/* PROBE_REPEAT is the greatest number of repeats of a probe, and also the default. */
enum { PROBE_REPEAT = 7, PROBE_OPS = 1000000, PROBE_SLEEPS = 300 };

/* Tables of probes. Each ends with a NULL name. */
extern const struct probe floor_part_probes[];  /* what operations are made of */
extern const struct probe floor_clock_probes[]; /* the library's clocks */
extern const struct probe
	floor_sleep_probes[]; /* oversleep of the system, the lower bound of lateness */

/* Returns the probe for the clock that an engine reads if the options name this clock. */
const struct probe *floor_clock_probe(unsigned clock_type);
extern const struct probe queue_probes[];

/*
 * These probes are in files of their own, because they need headers that the other probes must not
 * include.
 */
double probe_rcu_inlined(const struct probe *probe);
double probe_rcu_by_call(const struct probe *probe);
double probe_push(const struct probe *probe);
double probe_queue(const struct probe *probe);
double probe_tw_clock(const struct probe *probe);
double probe_oversleep(const struct probe *probe);
double probe_miss(const struct probe *probe);
double probe_line(const struct probe *probe);
double probe_loop_bare(const struct probe *probe);

/*
 * Returns the cost of one read at a random address in `bytes` bytes, which must be a power of two.
 * Each read waits for the previous one. `huge_pages`: the memory is in huge pages if the system has
 * them. Returns NAN if there is no memory.
 */
double probe_walk_ns(uint64_t bytes, bool huge_pages);

#endif
