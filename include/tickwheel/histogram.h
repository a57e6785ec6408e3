/* SPDX-License-Identifier: MIT */
/**
 * @file histogram.h
 * Histograms of how late callbacks begin, and of how long they take.
 */
#ifndef TICKWHEEL_HISTOGRAM_H
#define TICKWHEEL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;
struct tw_group;

/** The times of which an engine with the option `measure` has histograms. */
enum tw_measurement {
	/** From the deadline to the beginning of the run. */
	TW_MEASUREMENT_LATENESS = 0,
	/** From the beginning of the run to its end, including its finaliser. */
	TW_MEASUREMENT_DURATION = 1,
};

/** The number of buckets of a histogram. */
#define TW_HISTOGRAM_BUCKETS 4609

/**
 * Values in nanoseconds, and how often each occurred. A histogram is the caller's own memory,
 * because a reading is a copy. `struct tw_histogram histogram = {.size = sizeof(histogram)}` makes
 * an empty one.
 *
 * Each value below 256 has its own bucket. Above that, each power of two is divided into 128
 * buckets of equal width, so that a bucket is narrower than 1 % of its values. All values of 2^42
 * ns (73 minutes) or more share the last bucket. `count`, `sum_ns`, `min_ns` and `max_ns` are
 * exact. The size is 36 KiB, so you should not put it on the stack of a small thread.
 */
struct tw_histogram {
	/** Set by the caller to sizeof(struct tw_histogram). */
	size_t size;
	/** How many values the histogram has. */
	uint64_t count;
	/** The sum of the values; divided by `count` it is the mean. */
	uint64_t sum_ns;
	/** The least value; 0 if there is none. After tw_histogram_subtract it is exact only to a
	 * bucket. */
	uint64_t min_ns;
	/** The greatest value; 0 if there is none. After tw_histogram_subtract it is exact only to
	 * a bucket. */
	uint64_t max_ns;
	/** How many values are in each bucket. */
	uint64_t bucket[TW_HISTOGRAM_BUCKETS];
};

/**
 * Reads an engine's measurements since its creation.
 *
 * A reading resets nothing, so that readers do not disturb each other. To get the values between
 * two readings, subtract the earlier one (tw_histogram_subtract). If a callback begins or ends
 * during the reading, some of the numbers may include its run and others not yet. `count` is always
 * the sum of the buckets.
 *
 * Units: nanoseconds of the engine's clock. If a run begins before its deadline, because a loop
 *   gave a time of the future to tw_engine_poll_at, its lateness counts as 0.
 * Threads: any.
 * In callback: yes; the current run is included in the lateness, but not yet in the durations.
 * Progress: wait-free (copies some thousand counters).
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, no such measurement, another `size`, an engine without the option
 *   `measure`); -ECHILD. On failure `*ret` is unchanged.
 * Since: 0.1.0.
 */
TW_API int tw_histogram_get(struct tw_engine *engine, uint32_t measurement,
			    struct tw_histogram *ret);

/**
 * Reads the merged measurements of all engines of a group, as tw_histogram_get does for one.
 *
 * Units: as tw_histogram_get.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free: as tw_histogram_get, for each engine.
 * Lifetime: none.
 * Returns: as tw_histogram_get; if the reading of an engine fails, its code. On failure `*ret` is
 *   unchanged.
 * Since: 0.1.0.
 */
TW_API int tw_group_histogram_get(struct tw_group *group, uint32_t measurement,
				  struct tw_histogram *ret);

/**
 * Adds one value that the caller has measured to a histogram.
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
 * Returns the value that the given percentage of all values does not exceed.
 *
 * The result is the upper end of a bucket. Therefore it is never too small, at most 1 % too great,
 * and never above `max_ns`.
 *
 * Units: `percent`, 0 to 100: 99.9 for the 99.9th percentile; 0 is the least value, 100 the
 *   greatest. The result: nanoseconds, at most INT64_MAX.
 * Threads: any, while no thread changes the histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the value, 0 if the histogram is empty; -EINVAL (NULL, another `size`); -ERANGE (no such
 *   percentile).
 * Since: 0.1.0.
 */
TW_API int64_t tw_histogram_percentile(const struct tw_histogram *histogram, double percent);

/**
 * Adds all values of the histogram `more` to `histogram`.
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
 * Subtracts an earlier reading from a later one, so that only the values between the two are left.
 * Use this instead of a reset, which would race with the threads that count.
 *
 * Afterwards the least and the greatest value are known only to a bucket: `min_ns` and `max_ns`
 * come from the first and the last bucket that is not empty, within 1 %.
 *
 * Units: none.
 * Threads: one at a time per histogram.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, another `size`); -ERANGE (`earlier` has values that `histogram` does
 *   not have; nothing is changed).
 * Since: 0.1.0.
 */
TW_API int tw_histogram_subtract(struct tw_histogram *histogram,
				 const struct tw_histogram *earlier);

TW_END_DECLS

#endif
