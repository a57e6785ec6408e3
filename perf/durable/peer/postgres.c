/* SPDX-License-Identifier: MIT */
/* The keeper PostgreSQL: a table from which a worker takes rows with SKIP LOCKED. */
#include "durable/peer/peer.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static PGconn *connection;
static int64_t last_id;

static PGresult *ask(const char *text, int count, const char *const *values)
{
	PGresult *result = PQexecParams(connection, text, count, NULL, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		keeper_fail("postgres", PQerrorMessage(connection));
	return result;
}

static void open_postgres(const char *address)
{
	char text[512];

	snprintf(text, sizeof text, "host=%s user=postgres dbname=postgres", address);
	connection = PQconnectdb(text);
	if (PQstatus(connection) != CONNECTION_OK)
		keeper_fail("postgres", PQerrorMessage(connection));
	PQclear(ask(
		"CREATE TABLE IF NOT EXISTS timer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY "
		"KEY, due timestamptz NOT NULL, payload text NOT NULL)",
		0, NULL));
	PQclear(ask("CREATE INDEX IF NOT EXISTS timer_due ON timer (due)", 0, NULL));
}

static void schedule(size_t count, int64_t due_s)
{
	static char array[KEEPER_BATCH * (KEEPER_PAYLOAD + 1) + 2];
	char due[24], *at = array;
	const char *const values[] = {due, array};
	PGresult *result;

	snprintf(due, sizeof due, "%" PRId64, due_s);
	for (size_t i = 0; i < count; i++) {
		*at++ = i == 0 ? '{' : ',';
		memcpy(at, keeper_payload, KEEPER_PAYLOAD);
		at += KEEPER_PAYLOAD;
	}
	strcpy(at, "}");
	result = ask(
		"INSERT INTO timer (due, payload) SELECT to_timestamp($1::bigint), payload FROM "
		"unnest($2::text[]) AS payload RETURNING id",
		2, values);
	last_id = strtoll(PQgetvalue(result, (int)count - 1, 0), NULL, 10);
	PQclear(result);
}

/* Cancels the last ids in descending order. They have no gaps, because there is only one client. */
static void cancel(size_t count)
{
	static char array[KEEPER_BATCH * 21 + 2];
	const char *const values[] = {array};
	char *at = array;
	PGresult *result;

	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%c%" PRId64, i == 0 ? '{' : ',', last_id--);
	strcpy(at, "}");
	result = ask("DELETE FROM timer WHERE id = ANY($1::bigint[])", 1, values);
	if (strtoull(PQcmdTuples(result), NULL, 10) != count)
		keeper_fail("postgres", "a timer was not there");
	PQclear(result);
}

static size_t take(size_t most)
{
	char limit[24];
	const char *const values[] = {limit};
	PGresult *result;
	size_t count;

	snprintf(limit, sizeof limit, "%zu", most);
	result = ask(
		"WITH due AS (SELECT id FROM timer WHERE due <= now() ORDER BY due LIMIT "
		"$1::bigint FOR UPDATE SKIP LOCKED) DELETE FROM timer USING due WHERE timer.id = "
		"due.id RETURNING timer.id, payload",
		1, values);
	count = (size_t)PQntuples(result);
	PQclear(result);
	return count;
}

static void close_postgres(void)
{
	PQfinish(connection);
}

const struct keeper keeper_postgres = {"postgres", open_postgres, schedule,
				       cancel,     take,          close_postgres};
