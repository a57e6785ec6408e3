/* SPDX-License-Identifier: MIT */
/* A bar on the terminal, for what takes longer than a second. Without a terminal: nothing. */
#ifndef TWI_DURABLE_TOOL_PROGRESS_H
#define TWI_DURABLE_TOOL_PROGRESS_H

#include "durable/tool/file.h"

struct twi_tool_progress {
	const char *what; /* NULL: there is no terminal */
	uint64_t total;   /* 0: unknown, and then there is a count and no bar */
	unsigned calls;
	int64_t shown_s; /* when it was written last, or the beginning */
	bool written;
};

void twi_tool_progress_begin(struct twi_tool_progress *progress, const char *what, uint64_t total);
/* The same for all rows of a file, which it counts if there is a terminal. */
int twi_tool_progress_rows(struct twi_tool_progress *progress, struct twi_tool_file *file);
/* Looks at the time at each 4,096th call. */
void twi_tool_progress(struct twi_tool_progress *progress, uint64_t count);
/* Clears the line. */
void twi_tool_progress_end(struct twi_tool_progress *progress);

#endif
