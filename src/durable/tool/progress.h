/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on the terminal, for work that takes longer than a second. Without a terminal
 * nothing is written.
 */
#ifndef TWI_DURABLE_TOOL_PROGRESS_H
#define TWI_DURABLE_TOOL_PROGRESS_H

#include "durable/tool/file.h"

struct twi_tool_progress {
	const char *what; /* name of the work, or NULL if there is no terminal */
	uint64_t total;   /* 0 if the total is unknown; then there is a count and no bar */
	unsigned calls;
	int64_t shown_s; /* the time when the bar was written last, or the work began */
	bool written;
};

void twi_tool_progress_begin(struct twi_tool_progress *progress, const char *what, uint64_t total);
/* Begins a bar for all rows of a file. Counts the rows only if there is a terminal. */
int twi_tool_progress_rows(struct twi_tool_progress *progress, struct twi_tool_file *file);
/* Shows that `count` pieces of work are done. Looks at the clock only in each 4,096th call. */
void twi_tool_progress(struct twi_tool_progress *progress, uint64_t count);
/* Clears the line. */
void twi_tool_progress_end(struct twi_tool_progress *progress);

#endif
