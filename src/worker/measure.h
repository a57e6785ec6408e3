/* SPDX-License-Identifier: MIT */
/*
 * How late runs begin, and how long they take. There only with the option `measure`; an engine without it
 * pays nothing.
 *
 * Who writes what. A histogram per measurement is the worker's: one writer, plain additions. What an
 * executor's threads run goes to stripes, each for the threads of some lanes, by atomic additions; these
 * are there only where there is a dispatch hook. So there is no line that all threads write. Readers sum
 * up, and are in nobody's way.
 *
 * Order. None: counters publish nothing. A reader sees whole numbers, and perhaps the bucket of a run
 * without its sum; stats/histogram.c makes of them what holds together.
 *
 * Progress: wait-free, but for the greatest and the least value of a stripe, which are lock-free.
 */
#ifndef TWI_WORKER_MEASURE_H
#define TWI_WORKER_MEASURE_H

#include "base/buckets.h"
#include "worker/worker.h"

#include <tickwheel/histogram.h>

enum {
	TWI_MEASUREMENTS = TW_MEASUREMENT_DURATION + 1,
	/* Enough that threads seldom meet in one; 72 KiB each. */
	TWI_MEASURE_STRIPES = 8,
	/* Of TW_MEASURE_SAMPLES: one run in 2^5. */
	TWI_MEASURE_SAMPLE_BITS = 5,
};

struct twi_measured {
	TWI_CACHE_ALIGNED _Atomic uint64_t sum_ns;
	_Atomic uint64_t greatest_ns;
	/* The complement of the least value; 0: none, so that zeroed memory is an empty histogram. */
	_Atomic uint64_t least_ns;
	_Atomic uint64_t bucket[TWI_BUCKETS];
};

struct twi_measured_pair {
	struct twi_measured of[TWI_MEASUREMENTS];
};

struct twi_measure {
	TWI_CACHE_ALIGNED uint32_t stripe_count; /* [const] 0: the worker runs all */
	bool sampled;                            /* [const] some runs, not each */
	struct twi_measured_pair worker;         /* [worker] */
	struct twi_measured_pair stripe[];       /* [atomic] */
};

/* NULL when there is no memory. */
struct twi_measure *twi_measure_create(const struct tw_allocator *allocator,
				       const struct tw_options *options);
/* NULL is accepted. */
void twi_measure_free(const struct tw_allocator *allocator, struct twi_measure *measure);
/* In a forked child: nothing is counted. NULL is accepted. */
void twi_measure_renew(struct twi_measure *measure);

/* Whether this run is one that is measured; asked once for each. */
bool twi_measure_chosen(const struct twi_run *run);
/* A run begins at `now_ns`, and is marked; its end must be told by twi_measure_end. */
void twi_measure_begin(struct twi_run *run, int64_t now_ns);
/* A run that is marked has ended. */
void twi_measure_end(const struct twi_run *run, int64_t now_ns);

/* Adds what was measured so far; twi_histogram_settle makes a whole of it. */
void twi_measure_add(const struct twi_measure *measure, uint32_t measurement,
		     struct tw_histogram *sum);

#endif
