/* SPDX-License-Identifier: MIT */
/*
 * Measures how late runs begin, and how long they take. The histograms exist only with the option
 * `measure`. An engine without it pays nothing.
 *
 * Writers. The worker has one histogram for each measurement. It is the only writer, so plain
 * additions are enough. The threads of an executor add atomically to stripes. Each stripe serves
 * the threads of some lanes, so that no cache line is written by all threads. Stripes exist only if
 * there is a dispatch hook. Readers sum up the histograms, and delay no writer.
 *
 * Progress: wait-free, except that raising the greatest or lowering the least value of a stripe is
 * only lock-free.
 */
#ifndef TWI_EXPIRY_MEASURE_H
#define TWI_EXPIRY_MEASURE_H

#include "base/measured.h"
#include "worker/role.h"

enum {
	TWI_MEASUREMENTS = TW_MEASUREMENT_DURATION + 1,
	/*
	 * The number of stripes. With this many, threads seldom share one. Each stripe takes 72
	 * KiB.
	 */
	TWI_MEASURE_STRIPES = 8,
	/* With TW_MEASURE_SAMPLES, one run in 2^5 is measured. */
	TWI_MEASURE_SAMPLE_BITS = 5,
};

struct twi_measured_pair {
	struct twi_measured of[TWI_MEASUREMENTS];
};

struct twi_measure {
	TWI_CACHE_ALIGNED uint32_t stripe_count; /* [const] 0 if the worker runs all callbacks */
	bool sampled;                            /* [const] only some runs are measured */
	struct twi_measured_pair worker;         /* [worker] */
	struct twi_measured_pair stripe[];       /* [atomic] */
};

/* Makes the histograms that the options ask for. Returns NULL if there is no memory. */
struct twi_measure *twi_measure_create(const struct tw_allocator *allocator,
				       const struct tw_options *options);
/* Frees the histograms. NULL is accepted. */
void twi_measure_free(const struct tw_allocator *allocator, struct twi_measure *measure);
/* Sets all counts to zero, in a forked child. NULL is accepted. */
void twi_measure_renew(struct twi_measure *measure);

/* Returns whether this run must be measured. Must be called once for each run. */
bool twi_measure_chosen(const struct twi_run *run);
/* Counts a run that begins at `now_ns`, and marks it. twi_measure_end must count its end. */
void twi_measure_begin(struct twi_run *run, int64_t now_ns);
/* Counts the end of a marked run. */
void twi_measure_end(const struct twi_run *run, int64_t now_ns);

/*
 * Adds the counts so far to *sum. The caller must then make *sum consistent (twi_histogram_flush).
 */
void twi_measure_add(const struct twi_measure *measure, uint32_t measurement,
		     struct tw_histogram *sum);

#endif
