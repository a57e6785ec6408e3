/* SPDX-License-Identifier: MIT */
/*
 * How the upgrade of a schema runs: beside other programs, with and without rights, as a text, and
 * when it fails.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_upgrade.h"

#include "durable/postgres/errors.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

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
