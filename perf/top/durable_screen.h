/* SPDX-License-Identifier: MIT */
/*
 * The screen of tickwheel-perf top --durable: figures in, lines of text out.
 */
#ifndef PERF_TOP_DURABLE_SCREEN_H
#define PERF_TOP_DURABLE_SCREEN_H

#include "top/page.h"

#include <stdint.h>
#include <tickwheel/durable_stats.h>

struct durable_view {
	const char *title;
	double up_s;
	/* Between the two readings of the counters. */
	double interval_s;
	struct tw_durable_stats before;
	struct tw_durable_stats now;
	/* Of the time in between. */
	struct tw_histogram commit;
	struct tw_histogram ack;
	struct tw_histogram lateness;
	uint64_t rss_bytes;
	/* Of one processor, in percent. */
	double cpu_percent;
};

/* As many lines as there are rows at most, none longer than there are columns. */
void durable_screen_draw(const struct durable_view *view, unsigned rows, unsigned columns,
			 struct top_text *ret_text);

#endif
