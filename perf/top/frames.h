/* SPDX-License-Identifier: MIT */
/*
 * The frames of tickwheel-perf top, one after the other. What is in them is the caller's.
 */
#ifndef PERF_TOP_FRAMES_H
#define PERF_TOP_FRAMES_H

#include "harness/options.h"
#include "top/page.h"

struct top_frames {
	/* The reading that the first frame is compared with. Returns 0 or a negative errno value. */
	int (*begin)(void *context);
	/* The reading of the next frame. Returns the same. */
	int (*read)(void *context);
	/* Draws what was read last. */
	void (*draw)(void *context, unsigned rows, unsigned columns, struct top_text *ret_text);
	void *context;
};

/* After terminal_open. Returns when the user wants to end, or the frames are done: 0, or an error of theirs. */
int top_frames_show(const struct top_frames *frames, const struct options *options);

#endif
