/* SPDX-License-Identifier: MIT */
/* Makes a schema, and upgrades one of an earlier version while processes of that version use it. */
#include "durable/postgres/ask.h"
#include "durable/postgres/errors.h"
#include "durable/postgres/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>
#include <time.h>

/*
 * The keys of two locks in the server. The holder of the first makes a schema, the holder of the
 * second upgrades one. A process that makes a schema waits for its lock inside a statement; so do
 * processes that know only version 1. An upgrade waits until the other statements of the database
 * have ended. If both used the same lock, they would wait for each other.
 */
#define LOCK_MAKE "8390876205174681446"
#define LOCK_UPGRADE "8390876205174681447" /* also in upgrade_1.sql */

static void line_write(const char *line, const char *schema, tw_durable_postgres_write *write,
		       void *context)
{
	static const char mark[] = "@schema@";
	const char *next;

	while ((next = strstr(line, mark)) != NULL) {
		write(context, line, (size_t)(next - line));
		write(context, schema, strlen(schema));
		line = next + sizeof mark - 1;
	}
	write(context, line, strlen(line));
}

/*
 * Writes lines, with the name of the schema instead of "@schema@". Stops before the line `end`,
 * which may be NULL. The line "-- @functions@" stands for the lines of functions.sql.
 */
static void script_write(const char *const *lines, const char *const *end, const char *schema,
			 tw_durable_postgres_write *write, void *context)
{
	for (const char *const *line = lines; *line != NULL && line != end; line++) {
		if (strcmp(*line, "-- @functions@\n") == 0)
			script_write(twi_postgres_functions, NULL, schema, write, context);
		else
			line_write(*line, schema, write, context);
	}
}

/* A text that grows. Begins with zeros. */
struct script {
	char *at;
	size_t bytes, room;
	bool failed;
};

static void script_add(void *to, const char *bytes, size_t count)
{
	struct script *script = to;

	if (script->room - script->bytes <= count) {
		size_t room = 2 * (script->room + count + 1);
		char *at = script->failed ? NULL : realloc(script->at, room);

		script->failed = at == NULL;
		if (at == NULL)
			return;
		script->at = at;
		script->room = room;
	}
	memcpy(script->at + script->bytes, bytes, count);
	script->bytes += count;
}

static void script_adds(struct script *script, const char *text)
{
	script_add(script, text, strlen(text));
}

/*
 * Runs a text, and frees it. Returns 0, or a code of errors.h. If the text fails inside a
 * transaction, rolls the transaction back.
 */
static int script_run(struct script *script, PGconn *connection)
{
	PGresult *result;
	int error = 0;

	script_add(script, "", 1);
	if (script->failed) {
		free(script->at);
		return -ENOMEM;
	}
	result = PQexec(connection, script->at);
	free(script->at);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		error = twi_postgres_error(connection, result);
	PQclear(result);
	if (error != 0 && PQtransactionStatus(connection) != PQTRANS_IDLE)
		PQclear(PQexec(connection, "ROLLBACK"));
	return error;
}

static void all_write(const char *schema, tw_durable_postgres_write *write, void *context)
{
	script_write(twi_postgres_schema, NULL, schema, write, context);
	script_write(twi_postgres_functions, NULL, schema, write, context);
}

int tw_durable_postgres_sql(const char *schema, tw_durable_postgres_write *write, void *context)
{
	if (!twi_postgres_name_right(schema) || write == NULL)
		return -EINVAL;
	all_write(schema, write, context);
	return 0;
}

/*
 * Makes the schema. Several processes may try at once, so the transaction takes a lock until its
 * end.
 */
static int schema_make(PGconn *connection, const char *schema)
{
	struct script script = {.at = NULL};

	script_adds(&script, "BEGIN; SELECT pg_advisory_xact_lock(" LOCK_MAKE ");");
	all_write(schema, script_add, &script);
	script_adds(&script, "COMMIT;");
	return script_run(&script, connection);
}

static bool truth_ask(PGconn *connection, const char *text)
{
	PGresult *result = PQexec(connection, text);
	bool truth = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		     PQgetvalue(result, 0, 0)[0] == 't';

	PQclear(result);
	return truth;
}

/* Returns the first line of the next step, or the end. */
static const char *const *step_end(const char *const *line)
{
	while (*line != NULL && strncmp(*line, "-- Step ", strlen("-- Step ")) != 0)
		line++;
	return line;
}

/*
 * Runs each step by itself, because some of them cannot be in a transaction. The last step releases
 * the lock of the upgrade.
 */
static int steps_run(PGconn *connection, const char *schema)
{
	const char *const *step = step_end(twi_postgres_upgrade_1), *const * next;
	int error = 0;

	for (; *step != NULL && error == 0; step = next) {
		struct script script = {.at = NULL};

		next = step_end(step + 1);
		script_write(step, next, schema, script_add, &script);
		error = script_run(&script, connection);
	}
	return error;
}

/*
 * Upgrades a schema of version 1, or waits while another process does so. If the upgrade fails, the
 * schema still has version 1, and the call can be repeated.
 *
 * The lock belongs to the connection, not to a transaction, because CREATE INDEX CONCURRENTLY
 * cannot run inside a transaction. That statement waits for the other statements of the database.
 * So no process may wait for the lock inside a statement: the two processes would wait for each
 * other.
 */
static int upgrade(PGconn *connection, const char *schema)
{
	static const struct timespec pause = {.tv_nsec = 100000000};
	int version = 1, error = 0;

	while (!truth_ask(connection, "SELECT pg_try_advisory_lock(" LOCK_UPGRADE ")")) {
		error = twi_postgres_schema_version(connection, schema, TWI_POSTGRES_NEVER,
						    &version);
		if (error != 0 || version != 1)
			return error;
		(void)nanosleep(&pause, NULL);
	}
	error = twi_postgres_schema_version(connection, schema, TWI_POSTGRES_NEVER, &version);
	if (error == 0 && version == 1) {
		error = steps_run(connection, schema);
		if (error == 0)
			return 0;
	}
	(void)truth_ask(connection, "SELECT pg_advisory_unlock(" LOCK_UPGRADE ")");
	return error;
}

int tw_durable_postgres_upgrade_sql(const char *schema, int version,
				    tw_durable_postgres_write *write, void *context)
{
	if (!twi_postgres_name_right(schema) || write == NULL)
		return -EINVAL;
	if (version != 1)
		return -ENOTSUP;
	script_write(twi_postgres_upgrade_1, NULL, schema, write, context);
	return 0;
}

int tw_durable_postgres_migrate(struct pg_conn *connection, const char *schema)
{
	int error, made = 0, version = 0;

	if (connection == NULL || !twi_postgres_name_right(schema) ||
	    PQtransactionStatus(connection) != PQTRANS_IDLE)
		return -EINVAL;
	error = twi_postgres_schema_version(connection, schema, TWI_POSTGRES_NEVER, &version);
	if (error != 0 && error != -ENOENT)
		return error;
	if (error == -ENOENT)
		made = schema_make(connection, schema);
	else if (version == 1)
		made = upgrade(connection, schema);
	/* Another process may have made or upgraded the schema meanwhile. */
	error = twi_postgres_schema_look(connection, schema, TWI_POSTGRES_NEVER);
	return error != 0 && made != 0 ? made : error;
}
