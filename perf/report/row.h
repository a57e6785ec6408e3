/* SPDX-License-Identifier: MIT */
/*
 * One line of the results: the repeats of a workload taken together.
 */
#ifndef PERF_REPORT_ROW_H
#define PERF_REPORT_ROW_H

#include "harness/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NAN: not measured. Times are medians over the repeats, memory is the worst of them, and the
 * account and lateness are those of all repeats together. */
struct row {
	const char *workload;
	const char *engine;
	/* Empty: it says none. */
	char version[SAMPLE_VERSION_BYTES];
	const char *wheel;
	/* NULL: a probe has none. */
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
	/* A peer may run callbacks early by design. The row shows them, but they are no failure. */
	bool early_allowed;
	/* In a comparison: over ours in the same. NAN: ours was not there. */
	bool compared;
	double ratio;
	double cpu_ratio;
	/* A replay's. */
	const char *trace;
	uint64_t tick_ns;
	bool real;
	double wall_s;
	/*
	 * A point's of a curve (scale/scale.h): where; 0: no prediction, not compared with the mean
	 * shape.
	 */
	const char *part;
	uint64_t part_at;
	double predicted_ns;
	double predicted_cpu_ns;
	double over_mean;
};

/*
 * Makes a row of the samples. `clock_ns` is the cost of one clock read, or NAN if unknown. The
 * caller fills in the other fields of the row, which say what was run.
 */
void row_fill(struct row *row, const struct sample *samples, size_t count, double clock_ns);

/* The median; reorders the values. NAN for none. */
double row_median(double *values, size_t count);

/* Scheduled, and never seen again; negative: seen twice. */
int64_t row_lost(const struct row *row);

/* The ids that ended add up to those that began. */
bool row_sums_agree(const struct row *row);

/* Nothing lost, nothing ended twice, and no callback of ours came before its deadline. */
bool row_good(const struct row *row);

/* Sum of the ids of all that ended, however. */
uint64_t row_ended_id_sum(const struct row *row);

#endif
