/* SPDX-License-Identifier: MIT */
/*
 * A log-linear histogram of nanoseconds.
 */
#include "harness/histogram.h"

#include <math.h>
#include <stddef.h>

enum { STEP_BITS = 6 };

static size_t bucket_of(uint64_t value)
{
	unsigned exponent;

	if (value < HISTOGRAM_STEPS)
		return (size_t)value;
	exponent = 63u - (unsigned)__builtin_clzll(value);
	return (size_t)(exponent - STEP_BITS + 1) * HISTOGRAM_STEPS +
	       (size_t)((value >> (exponent - STEP_BITS)) & (HISTOGRAM_STEPS - 1));
}

static uint64_t bucket_upper_edge(size_t bucket)
{
	size_t power = bucket / HISTOGRAM_STEPS;
	uint64_t step = bucket % HISTOGRAM_STEPS;

	if (power == 0)
		return step;
	return ((HISTOGRAM_STEPS + step + 1) << (power - 1)) - 1;
}

void histogram_add_many(struct histogram *histogram, int64_t value, uint64_t count)
{
	if (count == 0)
		return;
	histogram->count += count;
	if (value < 0) {
		histogram->early_count += count;
		value = 0;
	}
	histogram->buckets[bucket_of((uint64_t)value)] += count;
	if (value > histogram->max)
		histogram->max = value;
}

void histogram_add(struct histogram *histogram, int64_t value)
{
	histogram_add_many(histogram, value, 1);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->count += from->count;
	into->early_count += from->early_count;
	if (from->max > into->max)
		into->max = from->max;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

double histogram_percentile(const struct histogram *histogram, double fraction)
{
	uint64_t wanted = (uint64_t)ceil(fraction * (double)histogram->count);
	uint64_t seen = 0;
	size_t bucket = 0;

	if (histogram->count == 0)
		return NAN;
	while (bucket < HISTOGRAM_BUCKETS - 1 && seen + histogram->buckets[bucket] < wanted)
		seen += histogram->buckets[bucket++];
	return fmin((double)bucket_upper_edge(bucket), (double)histogram->max);
}
