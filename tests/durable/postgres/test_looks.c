/* SPDX-License-Identifier: MIT */
/*
 * If a claim that began at the first row took long, later claims begin at recent rows. Then the
 * store searches for older rows over a connection of its own. Such a search is a look.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_postgres.h"

#include <signal.h>

static struct twi_postgres *store_of(int number)
{
	return bench.stores[number].store;
}

/*
 * Brings the store into the state after a claim from the first row that took long. Looks end after
 * a time without slow claims. So this function sets the time of the last slow claim far into the
 * future, and the looks go on.
 */
static void looks_begin(int number)
{
	struct twi_postgres *store = store_of(number);

	check_int(bench_claim(number), 0);
	store->look.retry_ns = 0;
	twi_look_judge(store, 0, 0);
	check_true(store->look.connection != NULL);
	store->look.slow_ns = INT64_MAX;
}

/* Waits until a look has found rows. */
static void look(int number)
{
	store_of(number)->look.at_ns = 0;
	while (store_of(number)->look.found == NULL)
		bench_beat(number);
}

/* Inserts free timers of the kind "mail", whose deadlines are long past. */
static void put_old(int count)
{
	char text[256];

	snprintf(text, sizeof text,
		 "INSERT INTO @.timer (serial, place, due, kind) SELECT i, 7, %lld + i, 1 "
		 "FROM generate_series(1, %d) AS i",
		 (long long)(bench_now() - 1000 * SECOND), count);
	bench_sql(text);
}

/* The test stops the server's process that serves the look. */
Test(looks, a_claim_does_not_wait_for_a_look, .init = bench_make, .fini = bench_end, .timeout = 60)
{
	struct twi_postgres *store;
	pid_t process;

	bench_open(0);
	looks_begin(0);
	store = store_of(0);
	process = PQbackendPID(store->look.connection);
	check_int(kill(process, SIGSTOP), 0);
	put_old(1);
	bench_beat(0);
	check_true(store->look.waits);
	bench_beat(0);
	check_int(bench_put(0, 2, 0), TW_DURABLE_DONE);
	store->whole_at_ns = 0;
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 2);
	check_true(store->look.waits && store->look.found == NULL);
	check_int(kill(process, SIGCONT), 0);
	while (store->look.found == NULL)
		bench_beat(0);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 1);
}

/*
 * A row is recent if its deadline passed less than 5 s ago, half the time of a session. Only a look
 * finds older rows.
 */
Test(looks, a_row_that_is_committed_late_is_found, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	PGconn *slow = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	struct tw_durable_postgres_spec spec = {.size = sizeof spec, .kind = "mail"};

	bench_open(0);
	looks_begin(0);
	PQclear(PQexec(slow, "BEGIN"));
	spec.due_ns = bench_now();
	check_int(tw_durable_postgres_schedule_in(slow, bench_postgres.schema, &spec, NULL), 0);
	bench_pass(6 * SECOND);
	check_int(bench_claim(0), 0);
	PQclear(PQexec(slow, "COMMIT"));
	PQfinish(slow);
	look(0);
	check_int(bench_claim(0), 1);
	check_true(store_of(0)->look.found == NULL);
}

/* Rows whose deadlines passed less than 5 s ago, half the time of a session, are still recent. */
Test(looks, a_row_that_is_committed_a_little_late_needs_no_look, .init = bench_make,
     .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	store_of(0)->look.at_ns = INT64_MAX;
	check_int(bench_put(0, 1, -4 * SECOND), TW_DURABLE_DONE);
	check_int(bench_claim(0), 1);
}

Test(looks, a_claim_leaves_what_another_has_claimed_since, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	bench_open(0);
	bench_open(1);
	looks_begin(0);
	put_old(2);
	look(0);
	check_int(bench_claim_most(1, 1), 1);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 2);
	check_int(bench_start(1, 1, 1), TW_DURABLE_DONE);
}

Test(looks, a_claim_leaves_what_was_paused_or_moved_since, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	put_old(2);
	look(0);
	bench_sql("UPDATE @.timer SET due = due + 3600000000000 WHERE serial = 1");
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 2);
	bench_sql("UPDATE @.timer SET session = 0, due = due - 3600000000000");
	look(0);
	bench_server.pause(true);
	check_int(bench_claim(0), 0);
}

/* The claim's batch number is too small, as if another connection had sent the claim late. */
Test(looks, a_claim_of_what_a_look_found_is_a_batch, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	put_old(1);
	look(0);
	store_of(0)->batch--;
	check_int(bench.stores[0].ops->claim(store_of(0), 10, bench_take, NULL), -EAGAIN);
	check_int(bench_server.count(BENCH_CLAIMED), 0);
}

/* A look finds 1,000 rows at most. Here a transaction has locked the first 1,000. */
Test(looks, locked_rows_hide_no_others, .init = bench_make, .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	put_old(1001);
	bench_sql("BEGIN");
	bench_sql("SELECT count(*) FROM (SELECT 1 FROM @.timer WHERE serial <= 1000 FOR UPDATE) AS "
		  "locked");
	look(0);
	check_int(bench_claim(0), 0);
	look(0);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 1001);
	bench_sql("ROLLBACK");
	look(0);
	check_int(bench_claim(0), 1000);
}

/* The set has no space for all that a look found. */
Test(looks, rows_that_were_found_and_not_claimed_are_found_again, .init = bench_make,
     .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	put_old(30);
	for (uint64_t i = 0; i < 3; i++) {
		look(0);
		check_int(bench_claim_most(0, 10), 10);
		check_int(bench.rows[0].row.id.serial, 10 * i + 1);
	}
}

/* The rows of an ended session are old, but no look is needed to find them. */
Test(looks, the_rows_of_a_session_that_ended_are_claimed_at_once, .init = bench_make,
     .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	bench_open(1);
	looks_begin(1);
	store_of(1)->look.at_ns = INT64_MAX;
	bench_put_claimed(0, 1, 0);
	bench_session_ends(0);
	bench_beat(1);
	store_of(1)->whole_at_ns = 0;
	check_int(bench_claim(1), 1);
}

/*
 * If a claim reaches its limit, the next claim continues after the last row of that claim. But new
 * rows may come before that row.
 */
Test(looks, a_series_of_claims_begins_anew_after_a_while, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	store_of(0)->look.at_ns = INT64_MAX;
	for (uint64_t i = 1; i <= 30; i++)
		check_int(bench_put(0, i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	store_of(0)->whole_at_ns = 0;
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench_put(0, 31, 0), TW_DURABLE_DONE);
	store_of(0)->whole_at_ns = INT64_MAX;
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 11);
	store_of(0)->whole_at_ns = 0;
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 31);
}

/* The server counts the index entries that a transaction reads, also those of dead rows. */
Test(looks, a_claim_of_recent_rows_passes_over_no_old_dead_ones, .init = bench_make,
     .fini = bench_end, .timeout = 60)
{
	PGconn *holder = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	char text[160];

	bench_open(0);
	looks_begin(0);
	PQclear(PQexec(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ"));
	PQclear(PQexec(holder, "SELECT count(*) FROM pg_class"));
	put_old(2000);
	bench_sql("DELETE FROM @.timer");
	bench_sql("SET enable_seqscan = off");
	bench_sql("BEGIN");
	snprintf(text, sizeof text,
		 "SELECT count(*) FROM @.claim_recent(%lld, %lld, 9223372036854775807, 5000000000, "
		 "'{1,2}', 10)",
		 (long long)store_of(0)->link.session, (long long)store_of(0)->batch + 1);
	check_int(bench_sql(text), 0);
	check_int(bench_sql("SELECT pg_stat_get_xact_tuples_returned('@.timer_free'::regclass)"),
		  0);
	bench_sql("ROLLBACK");
	PQfinish(holder);
}

Test(looks, looks_end_when_none_is_slow, .init = bench_make, .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	/* If a look is slow because the machine is busy, another one follows. */
	while (store_of(0)->look.connection != NULL) {
		store_of(0)->look.at_ns = store_of(0)->look.slow_ns = 0;
		bench_beat(0);
	}
	put_old(1);
	check_int(bench_claim(0), 1);
}

/*
 * No claim has been slow for a long time, so the looks could end. But the next look is not due yet,
 * and the looks must not end before it.
 */
Test(looks, looks_do_not_end_in_a_pause, .init = bench_make, .fini = bench_end, .timeout = 60)
{
	bench_open(0);
	looks_begin(0);
	store_of(0)->look.at_ns = INT64_MAX;
	store_of(0)->look.slow_ns = 0;
	bench_beat(0);
	check_true(store_of(0)->look.connection != NULL);
}

/* If the connection of the looks is lost, claims begin at the beginning again. */
Test(looks, looks_end_without_their_connection, .init = bench_make, .fini = bench_end,
     .timeout = 60)
{
	char text[64];

	bench_open(0);
	looks_begin(0);
	snprintf(text, sizeof text, "SELECT pg_terminate_backend(%d)",
		 PQbackendPID(store_of(0)->look.connection));
	bench_sql(text);
	store_of(0)->look.at_ns = 0;
	while (store_of(0)->look.connection != NULL)
		bench_beat(0);
	put_old(1);
	check_int(bench_claim(0), 1);
}
