/* SPDX-License-Identifier: MIT */
#include "durable/file/log.h"

#include "base/test_point.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* SQLite's file layer writes less than 128 KiB at once. */
	PIECE = 64 << 10,
	/* The bytes of a page in the log, with its header. */
	FRAME = 4096 + 24,
};

/* Returns the log file of SQLite's own file layer, or NULL if SQLite has not opened it yet. */
static sqlite3_file *log_file(struct twi_database *database)
{
	sqlite3_file *file = NULL;

	sqlite3_file_control(database->sqlite, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
	return file != NULL && file->pMethods != NULL ? file : NULL;
}

static int64_t log_size(sqlite3_file *file)
{
	sqlite3_int64 size = 0;

	return file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : -EIO;
}

static int rewrite_pieces(sqlite3_file *file, int64_t size, unsigned char *piece)
{
	int code = SQLITE_OK;

	for (int64_t at = 0; at < size && code == SQLITE_OK; at += PIECE) {
		int count = (int)(size - at < PIECE ? size - at : PIECE);

		code = file->pMethods->xRead(file, piece, count, at);
		if (code == SQLITE_OK)
			code = file->pMethods->xWrite(file, piece, count, at);
	}
	if (code == SQLITE_OK)
		code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	return twi_database_error(code);
}

static int rewrite(sqlite3_file *file)
{
	int64_t size = log_size(file);
	unsigned char *piece;
	int result;

	if (size <= 0)
		return (int)size;
	piece = malloc(PIECE);
	if (piece == NULL)
		return -ENOMEM;
	result = rewrite_pieces(file, size, piece);
	free(piece);
	return result;
}

/*
 * Writes the log again under SQLite's writer lock, so that no other process appends to the log, or
 * restarts it, meanwhile.
 */
static int rewrite_locked(struct twi_database *database)
{
	int result = twi_database_execute(database, "BEGIN IMMEDIATE");
	sqlite3_file *file;

	if (result != 0)
		return result;
	file = log_file(database);
	if (file != NULL)
		result = rewrite(file);
	twi_database_execute(database, "ROLLBACK");
	return result;
}

/*
 * Copies the log into the database. If a part was not copied, the log cannot start again, and its
 * number of pages is recorded.
 */
static int checkpoint(struct twi_database *database, int mode)
{
	int pages = 0, copied = 0;
	int code = sqlite3_wal_checkpoint_v2(database->sqlite, "main", mode, &pages, &copied);

	if (code == SQLITE_OK)
		database->pages_kept = pages > copied ? (uint64_t)pages : 0;
	return twi_database_error(code);
}

int twi_log_settle(struct twi_database *database)
{
	int result = rewrite_locked(database);

	TWI_TEST_POINT("file:rewritten");
	if (result == 0)
		result = checkpoint(database, SQLITE_CHECKPOINT_TRUNCATE);
	TWI_TEST_POINT("file:settled");
	return result;
}

int twi_log_checkpoint(struct twi_database *database)
{
	int result = database->frozen;

	if (result != 0)
		return result;
	TWI_TEST_POINT("file:checkpoint");
	result = checkpoint(database, SQLITE_CHECKPOINT_PASSIVE);
	TWI_TEST_POINT("file:checkpointed");
	database->pages = 0;
	if (result != 0 && result != -EBUSY && result != -ENOSPC)
		database->frozen = result;
	return result;
}

uint64_t twi_log_bytes(struct twi_database *database)
{
	if (database->pages_kept != 0)
		(void)twi_log_checkpoint(database);
	return (database->pages_kept + database->pages) * FRAME;
}
