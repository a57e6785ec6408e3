/* SPDX-License-Identifier: MIT */
/*
 * Cases that only a server with transactions has: rows that are committed late, rows that are
 * locked, and a server that stands still.
 *
 * Seen to fail with the defects of planted.py, and with a query that waits like libpq's own calls
 * (then the test hangs).
 */
#include "bench_postgres.h"
#include "durable/postgres/ask.h"

#include <signal.h>
#include <sys/socket.h>
#include <time.h>

/* A long transaction commits a row whose deadline is before those that were claimed meanwhile. */
Test(locks, a_row_that_is_committed_late_is_claimed, .init = bench_make, .fini = bench_end)
{
	PGconn *slow = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	struct tw_durable_postgres_spec spec = {.size = sizeof spec, .kind = "mail"};

	bench_open(0);
	PQclear(PQexec(slow, "BEGIN"));
	spec.due_ns = bench_now();
	check_int(tw_durable_postgres_schedule_in(slow, bench_postgres.schema, &spec, NULL), 0);
	for (uint64_t i = 1; i <= 30; i++)
		check_int(bench_put(0, i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	check_int(bench_claim_most(0, 10), 10);
	PQclear(PQexec(slow, "COMMIT"));
	PQfinish(slow);
	/*
	 * The next claim continues after the last claimed row. A claim that returns fewer rows than
	 * its limit is followed by one from the beginning, which finds the late row.
	 */
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 11);
	check_int(bench_claim_most(0, 11), 10);
	check_int(bench_claim_most(0, 10), 1);
	check_true(bench.rows[0].row.id.serial > 30);
}

/*
 * Claims that always reach their limit must not go on for ever: after some time a claim starts from
 * the beginning.
 */
Test(locks, a_whole_claim_comes_after_a_while, .init = bench_make, .fini = bench_end)
{
	struct twi_postgres *store;

	bench_open(0);
	store = bench.stores[0].store;
	for (uint64_t i = 1; i <= 30; i++)
		check_int(bench_put(0, i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench_put(0, 31, 0), TW_DURABLE_DONE);
	store->whole_at_ns = 0;
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 11);
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 31);
}

/* Checks the server's count of the rows that a transaction has read. */
Test(locks, a_claim_reads_no_timers_that_are_far, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_sql("INSERT INTO @.timer (serial, place, due, kind) SELECT i, 7, @.now_ns() + "
		  "3600000000000 + i, 1 FROM generate_series(1, 2000) AS i");
	bench_sql("SET enable_seqscan = off");
	bench_sql("BEGIN");
	check_int(bench_server.claim_by_hand(bench.stores[0].store, 1), 0);
	check_int(bench_sql("SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables "
			    "WHERE schemaname = '@' AND relname = 'timer'"),
		  0);
	bench_sql("ROLLBACK");
}

/* The server counts the index entries that a connection reads, also those of dead rows. */
static int64_t entries_read(void)
{
	return bench_sql("SELECT pg_stat_get_xact_tuples_returned('@.session_pkey'::regclass)");
}

Test(locks, a_batch_reads_no_old_versions_of_its_session, .init = bench_make, .fini = bench_end)
{
	PGconn *holder = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	int64_t before;

	PQclear(PQexec(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
	PQclear(PQexec(holder, "SELECT count(*) FROM pg_class"));
	bench_sql("INSERT INTO @.session (id, name, version) VALUES (7, '', 2); INSERT INTO "
		  "@.beat VALUES (7, @.now_ns() + 3600000000000)");
	bench_sql("SET enable_seqscan = off");
	bench_sql("DO $$ BEGIN FOR i IN 1..500 LOOP PERFORM @.batch_begin(7, i, false); COMMIT; "
		  "END LOOP; END $$");
	bench_sql("BEGIN");
	before = entries_read();
	bench_sql("SELECT @.batch_begin(7, 501, false)");
	bench_sql("SELECT * FROM @.keep(7, ARRAY[ROW(-1, 0, 0, 8)::@.outcome])");
	check_at_most(entries_read() - before, 10);
	bench_sql("ROLLBACK");
	PQfinish(holder);
}

/* The session's row is locked, because a batch of the session is under way. */
Test(locks, a_session_does_not_end_in_the_middle_of_a_batch, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_put_claimed(0, 1, 0);
	((struct twi_postgres *)bench.stores[0].store)->link.beat_at_ns = INT64_MAX;
	bench_pass(21 * SECOND / 2);
	bench_open(1);
	bench_sql("BEGIN");
	bench_sql("SELECT 1 FROM @.session WHERE id = (SELECT min(id) FROM @.session) FOR UPDATE");
	check_int(bench_claim(1), 0);
	bench_sql("COMMIT");
	check_int(bench_claim(1), 1);
}

/* The test stops the server's process, which looks like a silent network. */
Test(locks, a_question_does_not_wait_for_ever, .init = bench_make, .fini = bench_end, .timeout = 60)
{
	PGconn *connection = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	PGresult *result = twi_postgres_ask(connection, "SELECT 7; SELECT 8", 60 * SECOND);

	check_int(PQresultStatus(result), PGRES_TUPLES_OK);
	check_int(atoi(PQgetvalue(result, 0, 0)), 8);
	PQclear(result);
	check_int(PQisnonblocking(connection), 0);
	check_int(kill(PQbackendPID(connection), SIGSTOP), 0);
	check_true(twi_postgres_ask(connection, "SELECT 7", SECOND / 10) == NULL);
	check_int(kill(PQbackendPID(connection), SIGCONT), 0);
	PQfinish(connection);
}

/*
 * The test cuts the connection for heartbeats while a statement waits. The wait must not become a
 * busy loop.
 */
Test(locks, a_wait_beside_a_broken_connection_takes_no_time, .init = bench_make, .fini = bench_end)
{
	struct twi_postgres *store;
	PGresult *result;
	clock_t begin;

	bench_open(0);
	store = bench.stores[0].store;
	check_true(!store->link.beat_waits);
	check_int(shutdown(PQsocket(store->link.beats), SHUT_RDWR), 0);
	bench_sql("BEGIN");
	bench_sql("LOCK TABLE @.timer IN ACCESS EXCLUSIVE MODE");
	check_int(PQsendQuery(bench_postgres.connection, "SELECT pg_sleep(0.5); COMMIT"), 1);
	begin = clock();
	check_int(bench_find(0, 1), -ENOENT);
	check_at_most((int64_t)(clock() - begin) * 1000 / CLOCKS_PER_SEC, 30);
	while ((result = PQgetResult(bench_postgres.connection)) != NULL)
		PQclear(result);
}
