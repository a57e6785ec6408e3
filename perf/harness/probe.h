/* SPDX-License-Identifier: MIT */
/*
 * Probes: single figures of the machine, against which the workloads are read.
 */
#ifndef PERF_HARNESS_PROBE_H
#define PERF_HARNESS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct probe {
	const char *name;
	const char *summary;
	/* One pass: ns per operation, NAN when something went wrong. */
	double (*run)(const struct probe *probe);
	/* The argument of the pass function. */
	const void *parameter;
	unsigned producers;
};

/* The greatest number of passes, which is also the default. */
enum { PROBE_REPEAT = 7, PROBE_OPS = 1000000, PROBE_SLEEPS = 300 };

/* Tables that end with a NULL name. */
extern const struct probe floor_part_probes[];  /* what operations are made of */
extern const struct probe floor_clock_probes[]; /* the library's clocks */
extern const struct probe floor_sleep_probes[]; /* beneath lateness */

/* The cost of a clock read for an engine with this clock of the options. */
const struct probe *floor_clock_probe(unsigned clock_type);
extern const struct probe queue_probes[];

/* Passes that live in files of their own, for the headers that they need. */
double probe_rcu_inlined(const struct probe *probe);
double probe_rcu_by_call(const struct probe *probe);
double probe_push(const struct probe *probe);
double probe_queue(const struct probe *probe);
double probe_tw_clock(const struct probe *probe);
double probe_oversleep(const struct probe *probe);
double probe_miss(const struct probe *probe);
double probe_line(const struct probe *probe);
double probe_loop_bare(const struct probe *probe);

/* One read after the other, evenly at random in so many bytes, a power of two; NAN: no memory. */
double probe_walk_ns(uint64_t bytes, bool huge_pages);

#endif
