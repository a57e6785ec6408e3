/* SPDX-License-Identifier: MIT */
/* Prints the table of a contest. */
#include "report/report.h"

#include "harness/measure.h"
#include "report/cells.h"

#include <inttypes.h>
#include <math.h>

void report_contest_begin(const struct row *row, const char *summary)
{
	report_progress_clear();
	printf("\n%s, %u producer%s, %" PRIu64 " operations, medians of %u\n%s\n\n", row->workload,
	       row->producers, row->producers > 1 ? "s" : "", row->ops, row->repeat, summary);
	puts("                          wall                          CPU          |   lateness, us"
	     "            |   RSS |");
	puts("engine                   ns/op     min     max  ratio   ns/op  ratio |     p50      "
	     "p99"
	     "    early |   MiB | version");
}

static void put_ratio(double ratio)
{
	report_number(6, ratio, ratio < 10 ? 2 : 1);
}

void report_contest_row(const struct row *row)
{
	const struct histogram *lateness = &row->lateness_ns;

	printf("%-22s", row->engine);
	report_number(7, row->ns_per_op, 1);
	report_number(7, row->ns_per_op_min, 1);
	report_number(7, row->ns_per_op_max, 1);
	put_ratio(row->ratio);
	report_number(7, row->cpu_ns_per_op, 1);
	put_ratio(row->cpu_ratio);
	fputs(" |", stdout);
	report_number(7, histogram_percentile(lateness, 0.5) / 1e3, 1);
	report_number(8, histogram_percentile(lateness, 0.99) / 1e3, 1);
	report_number(8, lateness->count ? (double)lateness->early_count : NAN, 0);
	fputs(" |", stdout);
	report_number(5, (double)row->peak_rss_bytes / (1 << 20), 0);
	printf(" | %s\n", row->version);
	fflush(stdout);
	report_json(row);
}
