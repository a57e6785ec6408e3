/* SPDX-License-Identifier: MIT */
/* A count on the terminal, for what takes longer than a second. Without a terminal: nothing. */
#ifndef TWI_DURABLE_TOOL_PROGRESS_H
#define TWI_DURABLE_TOOL_PROGRESS_H

#include <stdint.h>

struct twi_tool_progress {
	const char *what; /* NULL: there is no terminal */
	int64_t shown_s;  /* when the count was written last, or the beginning */
	int written;
};

void twi_tool_progress_begin(struct twi_tool_progress *progress, const char *what);
/* Looks at the time at each 65,536th count. */
void twi_tool_progress(struct twi_tool_progress *progress, uint64_t count);
/* Clears the line. */
void twi_tool_progress_end(struct twi_tool_progress *progress);

#endif
