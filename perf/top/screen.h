/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top. It turns figures into lines of text, and depends on no terminal
 * and no engine.
 */
#ifndef PERF_TOP_SCREEN_H
#define PERF_TOP_SCREEN_H

#include "top/page.h"

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum { TOP_LEVELS_MAX = 16 };

/*
 * Pending timeouts by level, as tw_engine_dump reported them `age_s` ago. If `known` is false,
 * there is no such report.
 */
struct top_levels {
	bool known;
	double age_s;
	unsigned count;
	uint64_t pending[TOP_LEVELS_MAX];
};

struct top_view {
	const char *title;
	double up_s;
	/* The time between the two readings of the counters. */
	double interval_s;
	uint64_t tick_ns;
	struct tw_stats before;
	struct tw_stats now;
	/* Histograms of the time between the readings. */
	struct tw_histogram lateness;
	struct tw_histogram duration;
	struct top_levels levels;
	uint64_t rss_bytes;
	/* CPU time, in percent of one processor. */
	double cpu_percent;
};

/* Draws at most `rows` lines, none longer than `columns`. */
void top_screen_draw(const struct top_view *view, unsigned rows, unsigned columns,
		     struct top_text *ret_text);

/* Takes one line of a dump. Ignores lines that are not about levels. */
void top_levels_take(struct top_levels *levels, const char *line);

#endif
