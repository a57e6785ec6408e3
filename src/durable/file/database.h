/* SPDX-License-Identifier: MIT */
/*
 * The connection to SQLite: its settings, its statements, its errors.
 *
 * Errors. A transaction whose COMMIT said SQLITE_BUSY or SQLITE_FULL did not happen. After any other
 * failure of a COMMIT the file may hold it or not, and later frames in the log could be cut off
 * by a power loss. So the connection is frozen: it writes nothing more. Only a new open, which
 * writes the log again (log.h), may go on.
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
	int frozen;           /* a negative errno value, once the connection may not write */
	uint64_t pages;       /* written to the log since the last checkpoint */
	uint64_t pages_kept;  /* of the log then, if a reader kept it from starting again */
	bool unsynced;        /* the transaction that runs */
};

/* Opens a file that exists. -EUCLEAN if it is no database, or damaged. */
int twi_database_open(struct twi_database *database, const char *path);
/* The same, and no call can write to it. */
int twi_database_open_to_read(struct twi_database *database, const char *path);
/* After the tables exist. */
int twi_database_prepare(struct twi_database *database);
void twi_database_close(struct twi_database *database);

/* SQLite's code as a negative errno value; 0 for SQLITE_OK, ROW and DONE. */
int twi_database_error(int code);
int twi_database_execute(struct twi_database *database, const char *sql);
/* One number of the first row of a query. */
int twi_database_number(struct twi_database *database, const char *sql, int64_t *ret);

/* The statement, reset, with its old arguments. */
sqlite3_stmt *twi_database_statement(struct twi_database *database, enum twi_sql sql);
/* Steps: 1 a row, 0 done, or an error. The statement is reset unless there is a row. */
int twi_database_step(sqlite3_stmt *statement);
/* For a statement without rows: runs it with the arguments that were bound. */
int twi_database_run(struct twi_database *database, enum twi_sql sql);

/*
 * -EBUSY another process writes; -ESTALE another process has written: then the connection is
 * frozen. A begun transaction must be ended by one of the two.
 */
int twi_database_begin(struct twi_database *database);
/* The same, for a transaction whose loss by a power loss does no harm: its commit does not sync. */
int twi_database_begin_unsynced(struct twi_database *database);
/* -EBUSY, -ENOSPC: it did not happen. Else: frozen, see above. It is ended in each case. */
int twi_database_commit(struct twi_database *database);
void twi_database_rollback(struct twi_database *database);
/* Around many reads: each would otherwise lock and unlock the file, which takes a microsecond. */
int twi_database_begin_read(struct twi_database *database);
void twi_database_end_read(struct twi_database *database);

#endif
