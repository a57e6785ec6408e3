/* SPDX-License-Identifier: MIT */
#include "durable/file/ends.h"

#include "durable/file/crc.h"

#include "base/test_point.h"

#include <errno.h>
#include <stdlib.h>

enum {
	ROOM_LEAST = 64,
};

/* Returns the place in the table where the search for a serial begins. */
static size_t start_of(const struct twi_ends *ends, int64_t serial)
{
	uint64_t mixed = (uint64_t)serial * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(mixed >> 32) & (ends->room - 1);
}

/* Returns the noted end of an id, or the free place for it. */
static struct twi_end *find(const struct twi_ends *ends, int64_t place, int64_t serial)
{
	size_t at = start_of(ends, serial);

	while (ends->table[at].number != 0 &&
	       (ends->table[at].serial != serial || ends->table[at].place != place))
		at = (at + 1) & (ends->room - 1);
	return &ends->table[at];
}

/* Makes space for one more end. At most half of the table is used. */
static bool grow(struct twi_ends *ends)
{
	struct twi_ends larger = {.room = ends->room == 0 ? ROOM_LEAST : 2 * ends->room};

	if (2 * (ends->count + 1) <= ends->room)
		return true;
	larger.table = calloc(larger.room, sizeof(larger.table[0]));
	if (larger.table == NULL)
		return false;
	for (size_t i = 0; i < ends->room; i++) {
		const struct twi_end *end = &ends->table[i];

		if (end->number != 0)
			*find(&larger, end->place, end->serial) = *end;
	}
	free(ends->table);
	ends->table = larger.table;
	ends->room = larger.room;
	return true;
}

static void keep(struct twi_ends *ends, const struct twi_end *end)
{
	*find(ends, end->place, end->serial) = *end;
	ends->count++;
	if (end->place < ends->oldest)
		ends->oldest = end->place;
	if (end->number > ends->number_last)
		ends->number_last = end->number;
}

/*
 * Removes an end. Moves back later entries that it had displaced (Knuth, volume 3, algorithm 6.4
 * R).
 */
static void drop(struct twi_ends *ends, struct twi_end *end)
{
	size_t mask = ends->room - 1, hole = (size_t)(end - ends->table), at = hole;

	ends->count--;
	for (;;) {
		ends->table[hole].number = 0;
		do {
			at = (at + 1) & mask;
			if (ends->table[at].number == 0)
				return;
		} while (((at - start_of(ends, ends->table[at].serial)) & mask) <
			 ((at - hole) & mask));
		ends->table[hole] = ends->table[at];
		hole = at;
	}
}

static uint32_t crc_of(const struct twi_end *end)
{
	return twi_crc32c_numbers(end->number, end->place, end->serial);
}

static int read_one(struct twi_ends *ends, sqlite3_stmt *statement)
{
	struct twi_end end = {
		.number = sqlite3_column_int64(statement, 0),
		.place = sqlite3_column_int64(statement, 1),
		.serial = sqlite3_column_int64(statement, 2),
	};

	if (end.number < 1 || sqlite3_column_int64(statement, 3) != (int32_t)crc_of(&end))
		return -EUCLEAN;
	if (!grow(ends))
		return -ENOMEM;
	if (find(ends, end.place, end.serial)->number != 0)
		return -EUCLEAN;
	keep(ends, &end);
	return 0;
}

int twi_ends_read(struct twi_ends *ends)
{
	sqlite3_stmt *statement = twi_database_statement(ends->database, TWI_SQL_ENDED_ALL);
	int result;

	for (size_t i = 0; i < ends->room; i++)
		ends->table[i].number = 0;
	ends->count = 0;
	ends->oldest = INT64_MAX;
	/* number_last keeps its value: a number that was rolled back is not used again. */
	while ((result = twi_database_step(statement)) == 1) {
		result = read_one(ends, statement);
		if (result < 0)
			break;
	}
	sqlite3_reset(statement);
	return result;
}

static void work_end(struct twi_ends *ends)
{
	free(ends->work);
	ends->work = NULL;
	ends->work_count = ends->work_done = 0;
	ends->rows_deleted = false;
}

void twi_ends_done(struct twi_ends *ends)
{
	work_end(ends);
	free(ends->table);
	ends->table = NULL;
	ends->room = ends->count = 0;
}

bool twi_ends_have(const struct twi_ends *ends, int64_t place, int64_t serial)
{
	return ends->count != 0 && find(ends, place, serial)->number != 0;
}

bool twi_ends_wanted(const struct twi_ends *ends, int64_t place)
{
	return ends->count < TWI_ENDS_MAX && place <= ends->now_bucket + TWI_ENDS_SOON;
}

int twi_ends_add(struct twi_ends *ends, int64_t place, int64_t serial)
{
	sqlite3_stmt *statement = twi_database_statement(ends->database, TWI_SQL_ENDED_PUT);
	struct twi_end end = {place, serial, ends->number_last + 1};
	int result;

	if (!grow(ends))
		return 0;
	sqlite3_bind_int64(statement, 1, end.number);
	sqlite3_bind_int64(statement, 2, place);
	sqlite3_bind_int64(statement, 3, serial);
	sqlite3_bind_int64(statement, 4, (int32_t)crc_of(&end));
	result = twi_database_run(ends->database, TWI_SQL_ENDED_PUT);
	if (result < 0)
		return result;
	keep(ends, &end);
	return 1;
}

static int row_delete(struct twi_ends *ends, const struct twi_end *end)
{
	sqlite3_stmt *statement = twi_database_statement(ends->database, TWI_SQL_TIMER_DELETE);

	sqlite3_bind_int64(statement, 1, end->place);
	sqlite3_bind_int64(statement, 2, end->serial);
	return twi_database_run(ends->database, TWI_SQL_TIMER_DELETE);
}

static int end_delete(struct twi_ends *ends, const struct twi_end *end)
{
	sqlite3_stmt *statement = twi_database_statement(ends->database, TWI_SQL_ENDED_DELETE);

	sqlite3_bind_int64(statement, 1, end->number);
	return twi_database_run(ends->database, TWI_SQL_ENDED_DELETE);
}

int twi_ends_settle(struct twi_ends *ends, int64_t place, int64_t serial)
{
	struct twi_end *end = find(ends, place, serial);
	int result = row_delete(ends, end);

	if (result == 0)
		result = end_delete(ends, end);
	if (result == 0)
		drop(ends, end);
	return result;
}

bool twi_ends_cold(const struct twi_ends *ends)
{
	return ends->work != NULL ||
	       (ends->count != 0 && ends->oldest < ends->now_bucket - TWI_ENDS_COLD);
}

static int by_serial(const void *one, const void *other)
{
	const struct twi_end *left = one, *right = other;

	return left->serial < right->serial ? -1 : left->serial > right->serial;
}

static int by_number(const void *one, const void *other)
{
	const struct twi_end *left = one, *right = other;

	return left->number < right->number ? -1 : left->number > right->number;
}

static void oldest_find(struct twi_ends *ends)
{
	ends->oldest = INT64_MAX;
	for (size_t i = 0; i < ends->room; i++)
		if (ends->table[i].number != 0 && ends->table[i].place < ends->oldest)
			ends->oldest = ends->table[i].place;
}

static bool work_begin(struct twi_ends *ends)
{
	/* One entry more than needed, so that the size is never 0. */
	ends->work = malloc((ends->count + 1) * sizeof(ends->work[0]));
	if (ends->work == NULL)
		return false;
	for (size_t i = 0; i < ends->room; i++)
		if (ends->table[i].number != 0 && ends->table[i].place == ends->oldest)
			ends->work[ends->work_count++] = ends->table[i];
	qsort(ends->work, ends->work_count, sizeof(ends->work[0]), by_serial);
	return true;
}

/* Returns a noted end of `work` in the table, or NULL if its id has been used again meanwhile. */
static struct twi_end *still_noted(const struct twi_ends *ends, const struct twi_end *end)
{
	struct twi_end *noted = find(ends, end->place, end->serial);

	return noted->number == end->number ? noted : NULL;
}

static int slice_delete(struct twi_ends *ends, size_t until)
{
	int result = 0;

	for (size_t i = ends->work_done; i < until && result == 0; i++) {
		if (still_noted(ends, &ends->work[i]) == NULL)
			continue;
		result = ends->rows_deleted ? end_delete(ends, &ends->work[i])
					    : row_delete(ends, &ends->work[i]);
	}
	TWI_TEST_POINT("file:sweeping");
	return result;
}

/* Updates the memory after the commit of a slice of `work`, up to the index `until`. */
static void slice_done(struct twi_ends *ends, size_t until)
{
	for (size_t i = ends->work_done; i < until && ends->rows_deleted; i++) {
		struct twi_end *end = still_noted(ends, &ends->work[i]);

		if (end != NULL)
			drop(ends, end);
	}
	ends->work_done = until;
	if (until < ends->work_count)
		return;
	if (ends->rows_deleted) {
		work_end(ends);
		oldest_find(ends);
		return;
	}
	ends->rows_deleted = true;
	ends->work_done = 0;
	qsort(ends->work, ends->work_count, sizeof(ends->work[0]), by_number);
}

int twi_ends_slice(struct twi_ends *ends)
{
	struct twi_database *database = ends->database;
	size_t until;
	int result;

	if (ends->work == NULL && !work_begin(ends))
		return 0;
	until = ends->work_count - ends->work_done < TWI_ENDS_SLICE
			? ends->work_count
			: ends->work_done + TWI_ENDS_SLICE;
	result = twi_database_begin_unsynced(database);
	if (result != 0)
		return result;
	result = slice_delete(ends, until);
	if (result < 0)
		twi_database_rollback(database);
	else
		result = twi_database_commit(database);
	if (result == 0)
		slice_done(ends, until);
	return result;
}
