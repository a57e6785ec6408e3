/* SPDX-License-Identifier: MIT */
/*
 * A schema of version 1 is upgraded while a process of version 1 uses it. The test sends the
 * statements of such a process.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_postgres.h"
#include "version_1.h"

#include "durable/postgres/errors.h"
#include "durable/postgres/text.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define COLUMNS "serial, place, due, attempt, session, version, kind, started, key, payload"

enum { KEPT = 16 }; /* timers of a scene */

/* A process of version 1. */
struct old {
	PGconn *connection;
	long long session, batch;
};

static struct old old;

struct text {
	char at[65536];
	size_t bytes;
};

static void text_add(void *to, const char *bytes, size_t count)
{
	struct text *text = to;

	cr_assert(text->bytes + count < sizeof text->at);
	memcpy(text->at + text->bytes, bytes, count);
	text->bytes += count;
	text->at[text->bytes] = '\0';
}

static PGconn *connect(void)
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

/* Runs SQL that must succeed. Returns the number of rows. */
static int old_do(const char *text, long long *ret_number)
{
	char state[6];
	int rows = old_rows(text, state, ret_number);

	cr_assert(rows >= 0, "%s: %s", state, PQerrorMessage(old.connection));
	return rows;
}

static int old_claim(int most)
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

static int old_start(int serial)
{
	char text[160];

	snprintf(text, sizeof text, "op_start(%lld, '{0}', '{7}', '{%d}', '{1}', '{%lld}')",
		 old.session, serial, old.session);
	return old_batch(text);
}

static int old_end(int serial)
{
	char text[160];

	snprintf(text, sizeof text, "op_delete(%lld, '{0}', '{7}', '{%d}', '{%lld}', '{true}')",
		 old.session, serial, old.session);
	return old_batch(text);
}

/* Ends a run in a transaction, like a user. Returns false if the server refuses the fence. */
static bool old_finish(long long serial, long long fence)
{
	char text[160];
	long long done = 0;

	snprintf(text, sizeof text, "SELECT @.finish(7, %lld, %lld, 1)::integer", serial, fence);
	old_do(text, &done);
	return done == 1;
}

static void old_session_begin(void)
{
	old_do("SELECT @.session_begin(10000000000, 'old')", &old.session);
	old.batch = 0;
}

/* Makes a schema of version 1 with KEPT free timers of the kind "mail", which are due. */
static void scene_make(void)
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
	old.connection = connect();
	old_session_begin();
}

static void scene_end(void)
{
	PQfinish(old.connection);
	bench_end();
}

static int upgrade(void)
{
	PGconn *connection = connect();
	int error = tw_durable_postgres_migrate(connection, bench_postgres.schema);

	PQfinish(connection);
	return error;
}

/* The clock of the tests is one of the functions that an upgrade replaces. */
static void clock_stop(void)
{
	bench_sql("CREATE OR REPLACE FUNCTION @.now_ns() RETURNS bigint LANGUAGE sql VOLATILE AS "
		  "'SELECT ns FROM @.clock'");
}

static void upgrade_done(void)
{
	check_int(upgrade(), 0);
	clock_stop();
}

Test(upgrade, old_claims_are_confirmed_and_ended, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	long long before = 0;

	check_int(old_claim(6), 6);
	check_int(old_start(1), 0);
	check_int(old_start(2), 0);
	upgrade_done();
	bench_pass(SECOND);
	check_int(bench_sql("SELECT version FROM @.meta"), 2);
	check_int(old_start(3), 0);
	check_int(old_start(4), 0);
	check_int(old_end(1), 0);
	check_int(old_end(3), 0);
	/* The fence is the session's number, for runs from before the upgrade and from after it. */
	before = old.session;
	check_true(!old_finish(2, before - 1) && !old_finish(4, before - 1));
	check_true(old_finish(2, before) && old_finish(4, before));
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE started"), 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE session <> 0"), 2);
	/*
	 * The new process claims all timers that the old process has not claimed. Each run ends
	 * once.
	 */
	bench_open(0);
	check_int(bench_claim(0), KEPT - 6);
	bench_pass(SECOND);
	for (size_t i = 0; i < bench.count; i++)
		check_true(bench.rows[i].row.id.serial > 6 && !bench.rows[i].row.started);
	check_int(old_claim(6), 0);
	check_int(bench_start(0, 7, 1), TW_DURABLE_DONE);
	check_true(!old_finish(7, old.session));
	check_true(!old_finish(7, (long long)bench.sessions[0].number));
	check_int(old_start(5), 0);
	check_int(old_end(5), 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), KEPT - 5);
}

/* An attempt that began in version 1 and did not end stays marked after the upgrade. */
Test(upgrade, attempts_of_dead_processes_stay_open, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	char text[96];

	check_int(old_claim(2), 2);
	check_int(old_start(1), 0);
	check_int(old_start(2), 0);
	/* Timer 1 is freed before the upgrade, timer 2 after it. */
	bench_sql("UPDATE @.timer SET session = 0 WHERE serial = 1");
	upgrade_done();
	snprintf(text, sizeof text, "SELECT @.session_end(%lld)", old.session);
	old_do(text, NULL);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE started"), 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE open AND fence > 0"), 2);
	/*
	 * A process of version 1 does not claim the two timers, because it could not keep their
	 * marks.
	 */
	old_session_begin();
	check_int(old_claim(KEPT), KEPT - 2);
	bench_open(0);
	check_int(bench_claim(0), 2);
	check_true(bench.rows[0].row.started && bench.rows[1].row.started);
}

/* Reads the text of the upgrade. *ret_last is its last step, without the COMMIT. */
static void upgrade_text(struct text *text, char **ret_last)
{
	text->bytes = 0;
	check_int(tw_durable_postgres_upgrade_sql(bench_postgres.schema, 1, text_add, text), 0);
	*ret_last = strstr(text->at, "BEGIN ISOLATION LEVEL");
	cr_assert(*ret_last != NULL);
	*strstr(*ret_last, "COMMIT;") = '\0';
}

/* Runs the steps before the last one, one by one. */
static void upgrade_prepare(PGconn *connection, struct text *text, char **ret_last)
{
	upgrade_text(text, ret_last);
	for (char *step = strstr(text->at, "-- Step "), *next; step < *ret_last; step = next) {
		PGresult *result;

		next = strstr(step + 1, "-- Step ");
		if (next == NULL)
			break;
		next[-1] = '\0';
		result = PQexec(connection, step);
		cr_assert(PQresultStatus(result) == PGRES_COMMAND_OK, "%s",
			  PQerrorMessage(connection));
		PQclear(result);
	}
}

static void good(PGconn *connection, const char *text)
{
	PGresult *result = PQexec(connection, text);

	cr_assert(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(connection));
	PQclear(result);
}

/* Waits until the connection's statement waits for a lock of a table. */
static void blocked_wait(PGconn *connection, const char *table)
{
	char text[192];

	snprintf(text, sizeof text,
		 "SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted AND relation = "
		 "'@.%s'::regclass",
		 PQbackendPID(connection), table);
	while (bench_sql(text) == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/*
 * Sends a statement of version 1 that waits for `table` until the upgrade has ended. If `table` is
 * the table of sessions, the connection first makes a claim, which reads the columns of the timers.
 * Otherwise the statement would read them, and would wait for the table of timers. *ret_state: the
 * statement's SQL state.
 */
static void during_upgrade(const char *text, const char *table, char ret_state[6])
{
	static struct text upgrade;
	char *sql = twi_postgres_text(text, bench_postgres.schema), *last;
	PGconn *by = connect();
	PGresult *result;
	const char *state;

	upgrade_prepare(by, &upgrade, &last);
	if (strcmp(table, "session") == 0)
		check_int(old_claim(1), 1);
	good(by, last);
	check_int(PQsendQuery(old.connection, sql), 1);
	blocked_wait(old.connection, table);
	good(by, "COMMIT");
	result = PQgetResult(old.connection);
	state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	snprintf(ret_state, 6, "%s", state == NULL ? "" : state);
	PQclear(result);
	while ((result = PQgetResult(old.connection)) != NULL)
		PQclear(result);
	free(sql);
	PQfinish(by);
	clock_stop();
}

/*
 * A process that has claimed before knows the columns, and waits inside the claim. Without step 1
 * of the upgrade the claim would fail with SQL state 42804, which ends the process.
 */
Test(upgrade, an_old_claim_that_waits_is_sent_again, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	char state[6], sql[200];

	snprintf(sql, sizeof sql,
		 "SELECT " COLUMNS " FROM @.claim(%lld, 5, 5000000000, '{1,2}', 4)", old.session);
	during_upgrade(sql, "session", state);
	check_true(strcmp(state, "40001") == 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE session <> 0"), 1);
	check_int(old_claim(4), 4);
}

/*
 * The first claim of a connection waits while it reads the columns. After the wait it reads the new
 * columns.
 */
Test(upgrade, an_old_claim_that_waits_for_the_columns_is_done, .init = scene_make,
     .fini = scene_end, .timeout = 120)
{
	char state[6], sql[200];

	snprintf(sql, sizeof sql,
		 "SELECT " COLUMNS " FROM @.claim(%lld, 5, 5000000000, '{1,2}', 4)", old.session);
	during_upgrade(sql, "timer", state);
	check_true(strcmp(state, "") == 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE session <> 0"), 4);
}

Test(upgrade, an_old_batch_that_waits_is_done, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	char state[6], sql[240];

	/* To the server, a batch of libpq's pipeline looks like this text: one transaction. */
	snprintf(sql, sizeof sql,
		 "SELECT @.batch_begin(%lld, 1); SELECT * FROM @.op_start(%lld, '{0}', '{7}', "
		 "'{1}', "
		 "'{1}', '{%lld}')",
		 old.session, old.session, old.session);
	during_upgrade(sql, "session", state);
	check_true(strcmp(state, "") == 0);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE started AND open"), 1);
}

/* A user's transaction holds the table: processes go on meanwhile. */
Test(upgrade, an_upgrade_that_waits_holds_no_process_up, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	static struct text text;
	PGconn *by = connect(), *user = connect();
	struct tw_durable_postgres_spec spec = {
		.size = sizeof spec, .kind = "mail", .key = "k", .key_bytes = 1};
	PGresult *result;
	char *last;

	upgrade_prepare(by, &text, &last);
	good(user, "BEGIN");
	spec.due_ns = bench_now();
	check_int(tw_durable_postgres_schedule_in(user, bench_postgres.schema, &spec, NULL), 0);
	check_int(PQsendQuery(by, last), 1);
	for (int i = 0; i < 2; i++) {
		blocked_wait(by, "timer");
		/* The claim waits until the upgrade gives its locks up, after half a second. */
		check_int(old_claim(1), 1);
	}
	check_int(bench_sql("SELECT version FROM @.meta"), 1);
	good(user, "COMMIT");
	while ((result = PQgetResult(by)) != NULL) {
		check_int(PQresultStatus(result), PGRES_COMMAND_OK);
		PQclear(result);
	}
	good(by, "COMMIT");
	check_int(bench_sql("SELECT version FROM @.meta"), 2);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), KEPT + 1);
	PQfinish(user);
	PQfinish(by);
}

static void *upgrade_thread(void *to)
{
	*(int *)to = upgrade();
	return NULL;
}

Test(upgrade, several_processes_upgrade_at_once, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	pthread_t threads[3];
	int codes[3] = {1, 1, 1};

	for (int i = 0; i < 3; i++)
		check_int(pthread_create(&threads[i], NULL, upgrade_thread, &codes[i]), 0);
	for (int i = 0; i < 3; i++) {
		check_int(pthread_join(threads[i], NULL), 0);
		check_int(codes[i], 0);
	}
	check_int(bench_sql("SELECT version FROM @.meta"), 2);
	check_int(upgrade(), 0);
}

Test(upgrade, the_text_refuses_another_version, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	static struct text text;
	PGconn *by = connect();
	PGresult *result;
	char *last;

	check_int(upgrade(), 0);
	upgrade_text(&text, &last);
	result = PQexec(by, last);
	check_true(strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "TW002") == 0);
	check_int(twi_postgres_error(by, result), -ENOTSUP);
	PQclear(result);
	PQfinish(by);
}

Test(upgrade, an_upgrade_that_fails_changes_nothing, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	static const char *const kinds[] = {"mail"};

	/* An earlier try has left an index, and the last step fails. */
	bench_sql("CREATE INDEX timer_next ON @.timer (place); ALTER TABLE @.session RENAME "
		  "CONSTRAINT session_pkey TO odd");
	check_int(upgrade(), -EUCLEAN);
	check_int(bench_sql("SELECT version FROM @.meta"), 1);
	check_int(old_claim(2), 2);
	check_int(bench_try_open(0, kinds, 1), -ENOTSUP);
	bench_close(0);
	bench_sql("ALTER TABLE @.session RENAME CONSTRAINT odd TO session_pkey");
	upgrade_done();
	check_int(old_claim(2), 2);
	bench_open(0);
	check_int(bench_claim(0), KEPT - 4);
}

Test(upgrade, a_role_that_does_not_own_the_schema_is_refused, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	PGconn *by = connect();
	char text[256];

	bench_sql(
		"CREATE ROLE @_guest; GRANT USAGE ON SCHEMA @ TO @_guest; GRANT ALL ON ALL TABLES "
		"IN SCHEMA @ TO @_guest");
	snprintf(text, sizeof text, "SET ROLE %s_guest", bench_postgres.schema);
	good(by, text);
	check_int(tw_durable_postgres_migrate(by, bench_postgres.schema), -EACCES);
	check_int(bench_sql("SELECT version FROM @.meta"), 1);
	PQfinish(by);
	bench_sql("DROP OWNED BY @_guest; DROP ROLE @_guest");
}

/* Compares columns, indexes and functions, without the functions that only version 1 calls. */
Test(upgrade, an_upgraded_schema_is_as_a_new_one, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	/* The schema's name is appended to each text. */
	static const char *const texts[] = {
		"SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), "
		"attnotnull, coalesce(pg_get_expr(adbin, adrelid), '') FROM pg_attribute JOIN "
		"pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef d ON adrelid = attrelid AND "
		"adnum = attnum WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped AND "
		"relnamespace = ",
		"SELECT pg_get_indexdef(c.oid), '', '', true, '' FROM pg_class c WHERE "
		"relkind = 'i' AND relnamespace = ",
		"SELECT pg_get_functiondef(oid), '', '', true, '' FROM pg_proc WHERE "
		"pronamespace = ",
	};
	PGconn *connection = connect();
	char fresh[64];

	upgrade_done();
	bench_sql(
		"DROP TABLE @.clock; DROP FUNCTION @.reap(integer), @.session_hold(bigint), "
		"@.session_begin(bigint, text), @.batch_begin(bigint, bigint), @.claim(bigint, "
		"bigint, bigint, integer[], integer), @.give_back(bigint, bigint[]); DROP FUNCTION "
		"@.now_ns()");
	snprintf(fresh, sizeof fresh, "%s_new", bench_postgres.schema);
	check_int(tw_durable_postgres_migrate(connection, fresh), 0);
	bench_sql("DROP FUNCTION @_new.now_ns()");
	bench_sql("SET search_path = pg_catalog");
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char both[1600];

		snprintf(both, sizeof both,
			 "WITH a AS (SELECT replace(x::text, '@_new', '@') FROM "
			 "(%s'@_new'::regnamespace) AS x), b AS (SELECT x::text FROM "
			 "(%s'@'::regnamespace) AS x) SELECT count(*) FROM ((TABLE a EXCEPT "
			 "TABLE b) UNION ALL (TABLE b EXCEPT TABLE a)) AS d",
			 texts[i], texts[i]);
		check_int(bench_sql(both), 0);
	}
	bench_sql("DROP SCHEMA @_new CASCADE");
	PQfinish(connection);
}
