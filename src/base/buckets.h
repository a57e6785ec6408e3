/* SPDX-License-Identifier: MIT */
/*
 * Buckets of a log-linear histogram. The range from each power of two to the next is cut into 128
 * equal parts, so that the width of a bucket is under 1 % of its values. Each value below 256 has a
 * bucket of its own. All values from 2^42 on share the last bucket. In nanoseconds the range is 1
 * ns to 73 minutes.
 */
#ifndef TWI_BASE_BUCKETS_H
#define TWI_BASE_BUCKETS_H

#include <stdint.h>

enum {
	TWI_BUCKET_BITS = 7,
	TWI_BUCKET_PARTS = 1 << TWI_BUCKET_BITS,
	/* All values from 2^TWI_BUCKET_TOP on share the last bucket. */
	TWI_BUCKET_TOP = 42,
	TWI_BUCKETS = (TWI_BUCKET_TOP - TWI_BUCKET_BITS + 1) * TWI_BUCKET_PARTS + 1,
};

static inline uint32_t twi_bucket_of(uint64_t value)
{
	/* The OR gives small values a shift of 0, so that each has a bucket of its own. */
	uint32_t shift = 63 - TWI_BUCKET_BITS - (uint32_t)__builtin_clzll(value | TWI_BUCKET_PARTS);
	uint32_t bucket = shift * TWI_BUCKET_PARTS + (uint32_t)(value >> shift);

	return bucket < TWI_BUCKETS ? bucket : TWI_BUCKETS - 1;
}

/* Returns the least value of a bucket. */
static inline uint64_t twi_bucket_least(uint32_t bucket)
{
	uint32_t shift = bucket < 2 * TWI_BUCKET_PARTS ? 0 : bucket / TWI_BUCKET_PARTS - 1;

	return (uint64_t)(bucket - shift * TWI_BUCKET_PARTS) << shift;
}

/* Returns the greatest value of a bucket. */
static inline uint64_t twi_bucket_greatest(uint32_t bucket)
{
	return bucket < TWI_BUCKETS - 1 ? twi_bucket_least(bucket + 1) - 1 : UINT64_MAX;
}

#endif
