/* SPDX-License-Identifier: MIT */
#include "durable/tool/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
	EACH = 4096,
	WIDTH = 30,
};

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void twi_tool_progress_begin(struct twi_tool_progress *progress, const char *what, uint64_t total)
{
	*progress = (struct twi_tool_progress){
		.what = isatty(STDERR_FILENO) ? what : NULL,
		.total = total,
		.shown_s = now_s(),
	};
}

int twi_tool_progress_rows(struct twi_tool_progress *progress, struct twi_tool_file *file)
{
	twi_tool_progress_begin(progress, "rows", 0);
	return progress->what == NULL ? 0 : twi_tool_rows(file, &progress->total);
}

static void bar_show(const struct twi_tool_progress *progress, uint64_t count)
{
	static const char full[WIDTH + 1] = "##############################";
	static const char empty[WIDTH + 1] = "..............................";
	double done = (double)count / (double)progress->total;
	int part = done < 1 ? (int)(done * (double)WIDTH) : WIDTH;

	fprintf(stderr, "\r[%.*s%.*s] %3d %%  %" PRIu64 " of %" PRIu64 " %s", part, full,
		WIDTH - part, empty, part * 100 / WIDTH, count, progress->total, progress->what);
}

void twi_tool_progress(struct twi_tool_progress *progress, uint64_t count)
{
	if (progress->what == NULL || ++progress->calls % EACH != 0 || now_s() == progress->shown_s)
		return;
	progress->shown_s = now_s();
	progress->written = true;
	if (progress->total != 0)
		bar_show(progress, count);
	else
		fprintf(stderr, "\r%" PRIu64 " %s", count, progress->what);
}

void twi_tool_progress_end(struct twi_tool_progress *progress)
{
	if (progress->written)
		fputs("\r\033[K", stderr);
}
