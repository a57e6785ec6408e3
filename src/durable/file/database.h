/* SPDX-License-Identifier: MIT */
/*
 * The connection to SQLite: its settings, its statements, its errors.
 *
 * Errors. If COMMIT returns SQLITE_BUSY or SQLITE_FULL, the transaction did not happen. After any
 * other failure of COMMIT the file may or may not have the transaction. If this connection wrote
 * further transactions to the log, a power loss could cut them off. So the connection is frozen: it
 * writes nothing more. The file must be opened again, because only an open writes the log again
 * (log.h).
 */
#ifndef TWI_DURABLE_FILE_DATABASE_H
#define TWI_DURABLE_FILE_DATABASE_H

#include <sqlite3.h>

#include <stdbool.h>
#include <stdint.h>

enum twi_sql {
	TWI_SQL_BEGIN,
	TWI_SQL_BEGIN_READ,
	TWI_SQL_COMMIT,
	TWI_SQL_ROLLBACK,
	TWI_SQL_DATA_VERSION,
	TWI_SQL_META_GET,
	TWI_SQL_META_SET,
	TWI_SQL_KIND_ADD,
	TWI_SQL_KIND_ALL,
	TWI_SQL_CLOCK_GET,
	TWI_SQL_CLOCK_SET,
	TWI_SQL_PAUSED_SET,
	TWI_SQL_PAUSED_DELETE,
	TWI_SQL_PAUSED_ALL,
	TWI_SQL_TIMER_PUT,
	TWI_SQL_TIMER_GET,
	TWI_SQL_TIMER_DELETE,
	TWI_SQL_TIMER_DELETE_PLAIN,
	TWI_SQL_TIMER_PLAIN,
	TWI_SQL_ENDED_ALL,
	TWI_SQL_ENDED_PUT,
	TWI_SQL_ENDED_DELETE,
	TWI_SQL_NEAR_NEXT,
	TWI_SQL_NEAR_MARKS,
	TWI_SQL_INBOX_PUT,
	TWI_SQL_INBOX_GET,
	TWI_SQL_INBOX_DELETE,
	TWI_SQL_INBOX_DELETE_PLAIN,
	TWI_SQL_INBOX_BOUNDS,
	TWI_SQL_INBOX_SLICE,
	TWI_SQL_INBOX_MOVE,
	TWI_SQL_INBOX_CUT,
	TWI_SQL_MOVED_SET,
	TWI_SQL_MOVED_GET,
	TWI_SQL_MOVED_DELETE,
	TWI_SQL_KEY_PUT,
	TWI_SQL_KEY_GET,
	TWI_SQL_KEY_DELETE,
	TWI_SQL_DEAD_PUT,
	TWI_SQL_DEAD_GET,
	TWI_SQL_DEAD_DELETE,
	TWI_SQL_DEAD_RANGE,
	TWI_SQL_DEAD_CUT_OLD,
	TWI_SQL_DEAD_CUT_MANY,
	TWI_SQL_COUNT,
};

struct twi_database {
	sqlite3 *sqlite;
	sqlite3_stmt *statements[TWI_SQL_COUNT];
	int64_t data_version; /* changes when another connection writes */
	/* a negative errno value if the connection must not write any more, otherwise 0 */
	int frozen;
	uint64_t pages; /* pages written to the log since the last checkpoint */
	/* pages of the log at the last checkpoint, if a reader kept the log from starting again */
	uint64_t pages_kept;
	bool unsynced; /* the commit of the present transaction does not sync */
};

/* Opens an existing file. Returns -EUCLEAN if it is no database, or damaged. */
int twi_database_open(struct twi_database *database, const char *path);
/* Opens an existing file as twi_database_open does, but only for reading. */
int twi_database_open_to_read(struct twi_database *database, const char *path);
/* Prepares all statements. The tables must exist. */
int twi_database_prepare(struct twi_database *database);
void twi_database_close(struct twi_database *database);

/* Converts SQLite's code to a negative errno value, or to 0 for SQLITE_OK, ROW and DONE. */
int twi_database_error(int code);
int twi_database_execute(struct twi_database *database, const char *sql);
/* Runs a query, and sets *ret to the first number of its first row. */
int twi_database_number(struct twi_database *database, const char *sql, int64_t *ret);

/* Resets a statement and returns it. Its old arguments stay bound. */
sqlite3_stmt *twi_database_statement(struct twi_database *database, enum twi_sql sql);
/*
 * Steps a statement. Returns 1 if there is a row, 0 if the statement is done, or an error. Resets
 * the statement unless there is a row.
 */
int twi_database_step(sqlite3_stmt *statement);
/* Runs a statement without rows, with the arguments that were bound. */
int twi_database_run(struct twi_database *database, enum twi_sql sql);

/*
 * Begins a transaction, which the caller must commit or roll back. Returns -EBUSY if another
 * process writes. Returns -ESTALE if another process has written; then the connection is frozen.
 */
int twi_database_begin(struct twi_database *database);
/*
 * Begins a transaction that a power loss may undo without harm. It differs from twi_database_begin
 * only in its commit, which does not sync.
 */
int twi_database_begin_unsynced(struct twi_database *database);
/*
 * Commits the transaction. The transaction is over in each case: after -EBUSY or -ENOSPC it did not
 * happen; any other error freezes the connection (see above).
 */
int twi_database_commit(struct twi_database *database);
void twi_database_rollback(struct twi_database *database);
/*
 * Begin and end a read transaction around many reads. Otherwise each read would lock and unlock the
 * file, which takes a microsecond.
 */
int twi_database_begin_read(struct twi_database *database);
void twi_database_end_read(struct twi_database *database);

#endif
