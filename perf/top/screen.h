/* SPDX-License-Identifier: MIT */
/*
 * What tickwheel-perf top shows: figures in, lines of text out. Knows no terminal and no engine.
 */
#ifndef PERF_TOP_SCREEN_H
#define PERF_TOP_SCREEN_H

#include "top/page.h"

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum { TOP_LEVELS_MAX = 16 };

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

/* As many lines as there are rows at most, none longer than there are columns. */
void top_screen_draw(const struct top_view *view, unsigned rows, unsigned columns,
		     struct top_text *ret_text);

/* One line of a dump. What is not about levels is passed over. */
void top_levels_take(struct top_levels *levels, const char *line);

#endif
