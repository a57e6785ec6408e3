/* SPDX-License-Identifier: MIT */
#include "bench_upgrade.h"
#include "version_1.h"

#include "durable/postgres/text.h"

#include <stdio.h>
#include <time.h>

struct old old;

static void text_add(void *to, const char *bytes, size_t count)
{
	struct text *text = to;

	cr_assert(text->bytes + count < sizeof text->at);
	memcpy(text->at + text->bytes, bytes, count);
	text->bytes += count;
	text->at[text->bytes] = '\0';
}

PGconn *server_connect(void)
{
	PGconn *connection = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));

	cr_assert(PQstatus(connection) == CONNECTION_OK);
	return connection;
}

/* Runs SQL of the process of version 1. Returns the number of rows, or -1 with *ret_state. */
static int old_rows(const char *text, char ret_state[6], long long *ret_number)
{
	char *sql = twi_postgres_text(text, bench_postgres.schema);
	PGresult *result = PQexec(old.connection, sql);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	int rows = state == NULL ? PQntuples(result) : -1;

	snprintf(ret_state, 6, "%s", state == NULL ? "" : state);
	if (rows > 0 && ret_number != NULL)
		*ret_number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	free(sql);
	return rows;
}

int old_do(const char *text, long long *ret_number)
{
	char state[6];
	int rows = old_rows(text, state, ret_number);

	cr_assert(rows >= 0, "%s: %s", state, PQerrorMessage(old.connection));
	return rows;
}

int old_claim(int most)
{
	char text[256];

	snprintf(text, sizeof text,
		 "SELECT " COLUMNS " FROM @.claim(%lld::bigint, '-9223372036854775808'::bigint, "
		 "5000000000::bigint, '{1,2}'::integer[], %d) ORDER BY due, place, serial",
		 old.session, most);
	return old_do(text, NULL);
}

/* Runs a batch with one statement. Returns its number of unusual outcomes. */
static int old_batch(const char *statement)
{
	char text[512];
	int rows;

	snprintf(text, sizeof text, "BEGIN; SELECT @.batch_begin(%lld, %lld)", old.session,
		 old.batch + 1);
	old_do(text, NULL);
	snprintf(text, sizeof text, "SELECT * FROM @.%s WHERE number >= 0", statement);
	rows = old_do(text, NULL);
	old_do("COMMIT", NULL);
	old.batch++;
	return rows;
}

int old_start(int serial)
{
	char text[160];

	snprintf(text, sizeof text, "op_start(%lld, '{0}', '{7}', '{%d}', '{1}', '{%lld}')",
		 old.session, serial, old.session);
	return old_batch(text);
}

int old_end(int serial)
{
	char text[160];

	snprintf(text, sizeof text, "op_delete(%lld, '{0}', '{7}', '{%d}', '{%lld}', '{true}')",
		 old.session, serial, old.session);
	return old_batch(text);
}

bool old_finish(long long serial, long long fence)
{
	char text[160];
	long long done = 0;

	snprintf(text, sizeof text, "SELECT @.finish(7, %lld, %lld, 1)::integer", serial, fence);
	old_do(text, &done);
	return done == 1;
}

void old_session_begin(void)
{
	old_do("SELECT @.session_begin(10000000000, 'old')", &old.session);
	old.batch = 0;
}

void scene_make(void)
{
	static struct text text;

	bench_make();
	bench_sql("DROP SCHEMA @ CASCADE");
	text.bytes = 0;
	for (const char *const *line = version_1; *line != NULL; line++)
		text_add(&text, *line, strlen(*line));
	bench_sql(text.at);
	bench_sql("INSERT INTO @.kind (name) VALUES ('mail'), ('call')");
	(void)bench_now();
	bench_sql(
		"INSERT INTO @.timer (serial, place, due, kind) SELECT i, 7, @.now_ns() - 100 + i, "
		"1 FROM generate_series(1, 16) AS i");
	old.connection = server_connect();
	old_session_begin();
}

void scene_end(void)
{
	PQfinish(old.connection);
	bench_end();
}

int upgrade(void)
{
	PGconn *connection = server_connect();
	int error = tw_durable_postgres_migrate(connection, bench_postgres.schema);

	PQfinish(connection);
	return error;
}

void clock_stop(void)
{
	bench_sql("CREATE OR REPLACE FUNCTION @.now_ns() RETURNS bigint LANGUAGE sql VOLATILE AS "
		  "'SELECT ns FROM @.clock'");
}

void upgrade_done(void)
{
	check_int(upgrade(), 0);
	clock_stop();
}

void upgrade_text(struct text *text)
{
	text->bytes = 0;
	check_int(tw_durable_postgres_upgrade_sql(bench_postgres.schema, 1, text_add, text), 0);
}

char *step_4(struct text *text)
{
	char *step = strstr(text->at, "-- Step 4");

	cr_assert(step != NULL);
	step[-1] = '\0';
	*strstr(step, "COMMIT;") = '\0';
	return step;
}

void text_run(PGconn *connection, char *text, char ret_state[6])
{
	ret_state[0] = '\0';
	for (char *next; text != NULL && ret_state[0] == '\0'; text = next) {
		PGresult *result;
		const char *state;

		next = strstr(text + 1, "-- Step ");
		if (next != NULL)
			next[-1] = '\0';
		result = PQexec(connection, text);
		state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
		snprintf(ret_state, 6, "%s", state == NULL ? "" : state);
		PQclear(result);
	}
	if (PQtransactionStatus(connection) != PQTRANS_IDLE)
		PQclear(PQexec(connection, "ROLLBACK"));
}

void upgrade_prepare(PGconn *connection, struct text *text, char **ret_last)
{
	char state[6];

	upgrade_text(text);
	*ret_last = step_4(text);
	text_run(connection, text->at, state);
	cr_assert(state[0] == '\0', "%s", PQerrorMessage(connection));
}

void good(PGconn *connection, const char *text)
{
	PGresult *result = PQexec(connection, text);

	cr_assert(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(connection));
	PQclear(result);
}

void blocked_wait(PGconn *connection, const char *table)
{
	char text[192];

	snprintf(text, sizeof text,
		 "SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted AND relation = "
		 "'@.%s'::regclass",
		 PQbackendPID(connection), table);
	while (bench_sql(text) == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
