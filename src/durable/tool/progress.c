/* SPDX-License-Identifier: MIT */
#include "durable/tool/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
	EACH = 65536,
};

static int64_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void twi_tool_progress_begin(struct twi_tool_progress *progress, const char *what)
{
	*progress = (struct twi_tool_progress){
		.what = isatty(STDERR_FILENO) ? what : NULL,
		.shown_s = now_s(),
	};
}

void twi_tool_progress(struct twi_tool_progress *progress, uint64_t count)
{
	if (progress->what == NULL || count % EACH != 0 || now_s() == progress->shown_s)
		return;
	progress->shown_s = now_s();
	progress->written = 1;
	fprintf(stderr, "\r%" PRIu64 " %s", count, progress->what);
}

void twi_tool_progress_end(struct twi_tool_progress *progress)
{
	if (progress->written)
		fputs("\r\033[K", stderr);
}
