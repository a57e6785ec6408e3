/* SPDX-License-Identifier: MIT */
/* Combines the repeats of a workload into one row. */
#include "report/row.h"

#include "harness/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Growth of a process that the library does not count: stacks, and counters that the kernel updates
 * in batches. */
#define RSS_NOISE_FRACTION 0.01

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

double row_median(double *values, size_t count)
{
	if (count == 0)
		return NAN;
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double worse(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

/*
 * Returns the library's own account of its memory, or the growth of the process if the growth is
 * clearly greater.
 */
static double believed_bytes(double accounted, double rss)
{
	return rss > accounted * (1.0 + RSS_NOISE_FRACTION) ? rss : accounted;
}

static void fill_memory(struct row *row, const struct sample *sample)
{
	if (sample->peak_rss_bytes > row->peak_rss_bytes)
		row->peak_rss_bytes = sample->peak_rss_bytes;
	row->accounted_bytes_per_pending =
		worse(row->accounted_bytes_per_pending, sample->accounted_bytes_per_pending);
	row->rss_bytes_per_pending =
		worse(row->rss_bytes_per_pending, sample->rss_bytes_per_pending);
	row->bytes_per_pending =
		worse(row->bytes_per_pending, believed_bytes(sample->accounted_bytes_per_pending,
							     sample->rss_bytes_per_pending));
}

static void fill_account(struct account *account, const struct account *more)
{
	tally_merge(&account->scheduled, more->scheduled);
	tally_merge(&account->cancelled, more->cancelled);
	tally_merge(&account->expired, more->expired);
	tally_merge(&account->unexpired, more->unexpired);
}

/*
 * Returns the median of one figure, which lies `offset` bytes into each sample. Leaves the sorted
 * figures in `values`.
 */
static double figure_median(const struct sample *samples, size_t count, size_t offset,
			    double *values)
{
	for (size_t i = 0; i < count; i++)
		memcpy(&values[i], (const char *)&samples[i] + offset, sizeof(*values));
	return row_median(values, count);
}

#define FIGURE_MEDIAN(samples, count, figure, values)                                              \
	figure_median(samples, count, offsetof(struct sample, figure), values)

static void fill_times(struct row *row, const struct sample *samples, size_t count, double *values)
{
	row->cpu_ns_per_op = FIGURE_MEDIAN(samples, count, cpu_ns_per_op, values);
	row->wakeups_per_s = FIGURE_MEDIAN(samples, count, wakeups_per_s, values);
	row->cpu_ms_per_s = FIGURE_MEDIAN(samples, count, cpu_ms_per_s, values);
	row->schedule_ns = FIGURE_MEDIAN(samples, count, schedule_ns, values);
	row->cancel_ns = FIGURE_MEDIAN(samples, count, cancel_ns, values);
	row->wall_s = FIGURE_MEDIAN(samples, count, wall_s, values);
	row->ns_per_op = FIGURE_MEDIAN(samples, count, ns_per_op, values);
	row->ns_per_op_min = values[0];
	row->ns_per_op_max = values[count - 1];
}

/*
 * Returns the part of ns_per_op that is a clock read. Producers on different CPUs read their clocks
 * at the same time, so the cost is divided among them.
 */
static double clock_share_ns(const struct row *row, const struct sample *sample, double clock_ns)
{
	unsigned cpus = measure_cpu_count();
	unsigned at_once = row->producers < cpus ? row->producers : cpus;

	return sample->clock_reads_per_op * clock_ns / at_once;
}

void row_fill(struct row *row, const struct sample *samples, size_t count, double clock_ns)
{
	double *values = calloc(count, sizeof(*values));

	if (!values)
		abort();
	fill_times(row, samples, count, values);
	free(values);
	memcpy(row->version, samples[0].version, sizeof(row->version));
	row->accounted_bytes_per_pending = NAN;
	row->rss_bytes_per_pending = NAN;
	row->bytes_per_pending = NAN;
	for (size_t i = 0; i < count; i++) {
		fill_memory(row, &samples[i]);
		fill_account(&row->account, &samples[i].account);
		histogram_merge(&row->lateness_ns, &samples[i].lateness_ns);
	}
	row->ns_beside_clock = row->ns_per_op - clock_share_ns(row, &samples[0], clock_ns);
}

int64_t row_lost(const struct row *row)
{
	const struct account *account = &row->account;

	return (int64_t)(account->scheduled.count - account->cancelled.count -
			 account->expired.count - account->unexpired.count);
}

uint64_t row_ended_id_sum(const struct row *row)
{
	const struct account *account = &row->account;

	return account->cancelled.id_sum + account->expired.id_sum + account->unexpired.id_sum;
}

bool row_good(const struct row *row)
{
	return row_lost(row) == 0 && row_sums_agree(row) &&
	       (row->early_allowed || row->lateness_ns.early_count == 0);
}

bool row_sums_agree(const struct row *row)
{
	return row->account.scheduled.id_sum == row_ended_id_sum(row);
}
