/* SPDX-License-Identifier: MIT */
/*
 * A file of durable timers, open for reading. A process with timers may have the file open, too.
 * All reads return the state of the file at the moment when it was opened.
 */
#ifndef TWI_DURABLE_TOOL_FILE_H
#define TWI_DURABLE_TOOL_FILE_H

#include "durable/file/schema.h"
#include "durable/file/timers.h"
#include "durable/tool/kinds.h"

#include <stdbool.h>

struct twi_tool_file {
	struct twi_database database;
	struct twi_timers timers;
	struct twi_meta meta;
	struct twi_tool_kinds kinds;
};

/*
 * Opens a file for reading. Returns 0; -ENOENT; -EEXIST if it is not a file of durable timers;
 * -ENOTSUP if it has another version; -EUCLEAN if it is damaged; or another code.
 */
int twi_tool_open(struct twi_tool_file *file, const char *path);
void twi_tool_close(struct twi_tool_file *file);

/*
 * Checks the name of a new file. Returns -EEXIST if a file has this name. Also returns -EEXIST if
 * there is a log (PATH-wal) that is not empty, because SQLite would read the log as part of the new
 * file.
 */
int twi_tool_new(const char *path);

enum twi_tool_table {
	TWI_TOOL_TIMER,
	TWI_TOOL_INBOX,
	TWI_TOOL_DEAD,
	TWI_TOOL_TABLES,
	/* The timers of both tables, in the order of bucket and serial. */
	TWI_TOOL_PENDING = TWI_TOOL_TABLES,
	TWI_TOOL_WALKS,
};

/* A row that twi_tool_walk passes to its function. */
struct twi_tool_entry {
	enum twi_tool_table table;
	int error; /* 0, or -EUCLEAN if the row is damaged; then only its id is set */
	struct tw_durable_row row;
	int64_t ended_ns; /* the time when it became a dead letter */
};

/* Receives a row. A result other than 0 ends the walk. */
typedef int twi_tool_give(void *to, const struct twi_tool_entry *entry);

/*
 * Passes the rows of a table to `give`, in the order of the file, except timers whose end is noted.
 */
int twi_tool_walk(struct twi_tool_file *file, enum twi_tool_table table, twi_tool_give *give,
		  void *to);
/* Counts the rows of the tables, including timers whose end is noted. */
int twi_tool_rows(struct twi_tool_file *file, uint64_t *ret);

#endif
