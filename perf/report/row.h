/* SPDX-License-Identifier: MIT */
/* One line of the results, which combines the repeats of a workload. */
#ifndef PERF_REPORT_ROW_H
#define PERF_REPORT_ROW_H

#include "harness/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A figure that was not measured is NAN. Times are medians over the repeats. Memory is the greatest
 * value of any repeat. Account and lateness are those of all repeats together.
 */
struct row {
	const char *workload;
	const char *engine;
	/* Empty: the engine reports no version. */
	char version[SAMPLE_VERSION_BYTES];
	const char *wheel;
	/* NULL for a probe, which has no clock. */
	const char *clock;
	uint64_t spin_ns;
	unsigned producers;
	unsigned repeat;
	uint64_t ops;
	double ns_per_op;
	double ns_per_op_min;
	double ns_per_op_max;
	double ns_beside_clock;
	double cpu_ns_per_op;
	uint64_t peak_rss_bytes;
	double bytes_per_pending;
	double accounted_bytes_per_pending;
	double rss_bytes_per_pending;
	double wakeups_per_s;
	double cpu_ms_per_s;
	double schedule_ns;
	double cancel_ns;
	struct account account;
	struct histogram lateness_ns;
	/*
	 * A peer may run callbacks early by design. The row shows how many, but they are no
	 * failure.
	 */
	bool early_allowed;
	/*
	 * In a comparison: the cost divided by tickwheel's in the same contest. NAN: tickwheel was
	 * not measured.
	 */
	bool compared;
	double ratio;
	double cpu_ratio;
	/*
	 * For a replay: its trace, whether it ran in real time, and for how long. tick_ns is also
	 * set for other rows.
	 */
	const char *trace;
	uint64_t tick_ns;
	bool real;
	double wall_s;
	/*
	 * These fields belong to a point of a curve (scale/scale.h): its part and place, the two
	 * costs that the model predicts, and the cost divided by the mean shape's. The last three
	 * fields are 0 if there is no such figure.
	 */
	const char *part;
	uint64_t part_at;
	double predicted_ns;
	double predicted_cpu_ns;
	double over_mean;
};

/*
 * Makes a row of the samples. `clock_ns` is the cost of one clock read, or NAN if unknown. The
 * caller fills in the row's other fields, which say what the samples are of.
 */
void row_fill(struct row *row, const struct sample *samples, size_t count, double clock_ns);

/* Returns the median, or NAN if there are no values. Reorders the values. */
double row_median(double *values, size_t count);

/* Returns how many scheduled timeouts never ended. Negative: some ended twice. */
int64_t row_lost(const struct row *row);

/* Returns whether the ids that ended add up to those that began. */
bool row_sums_agree(const struct row *row);

/*
 * Returns whether no timeout was lost or ended twice, and no callback of tickwheel came before its
 * deadline.
 */
bool row_good(const struct row *row);

/* Returns the sum of the ids of all timeouts that ended, in any way. */
uint64_t row_ended_id_sum(const struct row *row);

#endif
