/* SPDX-License-Identifier: MIT */
/*
 * The figures that one repeat of a workload has measured. A sample is plain data, because a child
 * process sends it through a pipe.
 */
#ifndef PERF_HARNESS_SAMPLE_H
#define PERF_HARNESS_SAMPLE_H

#include "harness/histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* A number of timeouts, and the sum of their ids. */
struct tally {
	uint64_t count;
	uint64_t id_sum;
};

static inline void tally_add(struct tally *tally, uint64_t id)
{
	tally->count++;
	tally->id_sum += id;
}

static inline void tally_merge(struct tally *into, struct tally from)
{
	into->count += from.count;
	into->id_sum += from.id_sum;
}

/* How many timeouts were scheduled and how they ended, by the harness's own counts, not by the
 * library's counters. */
struct account {
	struct tally scheduled;
	struct tally cancelled;
	struct tally expired;
	struct tally unexpired;
};

/* Returns whether every scheduled timeout has ended exactly once. */
bool account_whole(const struct account *account);

/* Returns whether in both accounts the same timeouts were scheduled, and the same ones expired. */
bool account_same(const struct account *a, const struct account *b);

enum { SAMPLE_VERSION_BYTES = 48 };

/* Figures that a workload does not measure are NAN. */
struct sample {
	/* The version that the engine reports. Empty: it reports none. */
	char version[SAMPLE_VERSION_BYTES];
	double ns_per_op;
	double cpu_ns_per_op;
	double clock_reads_per_op;
	double accounted_bytes_per_pending;
	double rss_bytes_per_pending;
	double wakeups_per_s;
	double cpu_ms_per_s;
	/* The two calls of a pair, each measured by itself. */
	double schedule_ns;
	double cancel_ns;
	double wall_s;
	uint64_t peak_rss_bytes;
	struct account account;
	struct histogram lateness_ns;
};

/* Returns a sample in which nothing is measured yet: counts are 0, figures are NAN. */
struct sample sample_empty(void);

#endif
