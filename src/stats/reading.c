/* SPDX-License-Identifier: MIT */
/*
 * Makes a histogram consistent after other threads have changed its counts during the reading.
 */
#include "stats/histogram.h"

#include "base/buckets.h"

#include <string.h>

void twi_histogram_begin(struct tw_histogram *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->size = sizeof *ret;
	ret->min_ns = UINT64_MAX;
}

static uint64_t within(uint64_t value, uint32_t bucket)
{
	if (value < twi_bucket_least(bucket))
		return twi_bucket_least(bucket);
	return value < twi_bucket_greatest(bucket) ? value : twi_bucket_greatest(bucket);
}

void twi_histogram_flush(struct tw_histogram *histogram)
{
	uint32_t first = TWI_BUCKETS;
	uint32_t last = 0;

	histogram->count = 0;
	for (uint32_t i = 0; i < TWI_BUCKETS; i++) {
		if (histogram->bucket[i] == 0)
			continue;
		histogram->count += histogram->bucket[i];
		first = first < i ? first : i;
		last = i;
	}
	histogram->min_ns = histogram->count != 0 ? within(histogram->min_ns, first) : 0;
	histogram->max_ns = histogram->count != 0 ? within(histogram->max_ns, last) : 0;
}
