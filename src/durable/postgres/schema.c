/* SPDX-License-Identifier: MIT */
#include "durable/postgres/schema.h"

#include "durable/postgres/ask.h"
#include "durable/postgres/errors.h"
#include "durable/postgres/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>

bool twi_postgres_name_right(const char *name)
{
	size_t length = name == NULL ? 0 : strnlen(name, TWI_POSTGRES_NAME_MAX + 1);

	return length >= 1 && length <= TWI_POSTGRES_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/*
 * Runs a query, and sets *ret to the first number of its first row. Returns -ENODATA if there is no
 * row.
 */
static int number_ask(PGconn *connection, const char *schema, const char *text, int64_t wait_ns,
		      int *ret)
{
	char *sql = twi_postgres_text(text, schema);
	PGresult *result = sql == NULL ? NULL : twi_postgres_ask(connection, sql, wait_ns);
	int error = sql == NULL ? -ENOMEM : 0;

	free(sql);
	if (error == 0 && PQresultStatus(result) != PGRES_TUPLES_OK)
		error = twi_postgres_error(connection, result);
	if (error == 0 && PQntuples(result) == 0)
		error = -ENODATA;
	if (error == 0)
		*ret = atoi(PQgetvalue(result, 0, 0));
	PQclear(result);
	return error;
}

int twi_postgres_schema_look(PGconn *connection, const char *name, int64_t wait_ns)
{
	int found = 0,
	    error = number_ask(connection, name, "SELECT 1 FROM pg_namespace WHERE nspname = '@'",
			       wait_ns, &found);

	if (error != 0)
		return error == -ENODATA ? -ENOENT : error;
	error = number_ask(connection, name, "SELECT version FROM @.meta", wait_ns, &found);
	if (error != 0)
		return error == -ENODATA ? -EUCLEAN : error;
	return found == TWI_POSTGRES_VERSION ? 0 : -ENOTSUP;
}

/* Writes each line of schema.sql, with the name of the schema instead of its mark. */
static void lines_write(const char *schema, tw_durable_postgres_write *write, void *context)
{
	static const char mark[] = "@schema@";

	for (const char *const *line = twi_postgres_schema; *line != NULL; line++) {
		const char *at = *line, *next;

		while ((next = strstr(at, mark)) != NULL) {
			write(context, at, (size_t)(next - at));
			write(context, schema, strlen(schema));
			at = next + sizeof mark - 1;
		}
		write(context, at, strlen(at));
	}
}

int tw_durable_postgres_sql(const char *schema, tw_durable_postgres_write *write, void *context)
{
	if (!twi_postgres_name_right(schema) || write == NULL)
		return -EINVAL;
	lines_write(schema, write, context);
	return 0;
}

struct text {
	char *at;
	size_t bytes, room;
	bool failed;
};

static void text_add(void *to, const char *bytes, size_t count)
{
	struct text *text = to;

	if (text->room - text->bytes <= count) {
		size_t room = 2 * (text->room + count + 1);
		char *at = text->failed ? NULL : realloc(text->at, room);

		text->failed = at == NULL;
		if (at == NULL)
			return;
		text->at = at;
		text->room = room;
	}
	memcpy(text->at + text->bytes, bytes, count);
	text->bytes += count;
}

static void text_adds(struct text *text, const char *words)
{
	text_add(text, words, strlen(words));
}

/*
 * Makes the schema. Several processes may try at once, so the transaction takes a lock until its
 * end.
 */
static int schema_make(PGconn *connection, const char *schema)
{
	struct text text = {.at = NULL};
	PGresult *result;
	int error = 0;

	text_adds(&text, "BEGIN; SELECT pg_advisory_xact_lock(8390876205174681446);");
	lines_write(schema, text_add, &text);
	text_adds(&text, "COMMIT;");
	text_add(&text, "", 1);
	if (text.failed) {
		free(text.at);
		return -ENOMEM;
	}
	result = PQexec(connection, text.at);
	free(text.at);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		error = twi_postgres_error(connection, result);
	PQclear(result);
	if (error != 0)
		PQclear(PQexec(connection, "ROLLBACK"));
	return error;
}

int tw_durable_postgres_migrate(struct pg_conn *connection, const char *schema)
{
	int error, made;

	if (connection == NULL || !twi_postgres_name_right(schema) ||
	    PQtransactionStatus(connection) != PQTRANS_IDLE)
		return -EINVAL;
	error = twi_postgres_schema_look(connection, schema, TWI_POSTGRES_NEVER);
	if (error != -ENOENT)
		return error;
	made = schema_make(connection, schema);
	if (made == 0)
		return 0;
	/* Another process may have made the schema meanwhile. */
	error = twi_postgres_schema_look(connection, schema, TWI_POSTGRES_NEVER);
	return error == -ENOENT ? made : error;
}
