/* SPDX-License-Identifier: MIT */
/*
 * Shows the frames of tickwheel-perf top, one after the other. The caller decides what they
 * contain.
 */
#ifndef PERF_TOP_FRAMES_H
#define PERF_TOP_FRAMES_H

#include "harness/options.h"
#include "top/page.h"

struct top_frames {
	/*
	 * Takes the reading from which the first frame counts. Returns 0 or a negative errno value.
	 */
	int (*begin)(void *context);
	/* Takes the reading of the next frame. Returns 0 or a negative errno value. */
	int (*read)(void *context);
	/* Draws the last reading. */
	void (*draw)(void *context, unsigned rows, unsigned columns, struct top_text *ret_text);
	void *context;
};

/*
 * Shows frames until the user ends the program, or all frames are done. terminal_open must have
 * been called. Returns 0, or the error of a reading.
 */
int top_frames_show(const struct top_frames *frames, const struct options *options);

#endif
