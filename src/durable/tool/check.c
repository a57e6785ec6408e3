/* SPDX-License-Identifier: MIT */
#include "durable/tool/check.h"

#include "durable/tool/print.h"
#include "durable/tool/progress.h"

#include <errno.h>
#include <string.h>

struct check {
	struct twi_tool_file *file;
	FILE *out;
	struct twi_tool_checked done;
	struct twi_tool_progress progress;
};

static const char *const table_names[TWI_TOOL_TABLES] = {
	[TWI_TOOL_TIMER] = "timer",
	[TWI_TOOL_INBOX] = "inbox",
	[TWI_TOOL_DEAD] = "dead",
};

static void defect(struct check *check, const char *what, struct tw_durable_id id, const char *text)
{
	char name[TWI_TOOL_TEXT];

	twi_tool_id_text(id, name);
	fprintf(check->out, "%s %s: %s\n", what, name, text);
	check->done.defects++;
}

/*
 * Looks a timer up. Returns 1 if it is found by its id and has this deadline, 0 if not, or an
 * error.
 */
static int found(struct check *check, const struct tw_durable_row *row)
{
	struct tw_durable_row there;
	int result = twi_timers_get(&check->file->timers, row->id, &there);

	if (result == -EUCLEAN)
		return 0;
	return result == 1 ? there.due_ns == row->due_ns : result;
}

/* Looks the key of a timer up. Returns 1 if the key leads to this timer, 0 if not, or an error. */
static int key_names(struct check *check, const struct tw_durable_row *row)
{
	struct tw_durable_id id;
	int result = twi_timers_key_get(&check->file->timers, row->key, row->key_bytes, &id);

	if (result == -EUCLEAN)
		return 0;
	return result == 1 ? id.place == row->id.place && id.serial == row->id.serial : result;
}

static int pending_check(struct check *check, enum twi_tool_table table,
			 const struct tw_durable_row *row)
{
	bool moved = twi_place(row->id) != twi_bucket(row->due_ns);
	int result = 1;

	if (moved || table == TWI_TOOL_INBOX)
		result = found(check, row);
	if (result == 0)
		defect(check, table_names[table], row->id, "is not found by its id");
	if (result >= 0 && row->key_bytes > 0) {
		result = key_names(check, row);
		if (result == 0)
			defect(check, table_names[table], row->id, "is not found by its key");
	}
	return result < 0 ? result : 0;
}

/*
 * Looks for a row in another table. Returns 1 if the statement finds a row of this place and
 * serial, 0 if not, or an error.
 */
static int elsewhere(struct check *check, enum twi_sql sql, const struct tw_durable_row *row)
{
	sqlite3_stmt *statement = twi_database_statement(&check->file->database, sql);
	int result;

	sqlite3_bind_int64(statement, 1, twi_place(row->id));
	sqlite3_bind_int64(statement, 2, twi_serial(row->id));
	result = twi_database_step(statement);
	sqlite3_reset(statement);
	return result;
}

static int twice_check(struct check *check, enum twi_tool_table table,
		       const struct tw_durable_row *row)
{
	int result = 0;

	if (table == TWI_TOOL_INBOX)
		result = elsewhere(check, TWI_SQL_TIMER_GET, row);
	else if (table == TWI_TOOL_DEAD)
		result = found(check, row);
	if (result == 1)
		defect(check, table_names[table], row->id, "is in the table timer too");
	return result < 0 ? result : 0;
}

static int row_check(void *to, const struct twi_tool_entry *entry)
{
	struct check *check = to;
	enum twi_tool_table table = entry->table;
	const struct tw_durable_row *row = &entry->row;
	int result;

	check->done.rows++;
	twi_tool_progress(&check->progress, check->done.rows);
	if (entry->error != 0) {
		defect(check, table_names[table], row->id, "is damaged");
		return 0;
	}
	if (twi_tool_kind(&check->file->kinds, row->kind) == NULL)
		defect(check, table_names[table], row->id, "is of a kind that has no name");
	if (twi_serial(row->id) >= check->file->meta.serial)
		defect(check, table_names[table], row->id, "has a serial that was not given out");
	result = twice_check(check, table, row);
	return result == 0 && table != TWI_TOOL_DEAD ? pending_check(check, table, row) : result;
}

/*
 * Finds the timer that a row of the table `moved` or `key` names. Returns 1 and the timer, 0 if
 * there is none, or an error.
 */
static int target(struct check *check, struct tw_durable_id id, struct tw_durable_row *ret)
{
	int result = twi_timers_get(&check->file->timers, id, ret);

	return result == -EUCLEAN ? 0 : result;
}

static int pointer_check(struct check *check, sqlite3_stmt *statement)
{
	struct tw_durable_id id = {(uint64_t)sqlite3_column_int64(statement, 0),
				   (uint64_t)sqlite3_column_int64(statement, 1)};
	struct tw_durable_row row;
	int result = target(check, id, &row);

	if (result == 0)
		defect(check, "moved", id, "names a timer that is not there");
	else if (result == 1 && twi_bucket(row.due_ns) == twi_place(id))
		defect(check, "moved", id, "names a timer that has not moved");
	return result < 0 ? result : 0;
}

static int key_check(struct check *check, sqlite3_stmt *statement)
{
	struct tw_durable_id id = {(uint64_t)sqlite3_column_int64(statement, 0),
				   (uint64_t)sqlite3_column_int64(statement, 1)};
	const void *key = sqlite3_column_blob(statement, 2);
	uint32_t bytes = (uint32_t)sqlite3_column_bytes(statement, 2);
	struct tw_durable_row row;
	int result = target(check, id, &row);

	if (result == 1 && (row.key_bytes != bytes || memcmp(row.key, key, bytes) != 0))
		result = 0;
	if (result == 0)
		defect(check, "key", id, "names a timer that does not have it");
	return result < 0 ? result : 0;
}

static int table_check(struct check *check, const char *sql,
		       int (*each)(struct check *check, sqlite3_stmt *statement))
{
	sqlite3_stmt *statement = NULL;
	int result = twi_database_error(
		sqlite3_prepare_v2(check->file->database.sqlite, sql, -1, &statement, NULL));

	if (result == 0)
		while ((result = twi_database_step(statement)) == 1) {
			result = each(check, statement);
			if (result != 0)
				break;
		}
	sqlite3_finalize(statement);
	return result;
}

static int page_check(struct check *check, sqlite3_stmt *statement)
{
	const char *text = (const char *)sqlite3_column_text(statement, 0);

	if (text == NULL || strcmp(text, "ok") == 0)
		return text == NULL ? -ENOMEM : 0;
	fprintf(check->out, "pages: %s\n", text);
	check->done.defects++;
	return 0;
}

int twi_tool_check(struct twi_tool_file *file, FILE *out, struct twi_tool_checked *ret)
{
	struct check check = {.file = file, .out = out};
	int result = twi_tool_progress_rows(&check.progress, file);

	if (result == 0)
		result = table_check(&check, "PRAGMA quick_check(20)", page_check);
	for (int table = 0; table < TWI_TOOL_TABLES && result == 0; table++)
		result = twi_tool_walk(file, (enum twi_tool_table)table, row_check, &check);
	if (result == 0)
		result = table_check(&check, "SELECT place, serial FROM moved", pointer_check);
	if (result == 0)
		result = table_check(&check, "SELECT place, serial, name FROM key", key_check);
	twi_tool_progress_end(&check.progress);
	*ret = check.done;
	return result;
}
