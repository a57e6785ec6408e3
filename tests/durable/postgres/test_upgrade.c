/* SPDX-License-Identifier: MIT */
/*
 * A schema of version 1 is upgraded while a process of version 1 uses it.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_upgrade.h"

#include "durable/postgres/text.h"

#include <stdio.h>

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

/*
 * Sends a statement of version 1 that waits for `table` until the upgrade has ended. If `table` is
 * the table of sessions, the connection first makes a claim, which reads the columns of the timers.
 * Without this claim the statement itself would read them, and would wait for the table of timers
 * instead. Sets ret_state to the statement's SQL state.
 */
static void during_upgrade(const char *text, const char *table, char ret_state[6])
{
	static struct text upgrade;
	char *sql = twi_postgres_text(text, bench_postgres.schema), *last;
	PGconn *by = server_connect();
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

/* A transaction with REPEATABLE READ does not see the new columns in pg_attribute. */
Test(upgrade, an_old_claim_with_an_old_snapshot_is_sent_again, .init = scene_make,
     .fini = scene_end, .timeout = 120)
{
	char state[6], sql[200];

	old_do("SET default_transaction_isolation = 'repeatable read'", NULL);
	snprintf(sql, sizeof sql,
		 "SELECT " COLUMNS " FROM @.claim(%lld, 5, 5000000000, '{1,2}', 4)", old.session);
	during_upgrade(sql, "session", state);
	check_true(strcmp(state, "40001") == 0);
	check_int(old_claim(4), 4);
}

/*
 * session_begin() waits for the table `meta` when it has begun already. So after the upgrade, the
 * body of version 1 continues.
 */
Test(upgrade, an_old_session_that_begins_meanwhile_has_version_1, .init = scene_make,
     .fini = scene_end, .timeout = 120)
{
	char state[6];

	during_upgrade("SELECT @.session_begin(10000000000, 'late')", "meta", state);
	check_true(strcmp(state, "") == 0);
	old.session = bench_sql("SELECT id FROM @.session WHERE name = 'late' AND version = 1 "
				"AND pid = 0");
	check_int(old_claim(2), 2);
	check_int(old_start(1), 0);
	check_true(old_finish(1, old.session));
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
	PGconn *by = server_connect(), *user = server_connect();
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
