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
	/** Timers that ended before they were stored. */
	uint64_t absorbed;
	/** Timers that were stored. */
	uint64_t stored;
	/** Acknowledgements with the outcome TW_DURABLE_UNKNOWN. */
	uint64_t unknown;
	/** Transactions of the store. */
	uint64_t commits;
	/** Operations in these transactions. */
	uint64_t operations;
	/** Runs that began. */
	uint64_t runs;
	/** Timers that became dead letters. */
	uint64_t dead;
	/** Dead letters that were removed by `dead_max` or `dead_keep_ns`. */
	uint64_t dead_removed;
	/** Timers in memory now. */
	uint64_t in_memory;
	/** The bytes of the timers in memory. */
	uint64_t memory_bytes;
	/** Timers that were late by more than `overdue_max_ns` of their kind. For each, the set
	 * called the option `overdue` instead of the run, or, without this option, ended the
	 * timer. */
	uint64_t overdue;
	/** Runs that began later than `late_ns` after their deadlines, including those of overdue
	 * timers. */
	uint64_t late;
	/** The lateness of the run that began last, in nanoseconds. This number shows how far the
	 * set is behind. */
	uint64_t lag_ns;
	/** The greatest `lag_ns` since the open. */
	uint64_t lag_max_ns;
	/** Bytes of the timers that wait for their commit now, including those that wait for
	 * `linger_ns`. */
	uint64_t staged_bytes;
	/** Bytes of the store's log that the next commits cannot use again. The value may be a
	 * second old. 0 also if the store has no log. */
	uint64_t log_bytes;
	/** Kinds that the store has and the set was not opened with. Their timers do not run. */
	uint64_t unknown_kinds;
	/** Kinds that are paused. */
	uint64_t paused_kinds;
	/** Shared stores: timers that this set has claimed, in addition to those that it has
	 * scheduled itself. */
	uint64_t claimed;
	/** Shared stores: starts of runs that the server rejected, because another process had
	 * cancelled, moved or claimed the timer, or because the timer was not yet due by the
	 * server's clock. */
	uint64_t refused_starts;
	/** Shared stores: ends of runs that changed nothing in the store, because another set had
	 * claimed the timer meanwhile, or the run had ended its timer inside a transaction of its
	 * own. */
	uint64_t stale_ends;
	/** Shared stores: sessions since the open. More than 1 means that the process was cut off
	 * from the server, or did not run for a while. */
	uint64_t sessions;
	/** Steps of the wall clock. */
	uint64_t clock_steps;
	/** An enum tw_durable_state. */
	uint64_t state;
};

/** The times of which a set has histograms. */
enum tw_durable_measurement {
	/** The duration of a transaction of the store, including the tries while the store was
	 * busy. */
	TW_DURABLE_MEASUREMENT_COMMIT = 0,
	/** From a schedule to the acknowledgement that the timer is stored. The time is measured by
	 * the wall clock, so it is wrong if the clock steps meanwhile. Kinds that count elapsed
	 * time use elapsed time instead. */
	TW_DURABLE_MEASUREMENT_ACK = 1,
	/** From the deadline to the beginning of the run, on the clock of the kind. */
	TW_DURABLE_MEASUREMENT_LATENESS = 2,
};

/** The values of one set that tw_durable_stats_print writes. */
struct tw_durable_reading {
	/** A label that distinguishes this set from the others; NULL: "". */
	const char *set;
	/** The counters, as tw_durable_stats_get has filled them in. */
	const struct tw_durable_stats *stats;
	/** sizeof(struct tw_durable_stats). */
	size_t stats_bytes;
	/** The histograms of the set, as tw_durable_histogram_get has filled them in. NULL: left
	 * out. */
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
 * Units: `format`: an enum tw_print_format, except TW_PRINT_PERCENTILES.
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
