/* SPDX-License-Identifier: MIT */
#include "durable/file/timers.h"

#include "durable/file/crc.h"

#include "base/test_point.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static sqlite3_stmt *statement_of(struct twi_timers *timers, enum twi_sql sql)
{
	return twi_database_statement(timers->database, sql);
}

/*
 * Runs a statement with one or two numbers. Returns 1 if it changed a row, 0 if not, or an error.
 */
static int change_by(struct twi_timers *timers, enum twi_sql sql, int64_t first, int64_t second)
{
	sqlite3_stmt *statement = statement_of(timers, sql);
	int result;

	sqlite3_bind_int64(statement, 1, first);
	if (sqlite3_bind_parameter_count(statement) > 1)
		sqlite3_bind_int64(statement, 2, second);
	result = twi_database_run(timers->database, sql);
	return result == 0 ? sqlite3_changes(timers->database->sqlite) > 0 : result;
}

static int inbox_refresh(struct twi_timers *timers)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_INBOX_BOUNDS);
	int result = twi_database_step(statement);

	if (result <= 0)
		return result;
	timers->inbox_rows = sqlite3_column_int64(statement, 0);
	timers->inbox_first = sqlite3_column_int64(statement, 1);
	timers->inbox_last = sqlite3_column_int64(statement, 2);
	sqlite3_reset(statement);
	return 0;
}

int twi_timers_refresh(struct twi_timers *timers)
{
	int result = inbox_refresh(timers);

	return result == 0 ? twi_ends_read(&timers->ends) : result;
}

int twi_timers_init(struct twi_timers *timers, struct twi_database *database, int64_t known_last)
{
	*timers = (struct twi_timers){
		.database = database,
		.ends = {.database = database, .now_bucket = INT64_MIN / 2},
		.known_last = known_last,
	};
	return twi_timers_refresh(timers);
}

void twi_timers_done(struct twi_timers *timers)
{
	twi_ends_done(&timers->ends);
	twi_plans_end(&timers->plans);
	free(timers->copy);
	timers->copy = NULL;
}

/*
 * Returns whether the inbox may have a serial. Most timers that end have left the inbox, and this
 * check saves a query for them.
 */
static bool inbox_may_have(const struct twi_timers *timers, int64_t serial)
{
	return timers->inbox_rows > 0 && serial >= timers->inbox_first &&
	       serial <= timers->inbox_last;
}

static void inbox_added(struct twi_timers *timers, int64_t serial)
{
	if (timers->inbox_rows == 0)
		timers->inbox_first = timers->inbox_last = serial;
	if (serial < timers->inbox_first)
		timers->inbox_first = serial;
	if (serial > timers->inbox_last)
		timers->inbox_last = serial;
	timers->inbox_rows++;
}

static int key_put(struct twi_timers *timers, const struct tw_durable_row *row)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_KEY_PUT);
	uint32_t crc = twi_crc32c_numbers(twi_place(row->id), twi_serial(row->id), row->key_bytes);

	sqlite3_bind_blob(statement, 1, row->key, (int)row->key_bytes, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, twi_place(row->id));
	sqlite3_bind_int64(statement, 3, twi_serial(row->id));
	sqlite3_bind_int64(statement, 4, (int32_t)twi_crc32c(crc, row->key, row->key_bytes));
	return twi_database_run(timers->database, TWI_SQL_KEY_PUT);
}

int twi_timers_key_get(struct twi_timers *timers, const void *key, uint32_t bytes,
		       struct tw_durable_id *ret)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_KEY_GET);
	int64_t place, serial;
	int result;
	uint32_t crc;

	sqlite3_bind_blob(statement, 1, key, (int)bytes, SQLITE_STATIC);
	result = twi_database_step(statement);
	if (result <= 0)
		return result;
	place = sqlite3_column_int64(statement, 0);
	serial = sqlite3_column_int64(statement, 1);
	crc = twi_crc32c(twi_crc32c_numbers(place, serial, bytes), key, bytes);
	result = sqlite3_column_int64(statement, 2) == (int32_t)crc ? 1 : -EUCLEAN;
	sqlite3_reset(statement);
	if (result == 1)
		*ret = (struct tw_durable_id){(uint64_t)place, (uint64_t)serial};
	return result;
}

static int key_delete(struct twi_timers *timers, const struct tw_durable_row *row)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_KEY_DELETE);

	if (row->key_bytes == 0)
		return 0;
	sqlite3_bind_blob(statement, 1, row->key, (int)row->key_bytes, SQLITE_STATIC);
	return twi_database_run(timers->database, TWI_SQL_KEY_DELETE);
}

static int pointer_set(struct twi_timers *timers, struct tw_durable_id id, int64_t bucket)
{
	int64_t place = twi_place(id), serial = twi_serial(id);
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_MOVED_SET);

	TWI_TEST_POINT("file:pointing");
	sqlite3_bind_int64(statement, 1, place);
	sqlite3_bind_int64(statement, 2, serial);
	sqlite3_bind_int64(statement, 3, bucket);
	sqlite3_bind_int64(statement, 4, (int32_t)twi_crc32c_numbers(place, serial, bucket));
	return twi_database_run(timers->database, TWI_SQL_MOVED_SET);
}

/*
 * Finds the pointer of a timer. Returns 1 and the timer's present bucket if the timer has left the
 * bucket of its id, 0 if it has not, or an error.
 */
static int pointer_get(struct twi_timers *timers, struct tw_durable_id id, int64_t *ret_bucket)
{
	int64_t place = twi_place(id), serial = twi_serial(id);
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_MOVED_GET);
	int64_t bucket;
	int result;

	sqlite3_bind_int64(statement, 1, place);
	sqlite3_bind_int64(statement, 2, serial);
	result = twi_database_step(statement);
	if (result <= 0)
		return result;
	bucket = sqlite3_column_int64(statement, 0);
	if (sqlite3_column_int64(statement, 1) !=
	    (int32_t)twi_crc32c_numbers(place, serial, bucket))
		result = -EUCLEAN;
	sqlite3_reset(statement);
	*ret_bucket = bucket;
	return result;
}

/*
 * Puts a row into a table. Returns 0 if it was put, 1 if there is a row with this primary key,
 * which stays, or an error.
 */
static int row_put(struct twi_timers *timers, const struct tw_durable_row *row, enum twi_sql sql)
{
	const struct twi_mark mark = {row->due_ns, twi_place(row->id), twi_serial(row->id),
				      row->kind};
	int result;

	twi_row_bind(statement_of(timers, sql), row);
	result = twi_database_run(timers->database, sql);
	if (result < 0)
		return result;
	if (sqlite3_changes(timers->database->sqlite) == 0)
		return 1;
	twi_plans_add(&timers->plans, twi_bucket(row->due_ns), &mark);
	return 0;
}

/*
 * Records the serial of a timer that has moved or changed, because a put of its id must look for it
 * (may_be_taken).
 */
static void known_add(struct twi_timers *timers, struct tw_durable_id id)
{
	if (twi_serial(id) > timers->known_last)
		timers->known_last = twi_serial(id);
}

/*
 * Returns whether a query must look for a timer or dead letter with the id of a new row. Most ids
 * are new, and the query takes half as long as the insert. `elsewhere`: the new row does not go to
 * the bucket of its id in `timer`. If it goes there, the insert itself finds a row with this id in
 * that bucket.
 */
static bool may_be_taken(const struct twi_timers *timers, int64_t serial, bool elsewhere)
{
	return serial <= timers->known_last || inbox_may_have(timers, serial) ||
	       (elsewhere && serial <= timers->put_last);
}

/* Looks an id up. Returns 1 if the statement has a row for it, 0 if not, or an error. */
static int id_look(struct twi_timers *timers, enum twi_sql sql, struct tw_durable_id id)
{
	sqlite3_stmt *statement = statement_of(timers, sql);
	int result;

	sqlite3_bind_int64(statement, 1, twi_place(id));
	sqlite3_bind_int64(statement, 2, twi_serial(id));
	result = twi_database_step(statement);
	sqlite3_reset(statement);
	return result;
}

static int taken(struct twi_timers *timers, struct tw_durable_id id)
{
	struct tw_durable_row row;
	int result = twi_timers_get(timers, id, &row);

	return result != 0 ? result : id_look(timers, TWI_SQL_DEAD_GET, id);
}

static void put_note(struct twi_timers *timers, struct tw_durable_id id, bool moved, bool first)
{
	if (twi_serial(id) > timers->put_last)
		timers->put_last = twi_serial(id);
	if (moved)
		known_add(timers, id);
	if (first)
		inbox_added(timers, twi_serial(id));
}

int twi_timers_put(struct twi_timers *timers, const struct tw_durable_row *row, bool inbox)
{
	int64_t bucket = twi_bucket(row->due_ns);
	bool moved = bucket != twi_place(row->id);
	bool first = inbox && !moved;
	int result = 0;

	if (twi_ends_have(&timers->ends, twi_place(row->id), twi_serial(row->id)))
		result = twi_ends_settle(&timers->ends, twi_place(row->id), twi_serial(row->id));
	if (result == 0 && may_be_taken(timers, twi_serial(row->id), moved || first))
		result = taken(timers, row->id);
	if (result == 0)
		result = row_put(timers, row, first ? TWI_SQL_INBOX_PUT : TWI_SQL_TIMER_PUT);
	if (result != 0)
		return result;
	put_note(timers, row->id, moved, first);
	if (moved)
		result = pointer_set(timers, row->id, bucket);
	return result == 0 && row->key_bytes > 0 ? key_put(timers, row) : result;
}

int twi_timers_keep(struct twi_timers *timers, struct tw_durable_row *row)
{
	size_t need = (size_t)row->key_bytes + row->payload_bytes;

	if (need > timers->copy_room) {
		unsigned char *copy = realloc(timers->copy, 2 * need);

		if (copy == NULL)
			return -ENOMEM;
		timers->copy = copy;
		timers->copy_room = 2 * need;
	}
	if (row->key_bytes > 0)
		row->key = memcpy(timers->copy, row->key, row->key_bytes);
	if (row->payload_bytes > 0)
		row->payload =
			memcpy(timers->copy + row->key_bytes, row->payload, row->payload_bytes);
	return 0;
}

/* Reads the row of one table. Returns 1 and the row, 0 if there is none, or an error. */
static int row_get(struct twi_timers *timers, enum twi_sql sql, int64_t first, int64_t second,
		   struct tw_durable_row *ret)
{
	sqlite3_stmt *statement = statement_of(timers, sql);
	int result;

	sqlite3_bind_int64(statement, 1, first);
	if (sql == TWI_SQL_TIMER_GET)
		sqlite3_bind_int64(statement, 2, second);
	result = twi_database_step(statement);
	if (result <= 0)
		return result;
	result = twi_row_read(statement, ret);
	if (result == 0)
		result = twi_timers_keep(timers, ret);
	sqlite3_reset(statement);
	return result == 0 ? 1 : result;
}

int twi_timers_get_at(struct twi_timers *timers, int64_t bucket, int64_t serial,
		      struct tw_durable_row *ret)
{
	int result = 0;

	if (inbox_may_have(timers, serial))
		result = row_get(timers, TWI_SQL_INBOX_GET, serial, 0, ret);
	if (result == 0 && !twi_ends_have(&timers->ends, bucket, serial))
		result = row_get(timers, TWI_SQL_TIMER_GET, bucket, serial, ret);
	return result;
}

int twi_timers_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret)
{
	struct tw_durable_row row;
	int64_t bucket;
	int result = twi_timers_get_at(timers, twi_place(id), twi_serial(id), &row);

	if (result == 0) {
		result = pointer_get(timers, id, &bucket);
		if (result == 1) {
			result = row_get(timers, TWI_SQL_TIMER_GET, bucket, twi_serial(id), &row);
			/* The pointer row names a bucket that does not have the timer. */
			result = result == 0 ? -EUCLEAN : result;
		}
	}
	if (result != 1)
		return result;
	/*
	 * The row has the same serial, but another id. So the caller's id was made up, or belongs
	 * to another file.
	 */
	if (row.id.place != id.place)
		return 0;
	*ret = row;
	return 1;
}

/* Deletes a row from the table where it lies, but not its pointer or its key. */
static int row_delete(struct twi_timers *timers, const struct tw_durable_row *row)
{
	int result = 0;

	if (inbox_may_have(timers, twi_serial(row->id))) {
		result = change_by(timers, TWI_SQL_INBOX_DELETE, twi_serial(row->id), 0);
		timers->inbox_rows -= result == 1;
	}
	if (result == 0)
		result = change_by(timers, TWI_SQL_TIMER_DELETE, twi_bucket(row->due_ns),
				   twi_serial(row->id));
	/* The row was there when it was read, so the file is damaged. */
	return result == 0 ? -EUCLEAN : result;
}

int twi_timers_change(struct twi_timers *timers, const struct tw_durable_row *old,
		      const struct tw_durable_row *row)
{
	int64_t from = twi_bucket(old->due_ns), to = twi_bucket(row->due_ns);
	int result;

	TWI_TEST_POINT("file:moving");
	known_add(timers, row->id);
	result = row_delete(timers, old);
	if (result == 1)
		result = row_put(timers, row, TWI_SQL_TIMER_PUT);
	if (result != 0 || from == to)
		return result;
	if (to != twi_place(row->id))
		return pointer_set(timers, row->id, to);
	result = change_by(timers, TWI_SQL_MOVED_DELETE, to, twi_serial(row->id));
	return result < 0 ? result : 0;
}

/* Ends a timer of the table `timer`: notes the end, or deletes the row. */
static int timer_delete_plain(struct twi_timers *timers, struct tw_durable_id id)
{
	struct twi_ends *ends = &timers->ends;
	int result;

	if (twi_ends_wanted(ends, twi_place(id))) {
		result = id_look(timers, TWI_SQL_TIMER_PLAIN, id);
		if (result == 1)
			result = twi_ends_add(ends, twi_place(id), twi_serial(id));
		if (result != 0)
			return result;
	}
	return change_by(timers, TWI_SQL_TIMER_DELETE_PLAIN, twi_place(id), twi_serial(id));
}

/*
 * Ends a timer that has no key and lies in the bucket of its id, like most timers. Returns 1 if
 * done, 0 if the timer is not of this sort, or an error.
 */
static int delete_plain(struct twi_timers *timers, struct tw_durable_id id)
{
	int result = 0;

	if (inbox_may_have(timers, twi_serial(id))) {
		result = change_by(timers, TWI_SQL_INBOX_DELETE_PLAIN, twi_serial(id),
				   twi_place(id));
		timers->inbox_rows -= result == 1;
	}
	return result == 0 ? timer_delete_plain(timers, id) : result;
}

int twi_timers_delete(struct twi_timers *timers, struct tw_durable_id id)
{
	struct tw_durable_row row;
	int result;

	if (twi_ends_have(&timers->ends, twi_place(id), twi_serial(id)))
		return 0;
	result = delete_plain(timers, id);
	if (result != 0)
		return result;
	result = twi_timers_get(timers, id, &row);
	if (result != 1)
		return result;
	result = row_delete(timers, &row);
	if (result == 1 && twi_bucket(row.due_ns) != twi_place(id))
		result = change_by(timers, TWI_SQL_MOVED_DELETE, twi_place(id), twi_serial(id));
	if (result >= 0)
		result = key_delete(timers, &row);
	return result < 0 ? result : 1;
}

/* Finds the greatest serial of the slice of the inbox with the lowest serials. */
static int slice_end(struct twi_timers *timers, int64_t *ret)
{
	sqlite3_stmt *statement = statement_of(timers, TWI_SQL_INBOX_SLICE);
	int result;

	sqlite3_bind_int64(statement, 1, TWI_INBOX_SLICE);
	result = twi_database_step(statement);
	if (result == 1) {
		*ret = sqlite3_column_int64(statement, 0);
		sqlite3_reset(statement);
	}
	return result < 0 ? result : 0;
}

static int slice_move(struct twi_timers *timers)
{
	int64_t last = 0;
	int result = slice_end(timers, &last);

	if (result == 0)
		result = change_by(timers, TWI_SQL_INBOX_MOVE, last, 0);
	TWI_TEST_POINT("file:slicing");
	return result < 0 ? result : change_by(timers, TWI_SQL_INBOX_CUT, last, 0);
}

/*
 * Moves a slice of the inbox. The commit does not sync. If a power loss undoes the commit, the rows
 * are still in the inbox. The next commit that syncs makes this one durable, too.
 */
int twi_timers_slice(struct twi_timers *timers)
{
	struct twi_database *database = timers->database;
	int result = twi_database_begin_unsynced(database);

	if (result != 0)
		return result;
	result = slice_move(timers);
	if (result < 0)
		twi_database_rollback(database);
	else
		result = twi_database_commit(database);
	if (result >= 0)
		result = inbox_refresh(timers);
	return result < 0 ? result : timers->inbox_rows > 0;
}
