/* SPDX-License-Identifier: MIT */
/*
 * What one repeat of a workload has measured. Plain data: it crosses a pipe from a child process.
 */
#ifndef PERF_HARNESS_SAMPLE_H
#define PERF_HARNESS_SAMPLE_H

#include "harness/histogram.h"

#include <stdbool.h>
#include <stdint.h>

/* How many timeouts, and the sum of their ids. */
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

/* Every timeout as the harness saw it begin and end; the library's counters have no part in it. */
struct account {
	struct tally scheduled;
	struct tally cancelled;
	struct tally expired;
	struct tally unexpired;
};

/* Every scheduled timeout has ended exactly once. */
bool account_whole(const struct account *account);

/* The same timeouts were scheduled, and the same ones expired. */
bool account_same(const struct account *a, const struct account *b);

enum { SAMPLE_VERSION_BYTES = 48 };

/* Figures that a workload does not measure are NAN. */
struct sample {
	/* The engine's own word for it; empty: it says none. */
	char version[SAMPLE_VERSION_BYTES];
	double ns_per_op;
	double cpu_ns_per_op;
	double clock_reads_per_op;
	double accounted_bytes_per_pending;
	double rss_bytes_per_pending;
	double wakeups_per_s;
	double cpu_ms_per_s;
	/* Of a pair, each of its calls by itself. */
	double schedule_ns;
	double cancel_ns;
	double wall_s;
	uint64_t peak_rss_bytes;
	struct account account;
	struct histogram lateness_ns;
};

/* Nothing measured yet: counts of 0, figures NAN. */
struct sample sample_empty(void);

#endif
