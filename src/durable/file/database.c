/* SPDX-License-Identifier: MIT */
#include "durable/file/database.h"

#include "base/test_point.h"

#include <errno.h>
#include <stddef.h>

enum {
	/*
	 * How long a statement waits for a reader or writer of another process before it returns
	 * -EBUSY.
	 */
	BUSY_MS = 200,
};

#define COLUMNS "bucket, serial, place, due, kind, attempt, version, started, key, payload, crc"
#define MARKS "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"

static const char *const sql_texts[TWI_SQL_COUNT] = {
	[TWI_SQL_BEGIN] = "BEGIN IMMEDIATE",
	[TWI_SQL_BEGIN_READ] = "BEGIN",
	[TWI_SQL_COMMIT] = "COMMIT",
	[TWI_SQL_ROLLBACK] = "ROLLBACK",
	[TWI_SQL_DATA_VERSION] = "PRAGMA data_version",
	[TWI_SQL_META_GET] = "SELECT serial, epoch, clean, wall, crc FROM meta WHERE id = 1",
	[TWI_SQL_META_SET] = "UPDATE meta SET serial = ?1, epoch = ?2, clean = ?3, wall = ?4,"
			     " crc = ?5 WHERE id = 1",
	[TWI_SQL_KIND_ADD] = "INSERT INTO kind (id, name, crc) VALUES (?1, ?2, ?3)",
	[TWI_SQL_KIND_ALL] = "SELECT id, name, crc FROM kind ORDER BY id",
	[TWI_SQL_CLOCK_GET] = "SELECT boot, base, step, crc FROM clock WHERE id = 1",
	[TWI_SQL_CLOCK_SET] = "REPLACE INTO clock (id, boot, base, step, crc)"
			      " VALUES (1, ?1, ?2, ?3, ?4)",
	[TWI_SQL_PAUSED_SET] = "REPLACE INTO paused (kind, crc) VALUES (?1, ?2)",
	[TWI_SQL_PAUSED_DELETE] = "DELETE FROM paused WHERE kind = ?1",
	[TWI_SQL_PAUSED_ALL] = "SELECT kind, crc FROM paused ORDER BY kind",
	[TWI_SQL_TIMER_PUT] = "INSERT OR IGNORE INTO timer (" COLUMNS ") VALUES " MARKS,
	[TWI_SQL_TIMER_GET] = "SELECT " COLUMNS " FROM timer WHERE bucket = ?1 AND serial = ?2",
	[TWI_SQL_TIMER_DELETE] = "DELETE FROM timer WHERE bucket = ?1 AND serial = ?2",
	[TWI_SQL_TIMER_DELETE_PLAIN] = "DELETE FROM timer WHERE bucket = ?1 AND serial = ?2"
				       " AND place IS NULL AND key IS NULL",
	[TWI_SQL_TIMER_PLAIN] = "SELECT 1 FROM timer WHERE bucket = ?1 AND serial = ?2"
				" AND place IS NULL AND key IS NULL",
	[TWI_SQL_ENDED_ALL] = "SELECT number, place, serial, crc FROM ended",
	[TWI_SQL_ENDED_PUT] = "INSERT INTO ended (number, place, serial, crc)"
			      " VALUES (?1, ?2, ?3, ?4)",
	[TWI_SQL_ENDED_DELETE] = "DELETE FROM ended WHERE number = ?1",
	[TWI_SQL_NEAR_NEXT] = "SELECT min(first) FROM"
			      " (SELECT min(bucket) AS first FROM timer WHERE bucket >= ?1"
			      " UNION ALL SELECT min(bucket) FROM inbox WHERE bucket >= ?1)",
	[TWI_SQL_NEAR_MARKS] = "SELECT due, ifnull(place, bucket), serial, kind FROM timer"
			       " WHERE bucket = ?1 UNION ALL"
			       " SELECT due, ifnull(place, bucket), serial, kind FROM inbox"
			       " WHERE bucket = ?1",
	[TWI_SQL_INBOX_PUT] = "INSERT OR IGNORE INTO inbox (" COLUMNS ") VALUES " MARKS,
	[TWI_SQL_INBOX_GET] = "SELECT " COLUMNS " FROM inbox WHERE serial = ?1",
	[TWI_SQL_INBOX_DELETE] = "DELETE FROM inbox WHERE serial = ?1",
	[TWI_SQL_INBOX_DELETE_PLAIN] = "DELETE FROM inbox WHERE serial = ?1 AND bucket = ?2"
				       " AND key IS NULL",
	[TWI_SQL_INBOX_BOUNDS] = "SELECT count(*), min(serial), max(serial) FROM inbox",
	[TWI_SQL_INBOX_SLICE] = "SELECT max(serial) FROM"
				" (SELECT serial FROM inbox ORDER BY serial LIMIT ?1)",
	[TWI_SQL_INBOX_MOVE] = "INSERT INTO timer (" COLUMNS ") SELECT " COLUMNS
			       " FROM inbox WHERE serial <= ?1 ORDER BY bucket, serial",
	[TWI_SQL_INBOX_CUT] = "DELETE FROM inbox WHERE serial <= ?1",
	[TWI_SQL_MOVED_SET] = "REPLACE INTO moved (place, serial, bucket, crc)"
			      " VALUES (?1, ?2, ?3, ?4)",
	[TWI_SQL_MOVED_GET] = "SELECT bucket, crc FROM moved WHERE place = ?1 AND serial = ?2",
	[TWI_SQL_MOVED_DELETE] = "DELETE FROM moved WHERE place = ?1 AND serial = ?2",
	[TWI_SQL_KEY_PUT] = "INSERT INTO key (name, place, serial, crc) VALUES (?1, ?2, ?3, ?4)",
	[TWI_SQL_KEY_GET] = "SELECT place, serial, crc FROM key WHERE name = ?1",
	[TWI_SQL_KEY_DELETE] = "DELETE FROM key WHERE name = ?1",
	[TWI_SQL_DEAD_PUT] = "INSERT INTO dead (" COLUMNS ", birth, ended) VALUES"
			     " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
	[TWI_SQL_DEAD_GET] = "SELECT " COLUMNS " FROM dead WHERE birth = ?1 AND serial = ?2",
	[TWI_SQL_DEAD_DELETE] = "DELETE FROM dead WHERE birth = ?1 AND serial = ?2",
	[TWI_SQL_DEAD_RANGE] = "SELECT " COLUMNS " FROM dead WHERE (birth, serial) > (?1, ?2)"
			       " ORDER BY birth, serial LIMIT ?3",
	[TWI_SQL_DEAD_CUT_OLD] = "DELETE FROM dead WHERE (birth, serial) IN (SELECT birth, serial"
				 " FROM dead WHERE ended < ?1 ORDER BY ended LIMIT ?2)",
	[TWI_SQL_DEAD_CUT_MANY] =
		"DELETE FROM dead WHERE (birth, serial) IN (SELECT birth, serial FROM dead"
		" ORDER BY ended LIMIT min(?2, max(0, (SELECT count(*) FROM dead) - ?1)))",
};

static int error_of_io(int code)
{
	switch (code) {
	case SQLITE_IOERR_NOMEM:
		return -ENOMEM;
	case SQLITE_IOERR_SHMSIZE:
		/* The file -shm could not be made longer. */
		return -ENOSPC;
	case SQLITE_IOERR_CORRUPTFS:
	case SQLITE_IOERR_DATA:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

int twi_database_error(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return error_of_io(code);
	default:
		/*
		 * All other codes mean that the file is not whole: bad pages, a bad schema, or a
		 * row that a constraint refuses.
		 */
		return -EUCLEAN;
	}
}

int twi_database_execute(struct twi_database *database, const char *sql)
{
	return twi_database_error(sqlite3_exec(database->sqlite, sql, NULL, NULL, NULL));
}

int twi_database_number(struct twi_database *database, const char *sql, int64_t *ret)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(database->sqlite, sql, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	/* Each query of the callers has a row, unless the file is damaged. */
	return code == SQLITE_DONE ? -EUCLEAN : twi_database_error(code);
}

/*
 * Sets SQLite's options:
 * - wal_autocheckpoint 0: the store itself makes checkpoints, after the acknowledgements (log.h).
 * - mmap_size 0: with a mapped file, a read error would raise SIGBUS.
 * - cache_spill off: nothing is written before the commit.
 * - secure_delete off: Debian turns it on, which takes a tenth of the speed.
 * - cell_size_check on: SQLite reports an error for more kinds of damaged pages.
 * - trusted_schema off: the schema of a foreign file cannot run functions.
 */
static int configure(struct twi_database *database)
{
	sqlite3_extended_result_codes(database->sqlite, 1);
	sqlite3_busy_timeout(database->sqlite, BUSY_MS);
	sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(database->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return twi_database_execute(database, "PRAGMA trusted_schema = OFF;"
					      "PRAGMA cell_size_check = ON;"
					      "PRAGMA mmap_size = 0;"
					      "PRAGMA secure_delete = OFF;"
					      "PRAGMA cache_size = -8192;"
					      "PRAGMA cache_spill = OFF;"
					      "PRAGMA wal_autocheckpoint = 0;"
					      "PRAGMA synchronous = FULL;");
}

static int open_by(struct twi_database *database, const char *path, int access)
{
	int flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	int code = sqlite3_open_v2(path, &database->sqlite, flags, NULL);

	return code == SQLITE_OK ? configure(database) : twi_database_error(code);
}

int twi_database_open(struct twi_database *database, const char *path)
{
	return open_by(database, path, SQLITE_OPEN_READWRITE);
}

int twi_database_open_to_read(struct twi_database *database, const char *path)
{
	return open_by(database, path, SQLITE_OPEN_READONLY);
}

int twi_database_prepare(struct twi_database *database)
{
	for (int i = 0; i < TWI_SQL_COUNT; i++) {
		int code = sqlite3_prepare_v3(database->sqlite, sql_texts[i], -1,
					      SQLITE_PREPARE_PERSISTENT, &database->statements[i],
					      NULL);

		if (code != SQLITE_OK)
			return code == SQLITE_ERROR ? -EUCLEAN : twi_database_error(code);
	}
	return twi_database_number(database, "PRAGMA data_version", &database->data_version);
}

void twi_database_close(struct twi_database *database)
{
	for (int i = 0; i < TWI_SQL_COUNT; i++)
		sqlite3_finalize(database->statements[i]);
	sqlite3_close(database->sqlite);
	*database = (struct twi_database){0};
}

sqlite3_stmt *twi_database_statement(struct twi_database *database, enum twi_sql sql)
{
	sqlite3_reset(database->statements[sql]);
	return database->statements[sql];
}

int twi_database_step(sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	if (code == SQLITE_ROW)
		return 1;
	sqlite3_reset(statement);
	return twi_database_error(code);
}

int twi_database_run(struct twi_database *database, enum twi_sql sql)
{
	sqlite3_stmt *statement = database->statements[sql];
	int result = twi_database_step(statement);

	if (result == 1)
		sqlite3_reset(statement);
	return result == 1 ? 0 : result;
}

/*
 * Resets what was recorded about a transaction, after its end. The next transaction syncs again,
 * unless it begins unsynced.
 */
static void ended(struct twi_database *database)
{
	if (database->unsynced && twi_database_execute(database, "PRAGMA synchronous = FULL") != 0)
		database->frozen = -EIO;
	database->unsynced = false;
}

/*
 * Freezes the connection if another connection has written since the open. Inside a transaction no
 * other connection's write becomes visible. So one check after BEGIN is enough. Returns 0, -ESTALE
 * or an error.
 */
static int foreign_check(struct twi_database *database)
{
	sqlite3_stmt *statement = database->statements[TWI_SQL_DATA_VERSION];
	int64_t version = 0;
	int result = twi_database_step(statement);

	if (result == 1)
		version = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	if (result < 0)
		return result;
	if (version != database->data_version)
		database->frozen = -ESTALE;
	return database->frozen;
}

int twi_database_begin(struct twi_database *database)
{
	int result = database->frozen;

	if (result == 0)
		result = twi_database_run(database, TWI_SQL_BEGIN);
	if (result == 0) {
		result = foreign_check(database);
		if (result != 0)
			twi_database_rollback(database);
	}
	return result;
}

int twi_database_begin_unsynced(struct twi_database *database)
{
	int result = twi_database_execute(database, "PRAGMA synchronous = NORMAL");

	database->unsynced = true;
	if (result == 0)
		result = twi_database_begin(database);
	if (result != 0)
		ended(database);
	return result;
}

int twi_database_begin_read(struct twi_database *database)
{
	return twi_database_run(database, TWI_SQL_BEGIN_READ);
}

void twi_database_end_read(struct twi_database *database)
{
	if (twi_database_run(database, TWI_SQL_COMMIT) != 0)
		twi_database_rollback(database);
}

static void pages_count(struct twi_database *database)
{
	int pages = 0, most = 0;

	sqlite3_db_status(database->sqlite, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &most, 1);
	database->pages += (uint64_t)pages;
}

int twi_database_commit(struct twi_database *database)
{
	int result;

	TWI_TEST_POINT("file:committing");
	result = twi_database_run(database, TWI_SQL_COMMIT);
	pages_count(database);
	TWI_TEST_POINT("file:committed");
	if (result != 0 && result != -EBUSY && result != -ENOSPC)
		database->frozen = result;
	twi_database_rollback(database);
	return result;
}

void twi_database_rollback(struct twi_database *database)
{
	/* SQLite itself may have ended the transaction, and then there is nothing to roll back. */
	if (!sqlite3_get_autocommit(database->sqlite))
		(void)twi_database_run(database, TWI_SQL_ROLLBACK);
	ended(database);
}
