/* SPDX-License-Identifier: MIT */
/*
 * A file of durable timers, open for reading while a process may have it open too. All reads see
 * one moment, that of the open.
 */
#ifndef TWI_DURABLE_TOOL_FILE_H
#define TWI_DURABLE_TOOL_FILE_H

#include "durable/file/schema.h"
#include "durable/file/timers.h"

struct twi_tool_file {
	struct twi_database database;
	struct twi_timers timers;
	struct twi_meta meta;
	char **kinds; /* by number; NULL: no such kind */
	size_t kind_count;
};

/* -ENOENT; -EEXIST not a file of ours; -ENOTSUP another version; -EUCLEAN; or another code. */
int twi_tool_open(struct twi_tool_file *file, const char *path);
void twi_tool_close(struct twi_tool_file *file);

/* The name of a kind, or NULL. */
const char *twi_tool_kind(const struct twi_tool_file *file, uint32_t number);

enum twi_tool_table {
	TWI_TOOL_TIMER,
	TWI_TOOL_INBOX,
	TWI_TOOL_DEAD,
	TWI_TOOL_TABLES,
};

/*
 * Receives a row of a table. `error` is -EUCLEAN if the row is damaged; then only its id is set. A
 * result other than 0 ends the walk.
 */
typedef int twi_tool_row(void *to, enum twi_tool_table table, const struct tw_durable_row *row,
			 int error);

/* Gives the rows of a table in the order of the file, but for timers whose end is noted. */
int twi_tool_walk(struct twi_tool_file *file, enum twi_tool_table table, twi_tool_row *give,
		  void *to);

#endif
