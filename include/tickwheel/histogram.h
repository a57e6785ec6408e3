/* SPDX-License-Identifier: MIT */
/**
 * @file histogram.h
 * How late callbacks begin, and how long they take.
 */
#ifndef TICKWHEEL_HISTOGRAM_H
#define TICKWHEEL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;
struct tw_group;

/** What an engine with the option `measure` has a histogram of. */
enum tw_measurement {
	/** From the deadline to the begin of the run. */
	TW_MEASUREMENT_LATENESS = 0,
	/** From the begin of the run to its end, its finaliser included. */
	TW_MEASUREMENT_DURATION = 1,
};

/** Buckets of a histogram. */
#define TW_HISTOGRAM_BUCKETS 4609

/**
 * Nanoseconds, and how often they were seen. The caller's own: a reading is a copy, and
 * `struct tw_histogram histogram = {.size = sizeof(histogram)}` is an empty one.
 *
 * Values below 256 have a bucket each. Beyond, each power of two is cut into 128 buckets of equal
 * width, so a bucket is narrower than 1 % of its values; what takes 2^42 ns (73 minutes) or more
 * shares the last one. `count`, `sum_ns`, `min_ns` and `max_ns` are exact. It has 36 KiB: mind the stack of
 * a small thread.
 */
struct tw_histogram {
	/** Set by the caller to sizeof(struct tw_histogram). */
	size_t size;
	/** Values seen. */
	uint64_t count;
	/** Their sum; divided by `count`, the mean. */
	uint64_t sum_ns;
	/** The least, 0 when there is none; after tw_histogram_subtract within a bucket. */
	uint64_t min_ns;
	/** The greatest, likewise. */
	uint64_t max_ns;
	/** How many are in each bucket. */
	uint64_t bucket[TW_HISTOGRAM_BUCKETS];
};

/**
 * Reads what an engine has measured since its creation.
 *
 * Nothing is reset, so that no reader takes anything from another: subtract an earlier reading
 * (tw_histogram_subtract) for what came in between. While callbacks run, a reading may have one that
 * began or ended meanwhile in some of its numbers and not yet in others; `count` is always the sum of
 * the buckets.
 *
 * Units: nanoseconds of the engine's clock. A time before the deadline, as a loop may give to
 *   tw_poll_at, counts as 0.
 * Threads: any.
 * In callback: yes; the run itself is in the lateness already, and not yet in the durations.
 * Progress: wait-free (copies some thousand counters).
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, no measurement, another `size`, an engine without the option `measure`);
 *   -ECHILD. On failure `*ret` is untouched.
 * Since: 0.1.0.
 */
TW_API int tw_histogram_get(struct tw_engine *engine, uint32_t measurement,
			    struct tw_histogram *ret);

/**
 * The same of all engines of a group, merged.
 *
 * Units: as tw_histogram_get.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free: as tw_histogram_get, for each engine.
 * Lifetime: none.
 * Returns: as tw_histogram_get, of the first engine that has an error. On failure `*ret` is untouched.
 * Since: 0.1.0.
 */
TW_API int tw_group_histogram_get(struct tw_group *group, uint32_t measurement,
				  struct tw_histogram *ret);

/**
 * Counts one value, of whatever the caller measures himself.
 *
 * Units: `value_ns`, nanoseconds.
 * Threads: one at a time per histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, another `size`).
 * Since: 0.1.0.
 */
TW_API int tw_histogram_record(struct tw_histogram *histogram, uint64_t value_ns);

/**
 * The value that so many percent of all are not above.
 *
 * It is the greatest value of its bucket, so never too small, and at most 1 % too great; never beyond
 * `max_ns`.
 *
 * Units: `percent`, 0 to 100: 99.9 for the 99.9th percentile; 0 is the least value, 100 the greatest.
 *   The result: nanoseconds, at most INT64_MAX.
 * Threads: any, while nobody changes the histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the value, 0 of an empty histogram; -EINVAL (NULL, another `size`); -ERANGE (no such
 *   percentile).
 * Since: 0.1.0.
 */
TW_API int64_t tw_histogram_percentile(const struct tw_histogram *histogram, double percent);

/**
 * Adds all values of another histogram.
 *
 * Units: none.
 * Threads: one at a time per histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, another `size`).
 * Since: 0.1.0.
 */
TW_API int tw_histogram_merge(struct tw_histogram *histogram, const struct tw_histogram *more);

/**
 * Takes the values of an earlier reading out of a later one: what is left came in between. It is how a
 * histogram is reset, without a race with those who count.
 *
 * The least and the greatest value are not known then: `min_ns` and `max_ns` are of the first and the
 * last bucket that is left, within 1 %.
 *
 * Units: none.
 * Threads: one at a time per histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, another `size`); -ERANGE (`earlier` has what this one has not; nothing is
 *   changed).
 * Since: 0.1.0.
 */
TW_API int tw_histogram_subtract(struct tw_histogram *histogram,
				 const struct tw_histogram *earlier);

TW_END_DECLS

#endif
