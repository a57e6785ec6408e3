/* SPDX-License-Identifier: MIT */
/*
 * The options of the command line; 0 and NULL mean the default.
 */
#ifndef PERF_HARNESS_OPTIONS_H
#define PERF_HARNESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum command {
	COMMAND_TOUR,
	COMMAND_LIST,
	COMMAND_RUN,
	COMMAND_TIME,
	COMMAND_COMPARE,
	COMMAND_FLOOR,
	COMMAND_QUEUE,
	COMMAND_REPLAY,
	COMMAND_SCALE,
	COMMAND_TOP,
	COMMAND_PLOT,
	COMMAND_HELP,
	COMMAND_VERSION,
};

enum { OPTIONS_WHEELS = 2, OPTIONS_CLOCKS = 5, OPTIONS_CLOCK_AUTO = 4 };

/* Indexed by enum tw_wheel. */
extern const char *const options_wheel_names[OPTIONS_WHEELS];
/* Indexed by enum tw_clock_type. The last one is the default: the library chooses the clock. */
extern const char *const options_clock_names[OPTIONS_CLOCKS];

struct options {
	enum command command;
	/* The arguments after the command: workloads, a trace, or results. */
	char **operands;
	int operand_count;
	unsigned producers;
	unsigned repeat;
	uint64_t ops;
	uint64_t tick_ns;
	uint32_t slots;
	/*
	 * For scale: the greatest number of pending timeouts. For top: the number of live timeouts.
	 */
	uint64_t pending;
	/* An enum tw_wheel. */
	uint32_t wheel;
	/* An enum tw_clock_type, or OPTIONS_CLOCK_AUTO. */
	uint32_t clock;
	uint64_t spin_ns;
	/*
	 * There is no worker thread. The single producer owns the loop, and its timeouts are
	 * owner-only.
	 */
	bool loop;
	/* The harness passes the time to each schedule (tw_schedule_at). */
	bool at;
	/* Which histograms of runs the engine keeps: an enum tw_measure. */
	uint32_t measure;
	/* These two are fields of struct tw_options. 0: the library's default. */
	uint64_t pending_limit;
	uint32_t transfer_batch;
	/* Flags of struct tw_options, in addition to the loop's. */
	uint32_t flags;
	/* For top: the longest delay, the time between two frames, and the number of frames. */
	uint32_t hold_ms;
	uint32_t interval_ms;
	uint32_t frames;
	/* For top: the folder for the file of durable timers. NULL: top shows an engine instead. */
	const char *durable_path;
	/* For replay: operations come at their recorded times. */
	bool real;
	const char *json_path;
	/* A folder for plot's pictures. */
	const char *output_path;
	/* The chosen engines: a bit for each, by its index in the table of peers. */
	uint64_t engines;
	/* For compare: a missing peer is no error. */
	bool allow_missing;
};

#endif
