/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of nanoseconds. It has 64 steps per power of two, so a percentile is exact
 * to 1.6 %. The maximum is exact.
 */
#ifndef PERF_HARNESS_HISTOGRAM_H
#define PERF_HARNESS_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_BUCKETS = HISTOGRAM_STEPS * 59 };

struct histogram {
	uint64_t count;
	/* How many values were below 0. */
	uint64_t early_count;
	int64_t max;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* Adds a value, or `count` equal values. A negative value counts as early, and as 0 in the
 * percentiles. */
void histogram_add(struct histogram *histogram, int64_t value);
void histogram_add_many(struct histogram *histogram, int64_t value, uint64_t count);

void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * Returns the upper edge of a bucket: the lowest bucket up to which there are at least `fraction`
 * (0 to 1) of all values. Returns NAN if the histogram is empty.
 */
double histogram_percentile(const struct histogram *histogram, double fraction);

#endif
