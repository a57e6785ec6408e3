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

/** The format of the text. Numbers have a decimal point in every locale. */
enum tw_print_format {
	/** For people: one line for each number. The format may change with any version. */
	TW_PRINT_TEXT = 0,
	/** One JSON object on one line. Times are in nanoseconds. */
	TW_PRINT_JSON = 1,
	/** The text format of Prometheus, version 0.0.4. Times are in seconds. */
	TW_PRINT_PROMETHEUS = 2,
	/** HdrHistogram's percentile distribution, in nanoseconds; for one histogram only. */
	TW_PRINT_PERCENTILES = 3,
};

/** The values of one engine, or of one group, that tw_stats_print writes. */
struct tw_reading {
	/** A label that distinguishes this engine or group from the others; NULL: "". UTF-8;
	 * special characters are escaped as the format requires. */
	const char *engine;
	/** The counters, as tw_stats_get has filled them in. */
	const struct tw_stats *stats;
	/** NULL: left out. */
	const struct tw_histogram *lateness;
	/** NULL: left out. */
	const struct tw_histogram *duration;
};

/**
 * Writes counters and histograms of engines.
 *
 * Pass all engines of a process in one call, because in the format of Prometheus a metric may
 * appear only once, with a label for each engine. The call allocates nothing and takes no lock.
 *
 * Units: `format`: an enum tw_print_format, except TW_PRINT_PERCENTILES.
 * Threads: any.
 * In callback: yes.
 * Progress: that of the hook, which is called with at most 512 bytes at a time.
 * Lifetime: all arguments are used during the call only.
 * Returns: 0; -EINVAL (NULL, a `format` that does not exist or is not for counters, a `size` of
 *   counters that is too small, or another `size` of a histogram). On failure nothing is written.
 * Since: 0.1.0.
 */
TW_API int tw_stats_print(const struct tw_reading *readings, size_t count, uint32_t format,
			  tw_dump_hook *hook, void *context);

/**
 * Writes one histogram, of the library's or of the caller's own values.
 *
 * Units: `format`: an enum tw_print_format. `name`: the name of the values. With
 *   TW_PRINT_PROMETHEUS it is the part of the metric's name in front of "_seconds", and must
 *   consist of letters, digits, "_" and ":".
 * Threads: any, while no thread changes the histogram.
 * In callback: yes.
 * Progress: as tw_stats_print.
 * Lifetime: all arguments are used during the call only.
 * Returns: 0; -EINVAL (NULL, another `size`, no such format, for Prometheus a `name` that is not
 *   valid). On failure nothing is written.
 * Since: 0.1.0.
 */
TW_API int tw_histogram_print(const struct tw_histogram *histogram, const char *name,
			      uint32_t format, tw_dump_hook *hook, void *context);

TW_END_DECLS

#endif
