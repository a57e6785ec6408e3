/* SPDX-License-Identifier: MIT */
/*
 * Counts the timeouts that have fired. The thread that runs the callbacks counts. While this thread
 * runs, other threads may read only the count. When it has ended, they may read all fields.
 */
#ifndef PERF_HARNESS_EXPIRY_H
#define PERF_HARNESS_EXPIRY_H

#include "harness/histogram.h"
#include "harness/sample.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

struct expiry {
	alignas(64) _Atomic uint64_t count;
	uint64_t id_sum;
	struct histogram lateness_ns;
};

static inline void expiry_add(struct expiry *expiry, uint64_t id)
{
	/* There is only one writer, so no atomic read-modify-write is needed. */
	uint64_t count = atomic_load_explicit(&expiry->count, memory_order_relaxed);

	expiry->id_sum += id;
	atomic_store_explicit(&expiry->count, count + 1, memory_order_relaxed);
}

static inline uint64_t expiry_count(const struct expiry *expiry)
{
	return atomic_load_explicit(&expiry->count, memory_order_relaxed);
}

/*
 * Waits until so many timeouts have fired, but at most `timeout_ns`, so that a lost timeout does
 * not hang the program.
 */
void expiry_wait(const struct expiry *expiry, uint64_t count, int64_t timeout_ns);

/* Fills in which timeouts fired, and how late. */
void expiry_fill(const struct expiry *expiry, struct sample *sample);

#endif
