/* SPDX-License-Identifier: MIT */
#include "durable/tool/file.h"

#include "durable/file/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int kind_note(void *to, uint32_t number, const char *name)
{
	struct twi_tool_kinds *kinds = to;

	/* The numbers of kinds begin at 1 and have no gaps. */
	if (number != kinds->count + (kinds->count == 0))
		return -EUCLEAN;
	return twi_tool_kinds_add(kinds, number, name, false);
}

static int paused_note(void *to, uint32_t number)
{
	struct twi_tool_kinds *kinds = to;

	if (number >= kinds->count)
		return -EUCLEAN;
	kinds->paused[number] = true;
	return 0;
}

static int kinds_read(struct twi_tool_file *file)
{
	int result = twi_kind_all(&file->database, kind_note, &file->kinds);

	return result == 0 ? twi_paused_all(&file->database, paused_note, &file->kinds) : result;
}

static int contents_read(struct twi_tool_file *file)
{
	int result = twi_database_prepare(&file->database);

	if (result == 0)
		result = twi_database_begin_read(&file->database);
	if (result == 0)
		result = twi_meta_get(&file->database, &file->meta);
	if (result == 0)
		result = kinds_read(file);
	/* INT64_MAX: any timer may have moved, whatever its id. */
	return result == 0 ? twi_timers_init(&file->timers, &file->database, INT64_MAX) : result;
}

int twi_tool_open(struct twi_tool_file *file, const char *path)
{
	int result;

	*file = (struct twi_tool_file){.kinds = {.names = NULL}};
	if (access(path, F_OK) != 0)
		return -errno;
	result = twi_database_open_to_read(&file->database, path);
	if (result == 0) {
		result = twi_schema_look(&file->database);
		if (result >= 0)
			result = result == TWI_SCHEMA_VERSION ? 0
				 : result == 0                ? -EEXIST
							      : -ENOTSUP;
	}
	if (result == 0)
		result = contents_read(file);
	if (result != 0)
		twi_tool_close(file);
	return result;
}

void twi_tool_close(struct twi_tool_file *file)
{
	if (file->timers.database != NULL)
		twi_timers_done(&file->timers);
	if (file->database.sqlite != NULL)
		twi_database_close(&file->database);
	twi_tool_kinds_free(&file->kinds);
	*file = (struct twi_tool_file){.kinds = {.names = NULL}};
}

int twi_tool_new(const char *path)
{
	char *log = twi_files_name(path, "-wal");
	struct stat status;
	int result = 0;

	if (log == NULL)
		return -ENOMEM;
	if (lstat(path, &status) == 0 || (lstat(log, &status) == 0 && status.st_size > 0))
		result = -EEXIST;
	free(log);
	return result;
}

#define COLUMNS "bucket, serial, place, due, kind, attempt, version, started, key, payload, crc"

enum {
	ENDED = 11, /* the number of the column that follows those of a row */
};

static const char *const walk_texts[TWI_TOOL_WALKS] = {
	[TWI_TOOL_TIMER] = "SELECT " COLUMNS " FROM timer",
	[TWI_TOOL_INBOX] = "SELECT " COLUMNS " FROM inbox",
	[TWI_TOOL_DEAD] = "SELECT " COLUMNS ", ended FROM dead",
	[TWI_TOOL_PENDING] = "SELECT " COLUMNS " FROM timer UNION ALL SELECT " COLUMNS
			     " FROM inbox ORDER BY bucket, serial, place",
};

static int row_give(struct twi_tool_file *file, sqlite3_stmt *statement, enum twi_tool_table table,
		    twi_tool_give *give, void *to)
{
	struct twi_tool_entry entry = {.table = table};
	struct tw_durable_row *row = &entry.row;
	int64_t bucket = sqlite3_column_int64(statement, 0);

	entry.error = twi_row_read(statement, row);
	if (entry.error != 0)
		row->id = (struct tw_durable_id){(uint64_t)bucket,
						 (uint64_t)sqlite3_column_int64(statement, 1)};
	else if (table == TWI_TOOL_DEAD)
		entry.ended_ns = sqlite3_column_int64(statement, ENDED);
	/* Leaves out timers whose end is noted. No row of the inbox has a noted end. */
	else if (row->id.place == (uint64_t)bucket &&
		 twi_ends_have(&file->timers.ends, bucket, twi_serial(row->id)))
		return 0;
	row->dead = table == TWI_TOOL_DEAD;
	return give(to, &entry);
}

int twi_tool_walk(struct twi_tool_file *file, enum twi_tool_table table, twi_tool_give *give,
		  void *to)
{
	sqlite3_stmt *statement = NULL;
	int result = twi_database_error(
		sqlite3_prepare_v2(file->database.sqlite, walk_texts[table], -1, &statement, NULL));

	if (result == 0)
		while ((result = twi_database_step(statement)) == 1) {
			result = row_give(file, statement, table, give, to);
			if (result != 0)
				break;
		}
	sqlite3_finalize(statement);
	return result;
}

int twi_tool_rows(struct twi_tool_file *file, uint64_t *ret)
{
	int64_t rows = 0;
	int result = twi_database_number(&file->database,
					 "SELECT (SELECT count(*) FROM timer) + (SELECT count(*) "
					 "FROM inbox) + (SELECT count(*) FROM dead)",
					 &rows);

	*ret = (uint64_t)rows;
	return result;
}
