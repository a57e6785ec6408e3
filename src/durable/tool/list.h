/* SPDX-License-Identifier: MIT */
/*
 * The commands that show what a file holds. They return 0, -ENOENT if nothing was found, or a code.
 */
#ifndef TWI_DURABLE_TOOL_LIST_H
#define TWI_DURABLE_TOOL_LIST_H

#include "durable/tool/file.h"

#include <stdbool.h>
#include <stdio.h>

/* The options of the output. */
struct twi_tool_output {
	FILE *out;
	bool json;
	size_t limit;
	const char *kind; /* name of the wanted kind, or NULL for all kinds */
};

/*
 * Counts pending timers by kind and hour, then dead letters by kind. Then prints the paused kinds.
 */
int twi_tool_count(struct twi_tool_file *file, const struct twi_tool_output *output);
/* Prints the next timers, in order of deadline. */
int twi_tool_list(struct twi_tool_file *file, const struct twi_tool_output *output);
/* Prints dead letters, in the order of their ids. */
int twi_tool_dead(struct twi_tool_file *file, const struct twi_tool_output *output);
/* Prints a timer or a dead letter. */
int twi_tool_show(struct twi_tool_file *file, const struct twi_tool_output *output,
		  struct tw_durable_id id);
int twi_tool_find(struct twi_tool_file *file, const struct twi_tool_output *output,
		  const char *key);

#endif
