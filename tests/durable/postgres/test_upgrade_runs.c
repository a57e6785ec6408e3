/* SPDX-License-Identifier: MIT */
/*
 * Tests runs of a schema's upgrade: next to other programs, with and without rights, as a text of
 * SQL, and with failures.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_upgrade.h"

#include "durable/postgres/errors.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

/* Count the index that the upgrade makes first, and the advisory locks, one of which it holds. */
#define NEXT_COUNT                                                                                 \
	"SELECT count(*) FROM pg_indexes WHERE schemaname = '@' AND indexname = 'timer_next'"
#define LOCK_COUNT "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"

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
	PGconn *by = server_connect();
	PGresult *result;
	char state[6];

	check_int(upgrade(), 0);
	upgrade_text(&text);
	result = PQexec(by, step_4(&text));
	check_true(strcmp(PQresultErrorField(result, PG_DIAG_SQLSTATE), "TW002") == 0);
	check_int(twi_postgres_error(by, result), -ENOTSUP);
	PQclear(result);
	PQclear(PQexec(by, "ROLLBACK"));
	upgrade_text(&text);
	text_run(by, text.at, state);
	check_true(strcmp(state, "TW002") == 0);
	check_int(bench_sql(NEXT_COUNT), 0);
	check_int(bench_sql(LOCK_COUNT), 0);
	PQfinish(by);
}

Test(upgrade, the_text_leaves_a_new_schema_as_it_is, .init = bench_make, .fini = bench_end,
     .timeout = 120)
{
	static struct text text;
	PGconn *by = server_connect();
	char state[6];

	upgrade_text(&text);
	text_run(by, text.at, state);
	check_true(strcmp(state, "TW002") == 0);
	check_int(bench_sql(NEXT_COUNT), 0);
	check_int(bench_sql("SELECT count(*) FROM pg_proc WHERE proname = 'session_hold'"), 0);
	PQfinish(by);
}

Test(upgrade, one_text_runs_at_a_time, .init = scene_make, .fini = scene_end, .timeout = 120)
{
	static struct text text;
	PGconn *by = server_connect(), *other = server_connect();
	char state[6], *last;

	upgrade_prepare(by, &text, &last);
	upgrade_text(&text);
	text_run(other, text.at, state);
	check_true(strcmp(state, "55P03") == 0);
	check_int(bench_sql(NEXT_COUNT), 1);
	/* The end of a connection releases its lock. The next try completes the first one's work. */
	PQfinish(by);
	while (bench_sql(LOCK_COUNT) != 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	upgrade_text(&text);
	text_run(other, text.at, state);
	check_true(strcmp(state, "") == 0);
	check_int(bench_sql("SELECT version FROM @.meta"), 2);
	check_int(bench_sql(NEXT_COUNT), 0);
	check_int(bench_sql(LOCK_COUNT), 0);
	PQfinish(other);
}

/*
 * A reader's snapshot keeps the upgrade waiting. A process that makes another schema must not wait
 * for the upgrade inside a statement. The upgrade would wait for the snapshot of that statement.
 */
Test(upgrade, another_schema_is_made_meanwhile, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	PGconn *reader = server_connect(), *maker = server_connect();
	pthread_t thread;
	char fresh[64];
	int code = 1;

	good(reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT 1");
	check_int(pthread_create(&thread, NULL, upgrade_thread, &code), 0);
	while (bench_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'virtualxid' AND NOT "
			 "granted") == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	good(maker, "SET lock_timeout = 30000");
	/* Takes the lock that a process of version 1 takes before it makes a schema. */
	good(maker, "BEGIN; SELECT pg_advisory_xact_lock(8390876205174681446); COMMIT");
	snprintf(fresh, sizeof fresh, "%s_new", bench_postgres.schema);
	check_int(tw_durable_postgres_migrate(maker, fresh), 0);
	check_int(bench_sql("SELECT version FROM @.meta"), 1);
	good(reader, "COMMIT");
	check_int(pthread_join(thread, NULL), 0);
	check_int(code, 0);
	bench_sql("DROP SCHEMA @_new CASCADE");
	PQfinish(reader);
	PQfinish(maker);
}

/* Makes the server remove dead rows of the timers, slowly. */
static void autovacuum_begin(void)
{
	bench_sql("ALTER TABLE @.timer SET (autovacuum_vacuum_threshold = 0, "
		  "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 100, "
		  "autovacuum_vacuum_cost_limit = 1)");
	bench_sql("INSERT INTO @.timer (serial, place, due, kind, payload) SELECT 100 + i, 7, i, "
		  "1, decode(repeat('00', 1500), 'hex') FROM generate_series(1, 4000) AS i");
	bench_sql("DELETE FROM @.timer WHERE serial > 100");
	bench_sql("ALTER SYSTEM SET autovacuum_naptime = 1");
	bench_sql("SELECT pg_reload_conf()");
	while (bench_sql("SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE "
			 "backend_type = 'autovacuum worker' AND granted AND relation = "
			 "'@.timer'::regclass AND mode = 'ShareUpdateExclusiveLock'") == 0)
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	bench_sql("ALTER SYSTEM RESET autovacuum_naptime");
	bench_sql("SELECT pg_reload_conf()");
}

/* The autovacuum would take minutes. */
Test(upgrade, an_upgrade_ends_an_autovacuum, .init = scene_make, .fini = scene_end, .timeout = 120)
{
	static struct text text;
	PGconn *by = server_connect();
	char *last;

	upgrade_prepare(by, &text, &last);
	autovacuum_begin();
	good(by, last);
	good(by, "COMMIT");
	check_int(bench_sql("SELECT version FROM @.meta"), 2);
	check_int(old_claim(KEPT), KEPT);
	PQfinish(by);
}

Test(upgrade, an_upgrade_that_fails_changes_nothing, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	static const char *const kinds[] = {"mail"};
	PGconn *by = server_connect();

	/* An earlier try has left an index, and the last step fails. */
	bench_sql("CREATE INDEX timer_next ON @.timer (place); ALTER TABLE @.session RENAME "
		  "CONSTRAINT session_pkey TO odd");
	check_int(tw_durable_postgres_migrate(by, bench_postgres.schema), -EUCLEAN);
	check_int(bench_sql(LOCK_COUNT), 0);
	check_int(bench_sql("SELECT version FROM @.meta"), 1);
	check_int(old_claim(2), 2);
	check_int(bench_try_open(0, kinds, 1), -ENOTSUP);
	bench_close(0);
	bench_sql("ALTER TABLE @.session RENAME CONSTRAINT odd TO session_pkey");
	check_int(tw_durable_postgres_migrate(by, bench_postgres.schema), 0);
	check_int(bench_sql(LOCK_COUNT), 0);
	PQfinish(by);
	clock_stop();
	check_int(old_claim(2), 2);
	bench_open(0);
	check_int(bench_claim(0), KEPT - 4);
}

Test(upgrade, a_role_that_does_not_own_the_schema_is_refused, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	PGconn *by = server_connect();
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

/* Returns how many functions a role may not call. */
static int64_t functions_closed(const char *role)
{
	char text[192];

	snprintf(text, sizeof text,
		 "SELECT count(*) FROM pg_proc WHERE pronamespace = '@'::regnamespace AND NOT "
		 "has_function_privilege('%s', oid, 'EXECUTE')",
		 role);
	return bench_sql(text);
}

/* Upgrades while, by default, only the owner of a new function may call it. */
static void upgrade_closed(void)
{
	bench_sql("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC");
	check_int(upgrade(), 0);
	bench_sql("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC");
	clock_stop();
}

/* Makes a new role. Of all roles but the owner, only this role may call the functions. */
static void guest_make(void)
{
	bench_sql("CREATE ROLE @_guest; GRANT USAGE ON SCHEMA @ TO @_guest; GRANT ALL ON ALL "
		  "TABLES IN SCHEMA @ TO @_guest; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA @ FROM "
		  "PUBLIC; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA @ TO @_guest");
}

static void guest_end(void)
{
	bench_sql("DROP OWNED BY @_guest; DROP ROLE @_guest");
}

Test(upgrade, a_role_may_call_the_new_functions, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	guest_make();
	old_do("SET ROLE @_guest", NULL);
	check_int(old_claim(1), 1);
	upgrade_closed();
	check_int(functions_closed("@_guest"), 0);
	check_int(old_claim(2), 2);
	check_int(old_start(2), 0);
	old_session_begin();
	check_int(old_claim(KEPT), KEPT - 3);
	old_do("RESET ROLE", NULL);
	guest_end();
}

Test(upgrade, other_roles_may_not_call_the_new_functions, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	int64_t all;

	guest_make();
	check_int(upgrade(), 0);
	all = bench_sql("SELECT count(*) FROM pg_proc WHERE pronamespace = '@'::regnamespace");
	check_int(functions_closed("public"), all);
	check_int(functions_closed("@_guest"), 0);
	guest_end();
}

Test(upgrade, all_roles_may_call_the_new_functions, .init = scene_make, .fini = scene_end,
     .timeout = 120)
{
	upgrade_closed();
	check_int(functions_closed("public"), 0);
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
	PGconn *connection = server_connect();
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
