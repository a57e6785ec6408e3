/* SPDX-License-Identifier: MIT */
/* Shows the frames of tickwheel-perf top at regular intervals. */
#include "top/frames.h"

#include "harness/measure.h"
#include "top/terminal.h"

#define NS_PER_MS INT64_C(1000000)

enum { INTERVAL_MS = 1000 };

static void draw(const struct top_frames *frames)
{
	static struct top_text text;
	unsigned rows, columns;

	terminal_size(&rows, &columns);
	frames->draw(frames->context, rows, columns, &text);
	terminal_show(&text);
}

static int frame(const struct top_frames *frames)
{
	int error = frames->read(frames->context);

	if (!error)
		draw(frames);
	return error;
}

/*
 * Waits until `until_ns`. If the window changes its size and a frame has been drawn (`drawn`),
 * draws that frame again. Returns false if the program must end.
 */
static bool rest(const struct top_frames *frames, int64_t until_ns, bool drawn)
{
	while (terminal_wait(until_ns)) {
		if (measure_now_ns() >= until_ns)
			return true;
		if (drawn)
			draw(frames);
	}
	return false;
}

int top_frames_show(const struct top_frames *frames, const struct options *options)
{
	int64_t interval_ns =
		(options->interval_ms ? options->interval_ms : INTERVAL_MS) * NS_PER_MS;
	int64_t next_ns = measure_now_ns() + interval_ns;
	unsigned drawn = 0;
	int error = frames->begin(frames->context);

	while (!error && rest(frames, next_ns, drawn > 0)) {
		error = frame(frames);
		if (++drawn == options->frames)
			break;
		next_ns += interval_ns;
		/*
		 * If the program was stopped for a while, it leaves out the frames that it has
		 * missed.
		 */
		if (next_ns < measure_now_ns())
			next_ns = measure_now_ns() + interval_ns;
	}
	return error;
}
