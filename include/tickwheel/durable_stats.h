/* SPDX-License-Identifier: MIT */
/**
 * @file durable_stats.h
 * Counters and times of a set of durable timers (durable.h), also as text for people, programs and
 * monitoring. docs/operating-durable.md says what to watch.
 */
#ifndef TICKWHEEL_DURABLE_STATS_H
#define TICKWHEEL_DURABLE_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/dump.h>
#include <tickwheel/export.h>
#include <tickwheel/histogram.h>

TW_BEGIN_DECLS

struct tw_durable;

/** Counters of a set since it was opened. */
struct tw_durable_stats {
	/** Schedules that were accepted. */
	uint64_t scheduled;
	/** Timers that ended before the store saw them. */
	uint64_t absorbed;
	/** Timers that were stored. */
	uint64_t stored;
	/** Acknowledgements that said TW_DURABLE_UNKNOWN. */
	uint64_t unknown;
	/** Transactions of the store. */
	uint64_t commits;
	/** Operations in them. */
	uint64_t operations;
	/** Runs that began. */
	uint64_t runs;
	/** Timers that became dead letters. */
	uint64_t dead;
	/** Dead letters that were removed by `dead_max` or `dead_keep_ns`. */
	uint64_t dead_removed;
	/** Timers in memory now. */
	uint64_t in_memory;
	/** Their bytes. */
	uint64_t memory_bytes;
	/** Timers that were too late for their kind's run (`overdue_max_ns`). */
	uint64_t overdue;
	/** Runs that began later than `late_ns` after their deadlines, the overdue ones included. */
	uint64_t late;
	/** How late the run that began last was, in nanoseconds: how far the set is behind. While it
	 * catches up, it is the age of the timers whose turn has come. */
	uint64_t lag_ns;
	/** The greatest of them since the open. */
	uint64_t lag_max_ns;
	/** Bytes of those that wait for their commit now, those that linger included. */
	uint64_t staged_bytes;
	/** Bytes of a log that the store has to keep, as it said within the last second; 0: there is
	 * no log. */
	uint64_t log_bytes;
	/** Kinds that the store has and the set was not opened with. Their timers do not run. */
	uint64_t unknown_kinds;
	/** Kinds that are paused. */
	uint64_t paused_kinds;
	/** Shared stores: timers that this set has claimed, besides those that it has scheduled. */
	uint64_t claimed;
	/** Shared stores: starts that the server refused: cancelled, moved or claimed elsewhere, or not
	 * due yet by its clock. */
	uint64_t refused_starts;
	/** Shared stores: ends of runs that changed nothing, because another set had the timer by then,
	 * or the run had ended its timer inside a transaction of its own. */
	uint64_t stale_ends;
	/** Shared stores: sessions since the open. More than 1: the process was cut off, or stood still. */
	uint64_t sessions;
	/** Steps of the wall clock. */
	uint64_t clock_steps;
	/** An enum tw_durable_state. */
	uint64_t state;
};

/** The times that a set has histograms of. */
enum tw_durable_measurement {
	/** One transaction of the store, tries while it was busy included. */
	TW_DURABLE_MEASUREMENT_COMMIT = 0,
	/** From a schedule to the acknowledgement that the timer is stored. On the wall clock, or
	 * the elapsed one if the kind counts that: a step in between counts. */
	TW_DURABLE_MEASUREMENT_ACK = 1,
	/** From the deadline to the beginning of the run, on the clock of the kind. */
	TW_DURABLE_MEASUREMENT_LATENESS = 2,
};

/** The values of one set that are to be written. */
struct tw_durable_reading {
	/** A label that distinguishes it from the others; NULL: "". */
	const char *set;
	/** Its counters, as filled in by tw_durable_stats_get. */
	const struct tw_durable_stats *stats;
	/** sizeof(struct tw_durable_stats). */
	size_t stats_bytes;
	/** NULL: left out; so are those below. */
	const struct tw_histogram *commit;
	const struct tw_histogram *ack;
	const struct tw_histogram *lateness;
};

/**
 * Reads the counters of a set.
 *
 * Units: those of struct tw_durable_stats; `size`, its size in the caller's version.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 and `*ret_stats`; -EINVAL; -E2BIG; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_stats_get(struct tw_durable *durable,
				       struct tw_durable_stats *ret_stats, size_t size);

/**
 * Reads a set's measurements since it was opened, as tw_histogram_get does for an engine.
 *
 * Units: nanoseconds. `measurement`: an enum tw_durable_measurement.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (copies some thousand counters).
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, no such measurement, another `size` of the histogram); -ECHILD. On
 *   failure `*ret` is unchanged.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_histogram_get(struct tw_durable *durable, uint32_t measurement,
					   struct tw_histogram *ret);

/**
 * Writes counters and histograms of sets, as tw_stats_print does for engines. Pass all sets of a
 * process in one call. In Prometheus' format the label is `set`, the metrics begin with
 * tickwheel_durable_, and the state is one sample of 0 or 1 for each state.
 *
 * Units: `format`: an enum tw_print_format, TW_PRINT_PERCENTILES excepted.
 * Threads: any.
 * In callback: yes.
 * Progress: that of the hook, which is called with at most 512 bytes at a time.
 * Lifetime: all arguments are used during the call only.
 * Returns: 0; -EINVAL (NULL, a `format` that does not exist or is not for counters, another
 *   `stats_bytes`, or another `size` of a histogram). On failure nothing is written.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_stats_print(const struct tw_durable_reading *readings, size_t count,
					 uint32_t format, tw_dump_hook *hook, void *context);

TW_END_DECLS

#endif
