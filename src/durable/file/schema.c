/* SPDX-License-Identifier: MIT */
#include "durable/file/schema.h"

#include "durable/file/crc.h"

#include <errno.h>
#include <string.h>

#define ROW_COLUMNS                                                                                \
	" place INTEGER, due INTEGER NOT NULL, kind INTEGER NOT NULL, attempt INTEGER NOT NULL,"   \
	" version INTEGER NOT NULL, started INTEGER NOT NULL,"                                     \
	" key BLOB, payload BLOB, crc INTEGER NOT NULL"

/* The statements of each step: from an empty file to version 1, from 1 to 2, and so on. */
static const char *const steps[TWI_SCHEMA_VERSION] = {
	"CREATE TABLE meta (id INTEGER PRIMARY KEY, serial INTEGER NOT NULL, epoch INTEGER NOT "
	"NULL,"
	" clean INTEGER NOT NULL, wall INTEGER NOT NULL, crc INTEGER NOT NULL);"
	"CREATE TABLE kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, crc INTEGER NOT "
	"NULL);"
	"CREATE TABLE timer (bucket INTEGER NOT NULL, serial INTEGER NOT NULL," ROW_COLUMNS
	", PRIMARY KEY (bucket, serial)) WITHOUT ROWID;"
	"CREATE TABLE inbox (serial INTEGER PRIMARY KEY, bucket INTEGER NOT NULL," ROW_COLUMNS ");"
	"CREATE TABLE moved (place INTEGER NOT NULL, serial INTEGER NOT NULL, bucket INTEGER NOT "
	"NULL,"
	" crc INTEGER NOT NULL, PRIMARY KEY (place, serial)) WITHOUT ROWID;"
	"CREATE TABLE key (name BLOB NOT NULL PRIMARY KEY, place INTEGER NOT NULL,"
	" serial INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE dead (birth INTEGER NOT NULL, serial INTEGER NOT NULL, bucket INTEGER NOT "
	"NULL," ROW_COLUMNS ", ended INTEGER NOT NULL, PRIMARY KEY (birth, serial)) WITHOUT ROWID;"
	"CREATE INDEX dead_ended ON dead (ended);",
	"CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT NOT NULL, base INTEGER NOT NULL,"
	" step INTEGER NOT NULL, crc INTEGER NOT NULL);",
	"CREATE TABLE ended (number INTEGER PRIMARY KEY, place INTEGER NOT NULL,"
	" serial INTEGER NOT NULL, crc INTEGER NOT NULL);",
	"CREATE TABLE paused (kind INTEGER PRIMARY KEY, crc INTEGER NOT NULL);",
};

int twi_schema_look(struct twi_database *database)
{
	int64_t application = 0, version = 0, tables = 0;
	int result = twi_database_number(database, "PRAGMA application_id", &application);

	if (result == 0)
		result = twi_database_number(database, "PRAGMA user_version", &version);
	if (result == 0)
		result = twi_database_number(database, "SELECT count(*) FROM sqlite_schema",
					     &tables);
	if (result != 0)
		return result;
	if (application == 0 && version == 0 && tables == 0)
		return 0;
	if (application != TWI_SCHEMA_APPLICATION)
		return -EEXIST;
	if (version > TWI_SCHEMA_VERSION)
		return -ENOTSUP;
	return version < 1 || tables == 0 ? -EUCLEAN : (int)version;
}

static int step_run(struct twi_database *database, int version)
{
	char *text = NULL;
	int result = twi_database_execute(database, steps[version]);

	if (result == 0)
		text = sqlite3_mprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;",
				       TWI_SCHEMA_APPLICATION, version + 1);
	if (result == 0)
		result = text == NULL ? -ENOMEM : twi_database_execute(database, text);
	sqlite3_free(text);
	return result;
}

static uint32_t meta_crc(const struct twi_meta *meta)
{
	uint32_t crc = twi_crc32c_number(0, (uint64_t)meta->serial);

	crc = twi_crc32c_number(crc, (uint64_t)meta->epoch);
	crc = twi_crc32c_number(crc, (uint64_t)meta->clean);
	return twi_crc32c_number(crc, (uint64_t)meta->wall_ns);
}

/* Serials begin at 1, because an id of zeros names no timer. */
static int meta_make(struct twi_database *database)
{
	const struct twi_meta meta = {.serial = 1, .clean = 1, .wall_ns = INT64_MIN};
	char *text =
		sqlite3_mprintf("INSERT INTO meta VALUES (1, %lld, %lld, %lld, %lld, %u)",
				meta.serial, meta.epoch, meta.clean, meta.wall_ns, meta_crc(&meta));
	int result = text == NULL ? -ENOMEM : twi_database_execute(database, text);

	sqlite3_free(text);
	return result;
}

int twi_schema_make(struct twi_database *database, int version)
{
	int result = 0;

	if (version == TWI_SCHEMA_VERSION)
		return 0;
	if (version == 0)
		result = twi_database_execute(database,
					      "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL");
	if (result == 0)
		result = twi_database_execute(database, "BEGIN IMMEDIATE");
	for (int step = version; step < TWI_SCHEMA_VERSION && result == 0; step++)
		result = step_run(database, step);
	if (result == 0 && version == 0)
		result = meta_make(database);
	if (result == 0)
		result = twi_database_execute(database, "COMMIT");
	twi_database_rollback(database);
	return result;
}

int twi_meta_get(struct twi_database *database, struct twi_meta *ret)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_META_GET);
	struct twi_meta meta;
	int result = twi_database_step(statement);
	bool whole;

	if (result <= 0)
		return result == 0 ? -EUCLEAN : result;
	meta.serial = sqlite3_column_int64(statement, 0);
	meta.epoch = sqlite3_column_int64(statement, 1);
	meta.clean = sqlite3_column_int64(statement, 2);
	meta.wall_ns = sqlite3_column_int64(statement, 3);
	whole = sqlite3_column_int64(statement, 4) == (int64_t)meta_crc(&meta);
	sqlite3_reset(statement);
	if (!whole || meta.serial < 1)
		return -EUCLEAN;
	*ret = meta;
	return 0;
}

int twi_meta_set(struct twi_database *database, const struct twi_meta *meta)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_META_SET);

	sqlite3_bind_int64(statement, 1, meta->serial);
	sqlite3_bind_int64(statement, 2, meta->epoch);
	sqlite3_bind_int64(statement, 3, meta->clean);
	sqlite3_bind_int64(statement, 4, meta->wall_ns);
	sqlite3_bind_int64(statement, 5, (int64_t)meta_crc(meta));
	return twi_database_run(database, TWI_SQL_META_SET);
}

static uint32_t clock_crc(const struct tw_durable_clock *clock)
{
	uint32_t crc = twi_crc32c(0, clock->boot, strlen(clock->boot));

	crc = twi_crc32c_number(crc, (uint64_t)clock->base_ns);
	return twi_crc32c_number(crc, (uint64_t)clock->step_ns);
}

int twi_clock_get(struct twi_database *database, struct tw_durable_clock *ret)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_CLOCK_GET);
	struct tw_durable_clock clock = {.boot = ""};
	int result = twi_database_step(statement);
	const char *boot;
	bool whole;

	if (result <= 0)
		return result == 0 ? -ENOENT : result;
	boot = (const char *)sqlite3_column_text(statement, 0);
	clock.base_ns = sqlite3_column_int64(statement, 1);
	clock.step_ns = sqlite3_column_int64(statement, 2);
	whole = boot != NULL && strlen(boot) < sizeof clock.boot;
	if (whole)
		strcpy(clock.boot, boot);
	whole = whole && sqlite3_column_int64(statement, 3) == (int64_t)clock_crc(&clock);
	sqlite3_reset(statement);
	if (!whole)
		return -EUCLEAN;
	*ret = clock;
	return 0;
}

int twi_clock_set(struct twi_database *database, const struct tw_durable_clock *clock)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_CLOCK_SET);

	sqlite3_bind_text(statement, 1, clock->boot, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(statement, 2, clock->base_ns);
	sqlite3_bind_int64(statement, 3, clock->step_ns);
	sqlite3_bind_int64(statement, 4, (int64_t)clock_crc(clock));
	return twi_database_run(database, TWI_SQL_CLOCK_SET);
}

static uint32_t kind_crc(uint32_t number, const char *name)
{
	return twi_crc32c(twi_crc32c_number(0, number), name, strlen(name));
}

int twi_kind_all(struct twi_database *database,
		 int (*give)(void *to, uint32_t number, const char *name), void *to)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_KIND_ALL);
	int result;

	while ((result = twi_database_step(statement)) == 1) {
		int64_t number = sqlite3_column_int64(statement, 0);
		const char *name = (const char *)sqlite3_column_text(statement, 1);

		if (name == NULL || number < 1 || number > UINT32_MAX ||
		    sqlite3_column_int64(statement, 2) != (int64_t)kind_crc((uint32_t)number, name))
			result = -EUCLEAN;
		else
			result = give(to, (uint32_t)number, name);
		if (result != 0)
			break;
	}
	sqlite3_reset(statement);
	return result;
}

int twi_kind_add(struct twi_database *database, uint32_t number, const char *name)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_KIND_ADD);

	sqlite3_bind_int64(statement, 1, number);
	sqlite3_bind_text(statement, 2, name, -1, SQLITE_TRANSIENT);
	sqlite3_bind_int64(statement, 3, (int64_t)kind_crc(number, name));
	return twi_database_run(database, TWI_SQL_KIND_ADD);
}

static uint32_t paused_crc(int64_t number)
{
	return twi_crc32c_number(twi_crc32c(0, "paused", 6), (uint64_t)number);
}

int twi_paused_set(struct twi_database *database, uint32_t number, bool paused)
{
	enum twi_sql sql = paused ? TWI_SQL_PAUSED_SET : TWI_SQL_PAUSED_DELETE;
	sqlite3_stmt *statement = twi_database_statement(database, sql);

	sqlite3_bind_int64(statement, 1, number);
	if (paused)
		sqlite3_bind_int64(statement, 2, (int64_t)paused_crc(number));
	return twi_database_run(database, sql);
}

int twi_paused_all(struct twi_database *database, int (*give)(void *to, uint32_t number), void *to)
{
	sqlite3_stmt *statement = twi_database_statement(database, TWI_SQL_PAUSED_ALL);
	int result;

	while ((result = twi_database_step(statement)) == 1) {
		int64_t number = sqlite3_column_int64(statement, 0);

		if (number < 1 || number > UINT32_MAX ||
		    sqlite3_column_int64(statement, 1) != (int64_t)paused_crc(number))
			result = -EUCLEAN;
		else
			result = give(to, (uint32_t)number);
		if (result != 0)
			break;
	}
	sqlite3_reset(statement);
	return result;
}
