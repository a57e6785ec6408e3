/* SPDX-License-Identifier: MIT */
/* Writes a row as one JSON object on one line. A figure that was not measured is null. */
#include "report/machine.h"
#include "report/report.h"

#include <inttypes.h>
#include <math.h>

static void put_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else
			fputc(c, file);
	}
	fputc('"', file);
}

static void put_text_field(FILE *file, const char *key, const char *text)
{
	fprintf(file, "\"%s\":", key);
	put_text(file, text);
	fputc(',', file);
}

static void put_count(FILE *file, const char *key, uint64_t value)
{
	fprintf(file, "\"%s\":%" PRIu64 ",", key, value);
}

static void put_number(FILE *file, const char *key, double value)
{
	if (!isfinite(value))
		fprintf(file, "\"%s\":null,", key);
	else
		fprintf(file, "\"%s\":%.2f,", key, value);
}

/*
 * Writes more decimals than put_number, because a peer's cost may be a thousandth of another
 * peer's.
 */
static void put_ratio(FILE *file, const char *key, double value)
{
	if (!isfinite(value))
		fprintf(file, "\"%s\":null,", key);
	else
		fprintf(file, "\"%s\":%.4f,", key, value);
}

static void put_optional(FILE *file, const char *key, double value)
{
	if (isfinite(value))
		put_number(file, key, value);
}

static void put_percentile(FILE *file, const char *key, double value, const char *end)
{
	if (!isfinite(value))
		fprintf(file, "\"%s\":null%s", key, end);
	else
		fprintf(file, "\"%s\":%.0f%s", key, value, end);
}

static void put_lateness(FILE *file, const struct histogram *lateness)
{
	static const struct {
		const char *key;
		double fraction;
	} percentiles[] = {
		{"p10", 0.1}, {"p25", 0.25}, {"p50", 0.5},    {"p75", 0.75},
		{"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"p9999", 0.9999},
	};

	fputs("\"lateness_ns\":{", file);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
		put_percentile(file, percentiles[i].key,
			       histogram_percentile(lateness, percentiles[i].fraction), ",");
	put_percentile(file, "max", lateness->count ? (double)lateness->max : NAN, "},");
	put_count(file, "lateness_samples", lateness->count);
	put_count(file, "early", lateness->early_count);
}

static void put_times(FILE *file, const struct row *row)
{
	put_number(file, "ns_per_op", row->ns_per_op);
	put_number(file, "ns_per_op_min", row->ns_per_op_min);
	put_number(file, "ns_per_op_max", row->ns_per_op_max);
	put_optional(file, "ns_beside_clock", row->ns_beside_clock);
	put_number(file, "cpu_ns_per_op", row->cpu_ns_per_op);
	put_optional(file, "wakeups_per_s", row->wakeups_per_s);
	put_optional(file, "cpu_ms_per_s", row->cpu_ms_per_s);
	put_optional(file, "schedule_ns", row->schedule_ns);
	put_optional(file, "cancel_ns", row->cancel_ns);
}

static void put_comparison(FILE *file, const struct row *row)
{
	if (!row->compared)
		return;
	put_number(file, "ns_min", row->ns_per_op_min);
	put_number(file, "ns_max", row->ns_per_op_max);
	put_ratio(file, "ratio", row->ratio);
	put_ratio(file, "cpu_ratio", row->cpu_ratio);
}

static void put_memory(FILE *file, const struct row *row)
{
	put_count(file, "peak_rss_bytes", row->peak_rss_bytes);
	put_number(file, "bytes_per_pending", row->bytes_per_pending);
	put_optional(file, "accounted_bytes_per_pending", row->accounted_bytes_per_pending);
	put_optional(file, "rss_bytes_per_pending", row->rss_bytes_per_pending);
}

static void put_replay(FILE *file, const struct row *row)
{
	if (!row->trace)
		return;
	put_text_field(file, "trace", row->trace);
	put_text_field(file, "time", row->real ? "real" : "virtual");
	put_number(file, "wall_s", row->wall_s);
}

static void put_above_zero(FILE *file, const char *key, double value)
{
	if (value > 0)
		put_number(file, key, value);
}

static void put_curve(FILE *file, const struct row *row)
{
	if (!row->part)
		return;
	put_text_field(file, "part", row->part);
	put_count(file, "at", row->part_at);
	put_above_zero(file, "predicted_ns", row->predicted_ns);
	put_above_zero(file, "predicted_cpu_ns", row->predicted_cpu_ns);
	put_above_zero(file, "over_mean", row->over_mean);
}

static void put_account(FILE *file, const struct row *row)
{
	put_count(file, "scheduled", row->account.scheduled.count);
	put_count(file, "expired", row->account.expired.count);
	put_count(file, "cancelled", row->account.cancelled.count);
	put_count(file, "unexpired", row->account.unexpired.count);
	fprintf(file, "\"lost\":%" PRId64 ",", row_lost(row));
	fprintf(file, "\"checksum\":\"%016" PRIx64 "\",", row->account.scheduled.id_sum);
	fprintf(file, "\"checksum_ended\":\"%016" PRIx64 "\"", row_ended_id_sum(row));
}

static void put_machine(FILE *file, const struct machine *machine)
{
	put_text_field(file, "date", machine->date);
	put_text_field(file, "cpu", machine->cpu);
	put_count(file, "cpus", machine->cpus);
	put_count(file, "memory_bytes", machine->memory_bytes);
	put_text_field(file, "kernel", machine->kernel);
	put_text_field(file, "compiler", machine->compiler);
	put_text_field(file, "flags", machine->flags);
}

void json_write(FILE *file, const struct row *row)
{
	fputc('{', file);
	put_text_field(file, "workload", row->workload);
	put_text_field(file, "engine", row->engine);
	if (row->version[0])
		put_text_field(file, "version", row->version);
	put_text_field(file, "wheel", row->wheel);
	if (row->clock) {
		put_text_field(file, "clock", row->clock);
		put_count(file, "spin_ns", row->spin_ns);
		put_count(file, "tick_ns", row->tick_ns);
	}
	put_count(file, "producers", row->producers);
	put_count(file, "ops", row->ops);
	put_count(file, "repeat", row->repeat);
	put_times(file, row);
	put_comparison(file, row);
	put_memory(file, row);
	put_lateness(file, &row->lateness_ns);
	put_replay(file, row);
	put_curve(file, row);
	put_machine(file, machine_get());
	put_account(file, row);
	fputs("}\n", file);
}
