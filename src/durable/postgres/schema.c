/* SPDX-License-Identifier: MIT */
#include "durable/postgres/schema.h"

#include "durable/postgres/ask.h"
#include "durable/postgres/errors.h"
#include "durable/postgres/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int twi_postgres_schema_version(PGconn *connection, const char *name, int64_t wait_ns, int *ret)
{
	int error = number_ask(connection, name, "SELECT 1 FROM pg_namespace WHERE nspname = '@'",
			       wait_ns, ret);

	if (error != 0)
		return error == -ENODATA ? -ENOENT : error;
	error = number_ask(connection, name, "SELECT version FROM @.meta", wait_ns, ret);
	return error == -ENODATA ? -EUCLEAN : error;
}

int twi_postgres_schema_look(PGconn *connection, const char *name, int64_t wait_ns)
{
	int found = 0, serves = TWI_POSTGRES_VERSION + 1;
	int error = twi_postgres_schema_version(connection, name, wait_ns, &found);

	/* A later version says which libraries it still serves. */
	if (error == 0 && found > TWI_POSTGRES_VERSION)
		error = number_ask(connection, name, "SELECT serves FROM @.meta", wait_ns, &serves);
	if (error != 0)
		return error;
	return found == TWI_POSTGRES_VERSION || serves <= TWI_POSTGRES_VERSION ? 0 : -ENOTSUP;
}
