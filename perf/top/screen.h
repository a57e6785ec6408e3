/* SPDX-License-Identifier: MIT */
/*
 * What tickwheel-perf top shows: figures in, lines of text out. Knows no terminal and no engine.
 */
#ifndef PERF_TOP_SCREEN_H
#define PERF_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum {
	/* What is asked for beyond that is left empty. */
	TOP_ROWS_MAX = 64,
	TOP_COLUMNS_MAX = 240,
	TOP_LEVELS_MAX = 16,
};

/* Pending timeouts by level, as tw_engine_dump told so long ago; not `known`: nobody has. */
struct top_levels {
	bool known;
	double age_s;
	unsigned count;
	uint64_t pending[TOP_LEVELS_MAX];
};

struct top_view {
	const char *title;
	double up_s;
	/* Between the two readings of the counters. */
	double interval_s;
	uint64_t tick_ns;
	struct tw_stats before;
	struct tw_stats now;
	/* Of the time in between. */
	struct tw_histogram lateness;
	struct tw_histogram duration;
	struct top_levels levels;
	uint64_t rss_bytes;
	/* Of one processor, in percent. */
	double cpu_percent;
};

/* The terminal chooses the colours. */
enum top_style {
	TOP_PLAIN,
	TOP_TITLE,
	TOP_HEADING,
	/* A figure of the last interval. */
	TOP_RATE,
	TOP_BAR,
	/* A figure other than 0 that the operator should look into. */
	TOP_ALARM,
	TOP_STYLES
};

struct top_line {
	char text[TOP_COLUMNS_MAX + 1];
	/* The style of each character: an enum top_style. */
	uint8_t style[TOP_COLUMNS_MAX + 1];
};

struct top_text {
	unsigned count;
	struct top_line line[TOP_ROWS_MAX];
};

/* As many lines as there are rows at most, none longer than there are columns. */
void top_screen_draw(const struct top_view *view, unsigned rows, unsigned columns,
		     struct top_text *ret_text);

/* One line of a dump. What is not about levels is passed over. */
void top_levels_take(struct top_levels *levels, const char *line);

#endif
