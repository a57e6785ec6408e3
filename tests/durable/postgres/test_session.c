/* SPDX-License-Identifier: MIT */
/*
 * Sessions of a store in PostgreSQL: their ends, claims, lost replies, fences. The server's time stands, and
 * the tests move it.
 *
 * Seen to fail: planted.py has the defects.
 */
#include "bench.h"
#include "durable/postgres/ask.h"

#include <signal.h>

#include <stdio.h>

/* The others get the rows of a session that is silent, and its own writes are refused. */
Test(session, a_session_that_ends_loses_its_timers, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, 0);
	bench_put_claimed(0, 2, 0);
	check_int(bench_start(0, 2, 1), TW_DURABLE_DONE);
	check_int(bench_claim(1), 0);
	bench_session_ends(0);
	bench_session_ends(1);
	check_int(bench_claim(1), 2);
	check_int(bench.rows[1].row.attempt, 1);
	check_true(bench.rows[1].row.started != 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_ABSENT);
	check_int(bench_end_run(0, TW_DURABLE_OP_DELETE, 2), TW_DURABLE_ABSENT);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 2);
}

/* Its timers are not claimed by anybody yet, but a cancel need not wait for that. */
Test(session, a_started_timer_of_a_session_that_ended_can_be_cancelled, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	bench_put_claimed(0, 1, 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	bench_session_ends(0);
	bench_open(1);
	check_int(bench_cancel(1, 1), TW_DURABLE_ATTEMPTED);
}

/* Also if nobody has noticed the end yet. */
Test(session, a_heartbeat_that_comes_too_late_is_refused, .init = bench_make, .fini = bench_end)
{
	uint64_t number;

	bench_open(0);
	number = bench.sessions[0].number;
	bench_session_ends(0);
	/* Until it is answered. */
	do
		bench_beat(0);
	while (bench.sessions[0].number == number &&
	       ((struct twi_postgres *)bench.stores[0].store)->link.beat_at_ns == 0);
	check_true(bench.sessions[0].number > number);
}

Test(session, the_numbers_of_sessions_rise, .init = bench_make, .fini = bench_end)
{
	uint64_t last = 0;

	bench_pass(0);
	for (int i = 0; i < 5; i++) {
		bench_open(0);
		check_true(bench.sessions[0].number > last);
		last = bench.sessions[0].number;
		bench_close(0);
		/* A clock that goes back does not matter. */
		bench_pass(-SECOND);
	}
	check_int(bench_sql("SELECT count(*) FROM @.session"), 0);
}

Test(session, a_close_frees_what_was_claimed, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, SECOND);
	bench_close(0);
	check_int(bench_claim(1), 1);
}

/* As if the reply to the last commit had been lost with the connection. */
static void reply_lost(int number)
{
	struct twi_postgres *store = bench.stores[number].store;

	PQfinish(store->link.statements);
	store->link.statements = NULL;
	store->unsettled = store->unread = store->sent = true;
	store->batch--;
}

static void reconnect(int number)
{
	struct twi_postgres *store = bench.stores[number].store;

	store->link.connect_at_ns = 0;
	bench_beat(number);
}

Test(session, a_batch_whose_reply_was_lost_is_not_done_twice, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op ops[3];

	bench_open(0);
	bench_open(1);
	check_int(bench_put(0, 3, 100 * SECOND), TW_DURABLE_DONE);
	ops[0] = bench_op(TW_DURABLE_OP_PUT, 1, 0);
	ops[1] = bench_op(TW_DURABLE_OP_DELETE, 2, 0);
	ops[2] = bench_op(TW_DURABLE_OP_PUT, 3, 0);
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 3, 0), 0);
	reply_lost(0);
	/* Another process runs and ends the timer. */
	check_int(bench_claim(1), 1);
	check_int(bench_start(1, 1, 1), TW_DURABLE_DONE);
	check_int(bench_end_run(1, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_DONE);
	for (int i = 0; i < 3; i++)
		ops[i].outcome = 99;
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 3, 0), -EAGAIN);
	reconnect(0);
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 3, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_DONE);
	check_int(ops[1].outcome, TW_DURABLE_ABSENT);
	check_int(ops[2].outcome, TW_DURABLE_PRESENT);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 1);
	check_int(bench_put(0, 4, 0), TW_DURABLE_DONE);
}

Test(session, a_batch_that_was_not_committed_is_sent_again, .init = bench_make, .fini = bench_end)
{
	struct twi_postgres *store;
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, 100 * SECOND), TW_DURABLE_DONE);
	reply_lost(0);
	store = bench.stores[0].store;
	/* The one that is lost never came to the server. */
	store->batch++;
	op = bench_op(TW_DURABLE_OP_PUT, 2, 100 * SECOND);
	reconnect(0);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 2);
}

Test(session, a_batch_is_unknown_if_its_session_went_with_the_reply, .init = bench_make,
     .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, 100 * SECOND), TW_DURABLE_DONE);
	reply_lost(0);
	bench_session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 0);
	op = bench_op(TW_DURABLE_OP_PUT, 1, 100 * SECOND);
	((struct twi_postgres *)bench.stores[0].store)->link.connect_at_ns = 0;
	check_int(bench.stores[0].ops->beat(bench.stores[0].store, &bench.sessions[0]), 0);
	check_int(bench_do(0, &op), -ESTALE);
	bench_beat(0);
	check_int(bench_put(0, 2, 100 * SECOND), TW_DURABLE_DONE);
}

Test(session, what_a_lost_claim_has_claimed_is_given_after_the_next_connection, .init = bench_make,
     .fini = bench_end)
{
	struct twi_postgres *store;

	bench_open(0);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	check_int(bench_claim(0), 1);
	store = bench.stores[0].store;
	PQfinish(store->link.statements);
	store->link.statements = NULL;
	store->link.connect_at_ns = 0;
	check_int(bench_claim(0), 0);
	check_int(bench.count, 1);
	check_int(bench.rows[0].row.id.serial, 1);
	check_int(bench_claim(0), 0);
	check_int(bench.count, 0);
}

/* Rows that the set does not want are free again, and so are those behind an error. */
Test(session, rows_that_are_not_wanted_are_free, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	for (uint64_t i = 1; i <= 5; i++)
		check_int(bench_put(0, i, SECOND), TW_DURABLE_DONE);
	bench.answer = 1;
	check_int(bench_claim(0), 5);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE session <> 0"), 0);
	bench.answer = -ENOMEM;
	check_int(bench_claim(0), -ENOMEM);
	check_int(bench_sql("SELECT count(*) FROM @.timer WHERE session <> 0"), 0);
	bench.answer = 0;
	check_int(bench_claim(1), 5);
}

/* A transaction that lasted long makes a row behind all that was claimed since. */
Test(session, a_row_that_is_committed_late_is_claimed, .init = bench_make, .fini = bench_end)
{
	PGconn *slow = PQconnectdb(getenv("TICKWHEEL_POSTGRES"));
	struct tw_durable_postgres_spec spec = {.size = sizeof spec, .kind = "mail"};

	bench_open(0);
	PQclear(PQexec(slow, "BEGIN"));
	spec.due_ns = bench_now();
	check_int(tw_durable_postgres_schedule_in(slow, bench.schema, &spec, NULL), 0);
	for (uint64_t i = 1; i <= 30; i++)
		check_int(bench_put(0, i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	check_int(bench_claim_most(0, 10), 10);
	PQclear(PQexec(slow, "COMMIT"));
	PQfinish(slow);
	/* The next one goes on behind its last row; one that is not cut off is followed by a whole one. */
	check_int(bench_claim_most(0, 10), 10);
	check_int(bench.rows[0].row.id.serial, 11);
	check_int(bench_claim_most(0, 11), 10);
	check_int(bench_claim_most(0, 10), 1);
	check_true(bench.rows[0].row.id.serial > 30);
}

/* A series of claims that does not end is cut by a whole one in time. */
Test(session, a_whole_claim_comes_after_a_while, .init = bench_make, .fini = bench_end)
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

/* A claim that comes late, over a connection that was given up, is refused; one that came before is read. */
Test(session, a_claim_is_done_once, .init = bench_make, .fini = bench_end)
{
	struct twi_postgres *store;
	PGresult *result;
	char text[128];

	bench_open(0);
	store = bench.stores[0].store;
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	/* The old connection brings it, before the next batch. */
	snprintf(text, sizeof text,
		 "SELECT count(*) FROM @.claim(%lld, %lld, 0, 5000000000, '{1,2}', 10)",
		 (long long)store->link.session, (long long)store->batch + 1);
	check_int(bench_sql(text), 1);
	check_int(bench_put(0, 2, 100 * SECOND), TW_DURABLE_DONE);
	check_int(bench_find(0, 2), 0);
	check_int(bench_claim(0), 0);
	check_int(bench.count, 1);
	check_int(bench.rows[0].row.id.serial, 1);
	/* And after it. */
	snprintf(text, sizeof text,
		 "SELECT * FROM %s.claim(%lld, %lld, 0, 5000000000, '{1,2}', 10)", bench.schema,
		 (long long)store->link.session, (long long)store->batch);
	result = PQexec(bench.connection, text);
	check_int(PQresultStatus(result), PGRES_FATAL_ERROR);
	PQclear(result);
}

/* A crash of the server may lose claims, with their numbers. The timers are free there, and a start is refused. */
Test(session, numbers_that_the_server_has_lost_are_used_again, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	check_int(bench_put(0, 1, 0), TW_DURABLE_DONE);
	check_int(bench_put(0, 2, 0), TW_DURABLE_DONE);
	check_int(bench_claim(0), 2);
	bench_sql("UPDATE @.session SET batch = batch - 1; UPDATE @.timer SET session = 0");
	check_int(bench_start(0, 1, 1), TW_DURABLE_ABSENT);
	check_int(bench_claim(0), 2);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
}

/* The fence of a later start is greater, also if an older session does it, or the clock goes back. */
Test(session, fences_rise, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;
	uint64_t last = 0;

	bench_open(0);
	bench_open(1);
	check_int(bench_put(0, 1, 0), TW_DURABLE_DONE);
	for (int i = 0; i < 6; i++) {
		check_int(bench_claim(i % 2 == 0), 1);
		op = bench_op(TW_DURABLE_OP_START, 1, 0);
		op.row.attempt = (uint64_t)i + 1;
		op.fence = bench.sessions[i % 2 == 0].number;
		bench_pass(SECOND / 10);
		check_int(bench_do(i % 2 == 0, &op), TW_DURABLE_DONE);
		check_true(op.row.fence > last);
		last = op.row.fence;
		op = bench_op(TW_DURABLE_OP_MOVE, 1, 0);
		op.row.attempt = (uint64_t)i + 1;
		op.flags = TW_DURABLE_OP_OWN;
		op.fence = bench.sessions[i % 2 == 0].number;
		check_int(bench_do(i % 2 == 0, &op), TW_DURABLE_DONE);
		if (i % 2 == 0)
			bench_pass(-SECOND / 20);
	}
}

/* A row that was claimed again is not started by its new owner, though an attempt is open. */
Test(session, a_timer_that_is_claimed_again_is_read_after_a_lost_reply, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	bench_put_claimed(0, 1, 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	bench_session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 1);
	check_true(bench.rows[0].row.started != 0);
	((struct twi_postgres *)bench.stores[1].store)->unread = true;
	check_int(bench_claim(1), 0);
	check_int(bench.count, 1);
	check_int(bench_cancel(0, 1), TW_DURABLE_ATTEMPTED);
}

/* The row of the session is locked: a batch of it is under way. */
Test(session, a_session_does_not_end_in_the_middle_of_a_batch, .init = bench_make,
     .fini = bench_end)
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

/* The network is silent, or the server's process stands still. */
Test(session, a_question_does_not_wait_for_ever, .init = bench_make, .fini = bench_end,
     .timeout = 60)
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
