/* SPDX-License-Identifier: MIT */
/*
 * Histograms that belong to their caller. No engine and no other thread uses them.
 */
#include "stats/histogram.h"

#include "base/buckets.h"

#include <errno.h>
#include <string.h>

_Static_assert(TW_HISTOGRAM_BUCKETS == TWI_BUCKETS, "the header says how many");

int tw_histogram_record(struct tw_histogram *histogram, uint64_t value_ns)
{
	if (!twi_histogram_right(histogram))
		return -EINVAL;
	if (histogram->count == 0 || value_ns < histogram->min_ns)
		histogram->min_ns = value_ns;
	if (value_ns > histogram->max_ns)
		histogram->max_ns = value_ns;
	histogram->count++;
	histogram->sum_ns += value_ns;
	histogram->bucket[twi_bucket_of(value_ns)]++;
	return 0;
}

/* Returns the rank of the wanted value in the order of size, from 1 on. */
static uint64_t rank_of(const struct tw_histogram *histogram, double percent)
{
	/*
	 * The factor lowers the rank by less than the distance between two ranks. Without it, a
	 * rounding error could lift an exact rank to the next one.
	 */
	double rank = percent * (double)histogram->count / 100 * (1 - 0x1p-51);
	uint64_t whole = (uint64_t)rank;

	whole += (double)whole < rank;
	return whole < histogram->count ? whole : histogram->count;
}

static int64_t value_at(const struct tw_histogram *histogram, uint64_t rank)
{
	uint64_t value_ns = histogram->max_ns;
	uint64_t count = 0;
	uint32_t i = 0;

	while (i < TWI_BUCKETS && (count += histogram->bucket[i]) < rank)
		i++;
	if (i < TWI_BUCKETS && twi_bucket_greatest(i) < value_ns)
		value_ns = twi_bucket_greatest(i);
	return value_ns < INT64_MAX ? (int64_t)value_ns : INT64_MAX;
}

int64_t tw_histogram_percentile(const struct tw_histogram *histogram, double percent)
{
	uint64_t rank;

	if (!twi_histogram_right(histogram))
		return -EINVAL;
	/* The condition is negated, so that NaN fails as well. */
	if (!(percent >= 0 && percent <= 100))
		return -ERANGE;
	rank = rank_of(histogram, percent);
	if (rank > 0)
		return value_at(histogram, rank);
	return histogram->min_ns < INT64_MAX ? (int64_t)histogram->min_ns : INT64_MAX;
}

int tw_histogram_merge(struct tw_histogram *histogram, const struct tw_histogram *more)
{
	if (!twi_histogram_right(histogram) || !twi_histogram_right(more))
		return -EINVAL;
	if (histogram->count == 0 || (more->count != 0 && more->min_ns < histogram->min_ns))
		histogram->min_ns = more->min_ns;
	if (more->max_ns > histogram->max_ns)
		histogram->max_ns = more->max_ns;
	histogram->count += more->count;
	histogram->sum_ns += more->sum_ns;
	for (uint32_t i = 0; i < TWI_BUCKETS; i++)
		histogram->bucket[i] += more->bucket[i];
	return 0;
}

static bool has_all(const struct tw_histogram *histogram, const struct tw_histogram *earlier)
{
	for (uint32_t i = 0; i < TWI_BUCKETS; i++) {
		if (earlier->bucket[i] > histogram->bucket[i])
			return false;
	}
	return true;
}

int tw_histogram_subtract(struct tw_histogram *histogram, const struct tw_histogram *earlier)
{
	if (!twi_histogram_right(histogram) || !twi_histogram_right(earlier))
		return -EINVAL;
	if (!has_all(histogram, earlier))
		return -ERANGE;
	for (uint32_t i = 0; i < TWI_BUCKETS; i++)
		histogram->bucket[i] -= earlier->bucket[i];
	/* The sum is read at another moment than the buckets, so it may be a little behind. */
	histogram->sum_ns -=
		histogram->sum_ns > earlier->sum_ns ? earlier->sum_ns : histogram->sum_ns;
	twi_histogram_flush(histogram);
	return 0;
}
