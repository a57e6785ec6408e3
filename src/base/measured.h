/* SPDX-License-Identifier: MIT */
/*
 * A histogram that threads fill while others read it.
 *
 * Order. The accesses need none, because counters publish nothing. A reader may see a value in its
 * bucket and not yet in sum_ns. stats/reading.c computes the count from the buckets, and moves the
 * least and the greatest value into the first and the last bucket that is not empty.
 */
#ifndef TWI_BASE_MEASURED_H
#define TWI_BASE_MEASURED_H

#include "base/atomic.h"
#include "base/buckets.h"

#include <tickwheel/histogram.h>

struct twi_measured {
	TWI_CACHE_ALIGNED _Atomic uint64_t sum_ns;
	_Atomic uint64_t greatest_ns;
	/*
	 * The complement of the least value, or 0 if there is none. So zeroed memory is an empty
	 * histogram.
	 */
	_Atomic uint64_t least_ns;
	_Atomic uint64_t bucket[TWI_BUCKETS];
};

/* Raises a maximum. RELAXED, load and swap: the number only grows, and publishes nothing. */
static inline void twi_most_raise(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t seen = twi_load_relaxed(most);

	while (seen < value && !twi_cas_relaxed(most, &seen, value))
		;
}

/* Counts a value. Several threads may do so at once. RELAXED, all: the counters publish nothing. */
static inline void twi_measured_count(struct twi_measured *measured, uint64_t value_ns)
{
	(void)twi_fetch_add_relaxed(&measured->bucket[twi_bucket_of(value_ns)], 1);
	(void)twi_fetch_add_relaxed(&measured->sum_ns, value_ns);
	twi_most_raise(&measured->greatest_ns, value_ns);
	twi_most_raise(&measured->least_ns, ~value_ns);
}

/* Adds all values counted so far to *sum. RELAXED, all: the counters publish nothing. */
static inline void twi_measured_sum(const struct twi_measured *measured, struct tw_histogram *sum)
{
	uint64_t least_ns = ~twi_load_relaxed(&measured->least_ns);
	uint64_t greatest_ns = twi_load_relaxed(&measured->greatest_ns);

	sum->sum_ns += twi_load_relaxed(&measured->sum_ns);
	sum->min_ns = least_ns < sum->min_ns ? least_ns : sum->min_ns;
	sum->max_ns = greatest_ns > sum->max_ns ? greatest_ns : sum->max_ns;
	for (uint32_t i = 0; i < TWI_BUCKETS; i++)
		sum->bucket[i] += twi_load_relaxed(&measured->bucket[i]);
}

#endif
