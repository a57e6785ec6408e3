/* SPDX-License-Identifier: MIT */
/* The screen of tickwheel-perf top --durable. It turns figures into lines of text. */
#ifndef PERF_TOP_DURABLE_SCREEN_H
#define PERF_TOP_DURABLE_SCREEN_H

#include "top/page.h"

#include <stdint.h>
#include <tickwheel/durable_stats.h>

struct durable_view {
	const char *title;
	double up_s;
	/* The time between the two readings of the counters. */
	double interval_s;
	struct tw_durable_stats before;
	struct tw_durable_stats now;
	/* Histograms of the time between the readings. */
	struct tw_histogram commit;
	struct tw_histogram ack;
	struct tw_histogram lateness;
	uint64_t rss_bytes;
	/* CPU time, in percent of one processor. */
	double cpu_percent;
};

/* Draws at most `rows` lines, none longer than `columns`. */
void durable_screen_draw(const struct durable_view *view, unsigned rows, unsigned columns,
			 struct top_text *ret_text);

#endif
