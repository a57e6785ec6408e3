/* SPDX-License-Identifier: MIT */
/*
 * Writes the counters of engines as text, JSON or Prometheus metrics, from one table of the
 * counters.
 */
#include "stats/histogram.h"
#include "stats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The type of a number, as Prometheus knows it. */
enum type { COUNTER, GAUGE, GAUGE_NS };

static const struct field {
	const char *name;
	size_t at;
	enum type type;
	const char *help;
} fields[] = {
#define FIELD(name, type, help)                                                                    \
	{                                                                                          \
#name, offsetof(struct tw_stats, name), type, help                                 \
	}
	FIELD(scheduled, COUNTER, "Timeouts accepted."),
	FIELD(rejected, COUNTER, "Timeouts rejected: limit, memory, shut down."),
	FIELD(expired, COUNTER, "Timeouts that expired."),
	FIELD(cancelled, COUNTER, "Timeouts cancelled."),
	FIELD(cancelled_early, COUNTER, "Timeouts cancelled before they reached the wheel."),
	FIELD(rescheduled, COUNTER, "Deadlines that were moved."),
	FIELD(unexpired, COUNTER, "Timeouts that stop handed back."),
	FIELD(pending, GAUGE, "Timeouts neither expired, cancelled nor handed back."),
	FIELD(ingress, GAUGE, "Timeouts on their way to the wheel."),
	FIELD(unreclaimed, GAUGE, "Cancelled timeouts whose memory waits for the worker."),
	FIELD(transferred, COUNTER, "Timeouts that went into the wheel."),
	FIELD(transfers, COUNTER, "Transfer batches."),
	FIELD(largest_transfer, GAUGE, "The most that one transfer batch took."),
	FIELD(cascaded, COUNTER, "Moves of timeouts to a lower level of the wheel."),
	FIELD(turns, COUNTER, "Turns of the worker."),
	FIELD(catch_up_ticks, COUNTER, "Ticks by which turns came too late."),
	FIELD(parks, COUNTER, "Times the worker slept."),
	FIELD(woken_by_deadline, COUNTER, "Sleeps whose time had come."),
	FIELD(woken_by_producer, COUNTER, "Sleeps that a schedule, reschedule or cancel ended."),
	FIELD(woken_by_call, COUNTER, "Sleeps that flush, stop or a moved clock ended."),
	FIELD(woken_otherwise, COUNTER, "Sleeps that ended for another reason."),
	FIELD(periodic_runs, COUNTER, "Runs of periodic timeouts."),
	FIELD(late, COUNTER, "Runs that began later than allowed."),
	FIELD(latest_ns, GAUGE_NS, "The longest that a batch began after its first deadline."),
	FIELD(slow, COUNTER, "Runs that took longer than allowed."),
	FIELD(executor_rejected, COUNTER, "Runs that the dispatch hook rejected."),
	FIELD(dropped, COUNTER, "Runs that went to the drop hook."),
	FIELD(wheel_bytes, GAUGE, "Memory of the wheel."),
	FIELD(wheel_allocations, COUNTER, "Allocations of the worker."),
	FIELD(slab_bytes, GAUGE, "Memory of all timeouts of the process."),
	FIELD(check_failures, COUNTER, "Checks of the wheel that failed."),
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

_Static_assert(FIELDS + 1 == sizeof(struct tw_stats) / sizeof(uint64_t), "all but the size");

static uint64_t value_of(const struct tw_stats *stats, const struct field *field)
{
	uint64_t value;

	memcpy(&value, (const char *)stats + field->at, sizeof value);
	return value;
}

static void lines_write(struct twi_text *text, const struct tw_reading *reading)
{
	twi_text_put(text, "engine ");
	twi_text_quote(text, reading->engine, true);
	twi_text_put(text, "\n");
	for (size_t i = 0; i < FIELDS; i++)
		twi_text_put(text, "  %-18s %20" PRIu64 "\n", fields[i].name,
			     value_of(reading->stats, &fields[i]));
	if (reading->lateness != NULL) {
		twi_text_put(text, "  lateness: ");
		twi_histogram_line(text, reading->lateness);
	}
	if (reading->duration != NULL) {
		twi_text_put(text, "  duration: ");
		twi_histogram_line(text, reading->duration);
	}
}

static void text_write(struct twi_text *text, const struct tw_reading *readings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		lines_write(text, &readings[i]);
}

static void object_write(struct twi_text *text, const struct tw_reading *reading)
{
	twi_text_put(text, "{\"engine\":");
	twi_text_quote(text, reading->engine, true);
	for (size_t i = 0; i < FIELDS; i++)
		twi_text_put(text, ",\"%s\":%" PRIu64, fields[i].name,
			     value_of(reading->stats, &fields[i]));
	if (reading->lateness != NULL) {
		twi_text_put(text, ",\"lateness_ns\":");
		twi_histogram_object(text, reading->lateness);
	}
	if (reading->duration != NULL) {
		twi_text_put(text, ",\"duration_ns\":");
		twi_histogram_object(text, reading->duration);
	}
	twi_text_put(text, "}");
}

static void json_write(struct twi_text *text, const struct tw_reading *readings, size_t count)
{
	twi_text_put(text, "{\"engines\":[");
	for (size_t i = 0; i < count; i++) {
		twi_text_put(text, i > 0 ? "," : "");
		object_write(text, &readings[i]);
	}
	twi_text_put(text, "]}\n");
}

/* Adds the metric's name. The name ends in a base unit if the number has one. */
static void metric_name_put(struct twi_text *text, const struct field *field)
{
	if (field->type == GAUGE_NS)
		twi_text_put(text, "tickwheel_latest_seconds");
	else
		twi_text_put(text, "tickwheel_%s%s", field->name,
			     field->type == COUNTER ? "_total" : "");
}

static void metric_head(struct twi_text *text, const struct field *field)
{
	twi_text_put(text, "# HELP ");
	metric_name_put(text, field);
	twi_text_put(text, " %s\n# TYPE ", field->help);
	metric_name_put(text, field);
	twi_text_put(text, field->type == COUNTER ? " counter\n" : " gauge\n");
}

static void metric_sample(struct twi_text *text, const struct field *field,
			  const struct tw_reading *reading)
{
	metric_name_put(text, field);
	twi_text_put(text, "{engine=");
	twi_text_quote(text, reading->engine, false);
	twi_text_put(text, "} ");
	if (field->type == GAUGE_NS)
		twi_text_seconds(text, value_of(reading->stats, field));
	else
		twi_text_put(text, "%" PRIu64, value_of(reading->stats, field));
	twi_text_put(text, "\n");
}

static const struct tw_histogram *histogram_of(const struct tw_reading *reading,
					       uint32_t measurement)
{
	return measurement == TW_MEASUREMENT_LATENESS ? reading->lateness : reading->duration;
}

static void histograms_write(struct twi_text *text, const struct tw_reading *readings, size_t count,
			     uint32_t measurement)
{
	bool lateness = measurement == TW_MEASUREMENT_LATENESS;
	const char *metric = lateness ? "tickwheel_lateness" : "tickwheel_duration";
	bool begun = false;

	for (size_t i = 0; i < count; i++) {
		const struct tw_histogram *histogram = histogram_of(&readings[i], measurement);
		const struct twi_label label = {"engine", readings[i].engine};

		if (histogram == NULL)
			continue;
		if (!begun)
			twi_text_put(text, "# HELP %s_seconds %s\n# TYPE %s_seconds histogram\n",
				     metric,
				     lateness ? "From the deadline to the begin of a run."
					      : "From the begin of a run to its end.",
				     metric);
		begun = true;
		twi_histogram_series(text, histogram, metric, &label);
	}
}

static void prometheus_write(struct twi_text *text, const struct tw_reading *readings, size_t count)
{
	for (size_t i = 0; i < FIELDS; i++) {
		metric_head(text, &fields[i]);
		for (size_t number = 0; number < count; number++)
			metric_sample(text, &fields[i], &readings[number]);
	}
	histograms_write(text, readings, count, TW_MEASUREMENT_LATENESS);
	histograms_write(text, readings, count, TW_MEASUREMENT_DURATION);
}

static bool reading_right(const struct tw_reading *reading)
{
	return reading->stats != NULL && reading->stats->size >= sizeof *reading->stats &&
	       (reading->lateness == NULL || twi_histogram_right(reading->lateness)) &&
	       (reading->duration == NULL || twi_histogram_right(reading->duration));
}

static bool readings_right(const struct tw_reading *readings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!reading_right(&readings[i]))
			return false;
	return true;
}

int tw_stats_print(const struct tw_reading *readings, size_t count, uint32_t format,
		   tw_dump_hook *hook, void *context)
{
	struct twi_text text;

	if (readings == NULL || hook == NULL || format > TW_PRINT_PROMETHEUS ||
	    !readings_right(readings, count))
		return -EINVAL;
	text.hook = hook;
	text.context = context;
	text.used = 0;
	if (format == TW_PRINT_PROMETHEUS)
		prometheus_write(&text, readings, count);
	else if (format == TW_PRINT_JSON)
		json_write(&text, readings, count);
	else
		text_write(&text, readings, count);
	twi_text_end(&text);
	return 0;
}
