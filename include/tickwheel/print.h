/* SPDX-License-Identifier: MIT */
/**
 * @file print.h
 * Counters and histograms as text, for people, programs and monitoring.
 */
#ifndef TICKWHEEL_PRINT_H
#define TICKWHEEL_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/dump.h>
#include <tickwheel/export.h>
#include <tickwheel/histogram.h>
#include <tickwheel/stats.h>

TW_BEGIN_DECLS

/** How it is written. Numbers have a decimal point in every locale. */
enum tw_print_format {
	/** For people: a line for each number. May change with any version. */
	TW_PRINT_TEXT = 0,
	/** One JSON object, on one line. Times are in nanoseconds. */
	TW_PRINT_JSON = 1,
	/** The text format of Prometheus, version 0.0.4. Times are in seconds. */
	TW_PRINT_PROMETHEUS = 2,
	/** HdrHistogram's percentile distribution, in nanoseconds; of one histogram only. */
	TW_PRINT_PERCENTILES = 3,
};

/** What is to be written of one engine, or of one group. */
struct tw_reading {
	/** Tells it from the others; NULL: "". UTF-8; whatever is in it is quoted. */
	const char *engine;
	/** Its counters, as tw_stats_get has filled them in. */
	const struct tw_stats *stats;
	/** NULL: left out. */
	const struct tw_histogram *lateness;
	/** NULL: left out. */
	const struct tw_histogram *duration;
};

/**
 * Writes counters and histograms of engines.
 *
 * All engines of a process go into one call, since a metric of Prometheus may be there once, with a
 * label for each engine. Nothing is allocated, and no lock is taken.
 *
 * Units: `format`: an enum tw_print_format, TW_PRINT_PERCENTILES excepted.
 * Threads: any.
 * In callback: yes.
 * Progress: that of the hook, which gets a piece of at most 512 bytes at a time.
 * Lifetime: all is used during the call only.
 * Returns: 0; -EINVAL (NULL, a `format` that is none or not for counters, a `size` of counters that is
 *   too small, of a histogram that is another one). On failure nothing is written.
 * Since: 0.1.0.
 */
TW_API int tw_stats_print(const struct tw_reading *readings, size_t count, uint32_t format,
			  tw_dump_hook *hook, void *context);

/**
 * Writes one histogram, of the library's or of the caller's own values.
 *
 * Units: `format`: an enum tw_print_format. `name`: what it is of; for Prometheus the name of the metric
 *   in front of "_seconds": letters, digits, "_" and ":".
 * Threads: any, while nobody changes the histogram.
 * In callback: yes.
 * Progress: as tw_stats_print.
 * Lifetime: all is used during the call only.
 * Returns: 0; -EINVAL (NULL, another `size`, no such format, for Prometheus a `name` that is none). On
 *   failure nothing is written.
 * Since: 0.1.0.
 */
TW_API int tw_histogram_print(const struct tw_histogram *histogram, const char *name,
			      uint32_t format, tw_dump_hook *hook, void *context);

TW_END_DECLS

#endif
