/* SPDX-License-Identifier: MIT */
/* Prints the tables on standard output, and passes rows to the JSON file. */
#include "report/report.h"

#include "harness/measure.h"
#include "harness/probe.h"
#include "report/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/utsname.h>
#include <tickwheel/version.h>
#include <unistd.h>

static FILE *json_file;
static const char *json_file_path;

int report_open(const char *json_path)
{
	if (!json_path)
		return 0;
	json_file = fopen(json_path, "we");
	json_file_path = json_path;
	if (json_file)
		return 0;
	fprintf(stderr, "tickwheel-perf: %s: %s\n", json_path, strerror(errno));
	return -1;
}

int report_close(void)
{
	int broken = fflush(stdout);

	if (broken)
		fprintf(stderr, "tickwheel-perf: standard output: %s\n", strerror(errno));
	if (json_file && (ferror(json_file) | fclose(json_file))) {
		fprintf(stderr, "tickwheel-perf: %s: could not be written\n", json_file_path);
		broken = -1;
	}
	json_file = NULL;
	return broken ? -1 : 0;
}

void report_json(const struct row *row)
{
	if (!json_file)
		return;
	json_write(json_file, row);
	fflush(json_file);
}

void report_title(void)
{
	struct utsname system = {0};

	uname(&system);
	printf("tickwheel %s, %u CPUs, %s %s %s\n", tw_version_string(), measure_cpu_count(),
	       system.sysname, system.release, system.machine);
}

static int progress_shown(void)
{
	static int shown = -1;

	if (shown < 0)
		shown = isatty(STDERR_FILENO);
	return shown;
}

void report_progress_clear(void)
{
	if (progress_shown())
		fputs("\r\033[K", stderr);
}

void report_progress(const char *workload, unsigned repeat, unsigned of)
{
	if (!progress_shown())
		return;
	fprintf(stderr, "\r\033[K%s %u/%u ...", workload, repeat, of);
	fflush(stderr);
}

void report_probes_begin(const char *title, unsigned repeat)
{
	report_progress_clear();
	printf("\n%s: ns per operation, median of %u\n\n", title, repeat);
	printf("%-27s %5s %8s %8s %8s   %s\n", "", "prod.", "median", "min", "max", "what");
}

void report_probe(const struct row *row, const char *summary)
{
	report_progress_clear();
	printf("%-27s %5u %8.1f %8.1f %8.1f   %s\n", row->workload, row->producers, row->ns_per_op,
	       row->ns_per_op_min, row->ns_per_op_max, summary);
	fflush(stdout);
	report_json(row);
}

void report_rows_begin(void)
{
	report_progress_clear();
	puts("");
	puts("                  pro-                 wall beside     CPU |    RSS bytes per |"
	     "         lateness, ms                |                           handed");
	puts("workload         ducers    ops rep.   ns/op  clock   ns/op |    MiB   pending |"
	     "    p50     p99   p99.9     max early |   expired cancelled      back lost ids");
}

static const char *number(char *buffer, size_t bytes, double value, int decimals)
{
	if (!isfinite(value))
		return "-";
	for (double limit = 1000; decimals > 0 && value >= limit; limit *= 10)
		decimals--;
	snprintf(buffer, bytes, "%.*f", decimals, value);
	return buffer;
}

/* Writes a count; round numbers are shortened: 5M, 300k. */
static const char *count(char *buffer, size_t bytes, uint64_t value)
{
	if (value && value % 1000000 == 0)
		snprintf(buffer, bytes, "%" PRIu64 "M", value / 1000000);
	else if (value && value % 1000 == 0)
		snprintf(buffer, bytes, "%" PRIu64 "k", value / 1000);
	else
		snprintf(buffer, bytes, "%" PRIu64, value);
	return buffer;
}

void report_number(int width, double value, int decimals)
{
	char text[32];

	printf(" %*s", width, number(text, sizeof(text), value, decimals));
}

static void put_count(int width, uint64_t value)
{
	char text[32];

	printf(" %*s", width, count(text, sizeof(text), value));
}

static void put_costs(const struct row *row)
{
	report_number(7, row->ns_per_op, 1);
	report_number(6, row->ns_beside_clock, 1);
	report_number(7, row->cpu_ns_per_op, 1);
	fputs(" |", stdout);
	report_number(6, (double)row->peak_rss_bytes / (1 << 20), 1);
	report_number(9, row->bytes_per_pending, 1);
	fputs(" |", stdout);
}

static void put_lateness(const struct histogram *lateness)
{
	static const double fractions[] = {0.5, 0.99, 0.999};

	for (int i = 0; i < 3; i++)
		report_number(i ? 7 : 6, histogram_percentile(lateness, fractions[i]) / 1e6, 3);
	report_number(7, lateness->count ? (double)lateness->max / 1e6 : NAN, 3);
	report_number(5, lateness->count ? (double)lateness->early_count : NAN, 0);
	fputs(" |", stdout);
}

static void put_account(const struct row *row)
{
	put_count(9, row->account.expired.count);
	put_count(9, row->account.cancelled.count);
	put_count(9, row->account.unexpired.count);
	printf(" %4" PRId64 " %s\n", row_lost(row), row_sums_agree(row) ? " ok" : "BAD");
}

static void put_notes(const struct row *row)
{
	if (row->clock && (strcmp(row->wheel, "-") != 0 || row->spin_ns))
		printf("%-16s %s wheel, tick %" PRIu64 " ns, %s clock, spin %" PRIu64 " ns\n", "",
		       row->wheel, row->tick_ns, row->clock, row->spin_ns);
	if (isfinite(row->wakeups_per_s))
		printf("%-16s %.2f wake-ups/s, %.3f ms of CPU per second\n", "", row->wakeups_per_s,
		       row->cpu_ms_per_s);
	if (isfinite(row->schedule_ns))
		printf("%-16s schedule %.1f ns, cancel %.1f ns\n", "", row->schedule_ns,
		       row->cancel_ns);
}

void report_row(const struct row *row)
{
	report_progress_clear();
	printf("%-16s %6u", row->workload, row->producers);
	put_count(6, row->ops);
	printf(" %4u", row->repeat);
	put_costs(row);
	put_lateness(&row->lateness_ns);
	put_account(row);
	put_notes(row);
	fflush(stdout);
	report_json(row);
}

void report_curve_begin(const char *name, const char *summary)
{
	report_progress_clear();
	printf("\n%s: %s\n\n", name, summary);
}
