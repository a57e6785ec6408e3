/* SPDX-License-Identifier: MIT */
#include "durable/tool/postgres/server.h"

#include "durable/postgres/ask.h"
#include "durable/postgres/errors.h"
#include "durable/postgres/schema.h"
#include "durable/postgres/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int told(const struct twi_tool_server *server)
{
	fprintf(stderr, "tickwheel-durable: PostgreSQL: %s", PQerrorMessage(server->connection));
	return -ECANCELED;
}

/*
 * Takes one result of a statement. Returns 1 if more follow, 0 if the statement has ended, or an
 * error.
 */
static int result_take(struct twi_tool_server *server, PGresult *result,
		       int (*give)(void *to, const PGresult *row), void *to)
{
	ExecStatusType status = PQresultStatus(result);
	int error;

	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return 0;
	if (status != PGRES_SINGLE_TUPLE)
		return told(server);
	error = give == NULL ? 0 : give(to, result);
	return error == 0 ? 1 : error;
}

/*
 * Runs a statement and passes its rows to `give`. After an error it ignores the remaining rows, but
 * reads them, because libpq requires that.
 */
int twi_tool_server_rows(struct twi_tool_server *server, const char *text,
			 int (*give)(void *to, const PGresult *row), void *to)
{
	char *sql = twi_postgres_text(text, server->schema);
	int error = sql == NULL ? -ENOMEM : 0;
	PGresult *result;

	if (error == 0)
		error = twi_values_send(&server->values, server->connection, sql);
	free(sql);
	if (error != 0)
		return error == -ENOMEM ? error : told(server);
	(void)PQsetSingleRowMode(server->connection);
	error = 1;
	while ((result = PQgetResult(server->connection)) != NULL) {
		if (error == 1)
			error = result_take(server, result, give, to);
		PQclear(result);
	}
	return error == 1 ? 0 : error;
}

static int command(struct twi_tool_server *server, const char *text)
{
	twi_values_begin(&server->values);
	return twi_tool_server_rows(server, text, NULL, NULL);
}

static int kind_note(void *to, const PGresult *row)
{
	return twi_tool_kinds_add(to, (uint32_t)twi_value_int4(row, 0, 0), PQgetvalue(row, 0, 1),
				  twi_value_bool(row, 0, 2));
}

static int kinds_read(struct twi_tool_server *server)
{
	twi_values_begin(&server->values);
	return twi_tool_server_rows(server, "SELECT id, name, paused FROM @.kind ORDER BY id",
				    kind_note, &server->kinds);
}

static int schema_look(const struct twi_tool_server *server)
{
	int error =
		twi_postgres_schema_look(server->connection, server->schema, TWI_POSTGRES_NEVER);

	return error == 0 || error == -ENOENT || error == -ENOTSUP || error == -EUCLEAN
		       ? error
		       : told(server);
}

static void notice_drop(void *context, const char *text)
{
	(void)context;
	(void)text;
}

static PGconn *connect(const char *address)
{
	static const char *const names[] = {"dbname", "fallback_application_name", NULL};
	const char *const values[] = {address, "tickwheel-durable", NULL};

	return PQconnectdbParams(names, values, 1);
}

int twi_tool_server_open(struct twi_tool_server *server, const char *address, const char *schema,
			 bool reads)
{
	int error = 0;

	*server = (struct twi_tool_server){.connection = connect(address), .schema = schema};
	if (PQstatus(server->connection) != CONNECTION_OK)
		error = told(server);
	else
		PQsetNoticeProcessor(server->connection, notice_drop, NULL);
	if (error == 0)
		error = schema_look(server);
	if (error == 0 && reads)
		error = command(server, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
	if (error == 0)
		error = kinds_read(server);
	if (error != 0)
		twi_tool_server_close(server);
	return error;
}

void twi_tool_server_close(struct twi_tool_server *server)
{
	PQfinish(server->connection);
	twi_values_free(&server->values);
	twi_tool_kinds_free(&server->kinds);
	server->connection = NULL;
}
