/* SPDX-License-Identifier: MIT */
#include "durable/file/dead.h"

#include "base/test_point.h"

#include <errno.h>

enum {
	/* The numbers of the arguments that follow those of a row. */
	BIRTH = 12,
	ENDED,
};

static sqlite3_stmt *statement_of(struct twi_timers *timers, enum twi_sql sql,
				  struct tw_durable_id id)
{
	sqlite3_stmt *statement = twi_database_statement(timers->database, sql);

	sqlite3_bind_int64(statement, 1, twi_place(id));
	sqlite3_bind_int64(statement, 2, twi_serial(id));
	return statement;
}

int twi_dead_put(struct twi_timers *timers, const struct tw_durable_row *row, int64_t ended_ns)
{
	sqlite3_stmt *statement = twi_database_statement(timers->database, TWI_SQL_DEAD_PUT);

	twi_row_bind(statement, row);
	sqlite3_bind_int64(statement, BIRTH, twi_place(row->id));
	sqlite3_bind_int64(statement, ENDED, ended_ns);
	return twi_database_run(timers->database, TWI_SQL_DEAD_PUT);
}

int twi_dead_bury(struct twi_timers *timers, const struct tw_durable_row *want, int64_t now_ns)
{
	struct tw_durable_row row;
	int result = twi_timers_get(timers, want->id, &row);

	if (result != 1)
		return result;
	row.attempt = want->attempt;
	row.started = 0;
	if (twi_serial(row.id) > timers->known_last)
		timers->known_last = twi_serial(row.id);
	TWI_TEST_POINT("file:burying");
	result = twi_dead_put(timers, &row, now_ns);
	return result == 0 ? twi_timers_delete(timers, want->id) : result;
}

int twi_dead_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_DEAD_GET, id);
	struct tw_durable_row row;
	int result = twi_database_step(statement);

	if (result != 1)
		return result;
	result = twi_row_read(statement, &row);
	if (result == 0)
		result = twi_timers_keep(timers, &row);
	sqlite3_reset(statement);
	if (result != 0)
		return result;
	row.dead = 1;
	*ret = row;
	return 1;
}

int twi_dead_drop(struct twi_timers *timers, struct tw_durable_id id)
{
	int result;

	(void)statement_of(timers, TWI_SQL_DEAD_DELETE, id);
	result = twi_database_run(timers->database, TWI_SQL_DEAD_DELETE);
	return result < 0 ? result : sqlite3_changes(timers->database->sqlite) > 0;
}

int twi_dead_revive(struct twi_timers *timers, const struct tw_durable_row *want)
{
	struct tw_durable_row row;
	int result = twi_dead_get(timers, want->id, &row);

	if (result != 1)
		return result;
	row.due_ns = want->due_ns;
	row.attempt = row.started = row.key_bytes = row.dead = 0;
	row.key = NULL;
	TWI_TEST_POINT("file:reviving");
	result = twi_dead_drop(timers, want->id);
	/* Must come after the drop, because twi_timers_put refuses the id of a dead letter. */
	if (result == 1)
		result = twi_timers_put(timers, &row, false);
	if (result == 1)
		result = -EUCLEAN;
	return result < 0 ? result : 1;
}

static int64_t limit_of(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* Runs a statement that removes rows. Returns how many it has removed, or an error. */
static int cut(struct twi_timers *timers, enum twi_sql sql, int64_t bound, size_t max)
{
	sqlite3_stmt *statement = twi_database_statement(timers->database, sql);
	int result;

	sqlite3_bind_int64(statement, 1, bound);
	sqlite3_bind_int64(statement, 2, limit_of(max));
	result = twi_database_run(timers->database, sql);
	return result < 0 ? result : sqlite3_changes(timers->database->sqlite);
}

/*
 * Removes dead letters, and does not sync. After a power loss the file may have them again. That
 * does no harm: the next trim removes them again.
 */
int twi_dead_trim(struct twi_timers *timers, uint64_t most, int64_t ended_before_ns, size_t max)
{
	struct twi_database *database = timers->database;
	int result = twi_database_begin_unsynced(database), old, many;

	if (result != 0)
		return result;
	old = cut(timers, TWI_SQL_DEAD_CUT_OLD, ended_before_ns, max);
	many = old < 0 || (size_t)old >= max
		       ? 0
		       : cut(timers, TWI_SQL_DEAD_CUT_MANY, limit_of(most), max - (size_t)old);
	TWI_TEST_POINT("file:trimming");
	if (old < 0 || many < 0) {
		twi_database_rollback(database);
		return old < 0 ? old : many;
	}
	result = twi_database_commit(database);
	return result < 0 ? result : old + many;
}

int twi_dead_list(struct twi_timers *timers, struct tw_durable_id after, size_t most,
		  tw_durable_give *give, void *to)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_DEAD_RANGE, after);
	struct tw_durable_row row;
	int result;

	if (after.place == 0 && after.serial == 0)
		sqlite3_bind_int64(statement, 1, INT64_MIN);
	sqlite3_bind_int64(statement, 3, most > INT32_MAX ? INT32_MAX : (int64_t)most);
	while ((result = twi_database_step(statement)) == 1) {
		result = twi_row_read(statement, &row);
		row.dead = 1;
		if (result == 0)
			result = give(to, &row);
		if (result < 0)
			break;
	}
	sqlite3_reset(statement);
	return result < 0 ? result : 0;
}
