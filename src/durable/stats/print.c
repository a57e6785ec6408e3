/* SPDX-License-Identifier: MIT */
/*
 * Writes the counters and histograms of sets as text, JSON or Prometheus metrics. One table lists
 * the counters for all three formats.
 */
#include "stats/histogram.h"
#include "stats/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_stats.h>

/* The type of a number, as Prometheus knows it. */
enum type { COUNTER, GAUGE, GAUGE_NS };

static const struct field {
	const char *name;   /* the name in text and JSON */
	const char *metric; /* the part of the metric's name behind "tickwheel_durable_" */
	size_t at;
	enum type type;
	const char *help;
} fields[] = {
#define FIELD(name, metric, type, help)                                                            \
	{                                                                                          \
#name, metric, offsetof(struct tw_durable_stats, name), type, help                 \
	}
	FIELD(scheduled, "scheduled_total", COUNTER, "Schedules that were accepted."),
	FIELD(absorbed, "absorbed_total", COUNTER, "Timers that ended before they were stored."),
	FIELD(stored, "stored_total", COUNTER, "Timers that were stored."),
	FIELD(unknown, "unknown_total", COUNTER, "Acknowledgements of an unknown outcome."),
	FIELD(commits, "commits_total", COUNTER, "Transactions of the store."),
	FIELD(operations, "operations_total", COUNTER, "Operations in transactions."),
	FIELD(runs, "runs_total", COUNTER, "Runs that began."),
	FIELD(late, "late_total", COUNTER, "Runs that began later than allowed."),
	FIELD(overdue, "overdue_total", COUNTER, "Timers that were too late for their run."),
	FIELD(dead, "dead_total", COUNTER, "Timers that became dead letters."),
	FIELD(dead_removed, "dead_removed_total", COUNTER, "Dead letters that a bound removed."),
	FIELD(in_memory, "in_memory", GAUGE, "Timers in memory."),
	FIELD(memory_bytes, "memory_bytes", GAUGE, "Bytes of the timers in memory."),
	FIELD(staged_bytes, "staged_bytes", GAUGE, "Bytes that wait for their commit."),
	FIELD(log_bytes, "log_bytes", GAUGE, "Bytes of the log that the store has to keep."),
	FIELD(lag_ns, "lag_seconds", GAUGE_NS, "How late the last run began."),
	FIELD(lag_max_ns, "lag_max_seconds", GAUGE_NS, "The greatest lag since the open."),
	FIELD(unknown_kinds, "unknown_kinds", GAUGE, "Kinds of the store without a function."),
	FIELD(paused_kinds, "paused_kinds", GAUGE, "Kinds that are paused."),
	FIELD(claimed, "claimed_total", COUNTER, "Timers that were claimed from a shared store."),
	FIELD(refused_starts, "refused_starts_total", COUNTER,
	      "Starts that a shared store refused."),
	FIELD(stale_ends, "stale_ends_total", COUNTER, "Ends of runs that changed nothing."),
	FIELD(sessions, "sessions_total", COUNTER, "Sessions of a shared store."),
	FIELD(clock_steps, "clock_steps_total", COUNTER, "Steps of the wall clock."),
#undef FIELD
};

static const struct state {
	const char *name;
	enum tw_durable_state state;
} states[] = {
	{"open", TW_DURABLE_STATE_OPEN},
	{"failed", TW_DURABLE_STATE_FAILED},
	{"clock_stepped", TW_DURABLE_STATE_CLOCK_STEPPED},
	{"full", TW_DURABLE_STATE_FULL},
	{"slow", TW_DURABLE_STATE_SLOW},
	{"cut", TW_DURABLE_STATE_CUT},
};

enum {
	FIELDS = sizeof fields / sizeof fields[0],
	STATES = sizeof states / sizeof states[0],
};

_Static_assert(FIELDS + 1 == sizeof(struct tw_durable_stats) / sizeof(uint64_t),
	       "all but the state");

static const struct measurement {
	const char *name, *metric, *help;
	size_t at;
} measurements[] = {
	{"commit", "tickwheel_durable_commit", "Transactions of the store.",
	 offsetof(struct tw_durable_reading, commit)},
	{"ack", "tickwheel_durable_ack", "From a schedule to its acknowledgement.",
	 offsetof(struct tw_durable_reading, ack)},
	{"lateness", "tickwheel_durable_lateness", "From the deadline to the begin of a run.",
	 offsetof(struct tw_durable_reading, lateness)},
};

enum { MEASUREMENTS = sizeof measurements / sizeof measurements[0] };

static const struct tw_histogram *histogram_of(const struct tw_durable_reading *reading,
					       const struct measurement *measurement)
{
	const struct tw_histogram *histogram;

	memcpy(&histogram, (const char *)reading + measurement->at, sizeof histogram);
	return histogram;
}

static uint64_t value_of(const struct tw_durable_reading *reading, const struct field *field)
{
	uint64_t value;

	memcpy(&value, (const char *)reading->stats + field->at, sizeof value);
	return value;
}

static const char *state_name(uint64_t state)
{
	for (size_t i = 0; i < STATES; i++)
		if ((uint64_t)states[i].state == state)
			return states[i].name;
	return "unknown";
}

static void lines_write(struct twi_text *text, const struct tw_durable_reading *reading)
{
	twi_text_put(text, "set ");
	twi_text_quote(text, reading->set, true);
	twi_text_put(text, "\n  %-18s %20s\n", "state", state_name(reading->stats->state));
	for (size_t i = 0; i < FIELDS; i++)
		twi_text_put(text, "  %-18s %20" PRIu64 "\n", fields[i].name,
			     value_of(reading, &fields[i]));
	for (size_t i = 0; i < MEASUREMENTS; i++) {
		const struct tw_histogram *histogram = histogram_of(reading, &measurements[i]);

		if (histogram == NULL)
			continue;
		twi_text_put(text, "  %s: ", measurements[i].name);
		twi_histogram_line(text, histogram);
	}
}

static void object_write(struct twi_text *text, const struct tw_durable_reading *reading)
{
	twi_text_put(text, "{\"set\":");
	twi_text_quote(text, reading->set, true);
	twi_text_put(text, ",\"state\":\"%s\"", state_name(reading->stats->state));
	for (size_t i = 0; i < FIELDS; i++)
		twi_text_put(text, ",\"%s\":%" PRIu64, fields[i].name,
			     value_of(reading, &fields[i]));
	for (size_t i = 0; i < MEASUREMENTS; i++) {
		const struct tw_histogram *histogram = histogram_of(reading, &measurements[i]);

		if (histogram == NULL)
			continue;
		twi_text_put(text, ",\"%s_ns\":", measurements[i].name);
		twi_histogram_object(text, histogram);
	}
	twi_text_put(text, "}");
}

static void text_write(struct twi_text *text, const struct tw_durable_reading *readings,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		lines_write(text, &readings[i]);
}

static void json_write(struct twi_text *text, const struct tw_durable_reading *readings,
		       size_t count)
{
	twi_text_put(text, "{\"sets\":[");
	for (size_t i = 0; i < count; i++) {
		twi_text_put(text, i > 0 ? "," : "");
		object_write(text, &readings[i]);
	}
	twi_text_put(text, "]}\n");
}

static void sample_begin(struct twi_text *text, const char *metric,
			 const struct tw_durable_reading *reading)
{
	twi_text_put(text, "tickwheel_durable_%s{set=", metric);
	twi_text_quote(text, reading->set, false);
}

static void metric_head(struct twi_text *text, const char *metric, const char *help, bool counter)
{
	twi_text_put(text, "# HELP tickwheel_durable_%s %s\n", metric, help);
	twi_text_put(text, "# TYPE tickwheel_durable_%s %s\n", metric,
		     counter ? "counter" : "gauge");
}

static void sample_write(struct twi_text *text, const struct field *field,
			 const struct tw_durable_reading *reading)
{
	sample_begin(text, field->metric, reading);
	twi_text_put(text, "} ");
	if (field->type == GAUGE_NS)
		twi_text_seconds(text, value_of(reading, field));
	else
		twi_text_put(text, "%" PRIu64, value_of(reading, field));
	twi_text_put(text, "\n");
}

static void states_write(struct twi_text *text, const struct tw_durable_reading *reading)
{
	for (size_t i = 0; i < STATES; i++) {
		sample_begin(text, "state", reading);
		twi_text_put(text, ",state=\"%s\"} %d\n", states[i].name,
			     (uint64_t)states[i].state == reading->stats->state);
	}
}

static void series_write(struct twi_text *text, const struct measurement *measurement,
			 const struct tw_durable_reading *readings, size_t count)
{
	bool begun = false;

	for (size_t i = 0; i < count; i++) {
		const struct tw_histogram *histogram = histogram_of(&readings[i], measurement);
		const struct twi_label label = {"set", readings[i].set};

		if (histogram == NULL)
			continue;
		if (!begun)
			twi_text_put(text, "# HELP %s_seconds %s\n# TYPE %s_seconds histogram\n",
				     measurement->metric, measurement->help, measurement->metric);
		begun = true;
		twi_histogram_series(text, histogram, measurement->metric, &label);
	}
}

static void prometheus_write(struct twi_text *text, const struct tw_durable_reading *readings,
			     size_t count)
{
	for (size_t i = 0; i < FIELDS; i++) {
		metric_head(text, fields[i].metric, fields[i].help, fields[i].type == COUNTER);
		for (size_t number = 0; number < count; number++)
			sample_write(text, &fields[i], &readings[number]);
	}
	metric_head(text, "state", "1 for the state that the set is in.", false);
	for (size_t number = 0; number < count; number++)
		states_write(text, &readings[number]);
	for (size_t i = 0; i < MEASUREMENTS; i++)
		series_write(text, &measurements[i], readings, count);
}

static bool reading_right(const struct tw_durable_reading *reading)
{
	if (reading->stats == NULL || reading->stats_bytes != sizeof *reading->stats)
		return false;
	for (size_t i = 0; i < MEASUREMENTS; i++) {
		const struct tw_histogram *histogram = histogram_of(reading, &measurements[i]);

		if (histogram != NULL && !twi_histogram_right(histogram))
			return false;
	}
	return true;
}

static bool readings_right(const struct tw_durable_reading *readings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!reading_right(&readings[i]))
			return false;
	return true;
}

int tw_durable_stats_print(const struct tw_durable_reading *readings, size_t count, uint32_t format,
			   tw_dump_hook *hook, void *context)
{
	struct twi_text text = {.hook = hook, .context = context};

	if (readings == NULL || hook == NULL || format > TW_PRINT_PROMETHEUS ||
	    !readings_right(readings, count))
		return -EINVAL;
	if (format == TW_PRINT_PROMETHEUS)
		prometheus_write(&text, readings, count);
	else if (format == TW_PRINT_JSON)
		json_write(&text, readings, count);
	else
		text_write(&text, readings, count);
	twi_text_end(&text);
	return 0;
}
