/* SPDX-License-Identifier: MIT */
/*
 * PostgreSQL as a store, by its functions alone: operations and their outcomes, sessions, claims, lost
 * replies. The server's time stands, and the tests move it.
 *
 * Seen to fail: planted.py has the defects.
 */
#include "bench.h"

#include <stdio.h>

/* A timer that store `number` has claimed. */
static void put_claimed(int number, uint64_t serial, int64_t due_in_ns)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_PUT, serial, due_in_ns);

	op.row.session = 1;
	check_int(bench_do(number, &op), TW_DURABLE_DONE);
	check_true(op.row.session == bench.sessions[number].number);
}

static int start(int number, uint64_t serial, uint64_t attempt)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_START, serial, 0);

	op.row.attempt = attempt;
	op.fence = bench.sessions[number].number;
	return bench_do(number, &op);
}

/* The end of a run, under the session that store `number` has. */
static int end_run(int number, enum tw_durable_op_type type, uint64_t serial)
{
	struct tw_durable_op op = bench_op(type, serial, 100 * SECOND);

	op.row.attempt = 1;
	op.flags = TW_DURABLE_OP_OWN;
	op.fence = bench.sessions[number].number;
	return bench_do(number, &op);
}

static int cancel(int number, uint64_t serial)
{
	struct tw_durable_op op = bench_op(TW_DURABLE_OP_DELETE, serial, 0);

	return bench_do(number, &op);
}

/* Store `number` does not beat, and its session ends. */
static void session_ends(int number)
{
	struct twi_postgres *store = bench.stores[number].store;

	store->link.beat_at_ns = INT64_MAX;
	bench_pass(11 * SECOND);
	store->link.beat_at_ns = 0;
}

Test(store, a_timer_comes_and_goes, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	op = bench_op(TW_DURABLE_OP_PUT, 1, 100 * SECOND);
	op.row.kind = 1;
	op.row.payload = "pay";
	op.row.payload_bytes = 3;
	op.row.key = "k";
	op.row.key_bytes = 1;
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_find(0, 1), 0);
	check_int(bench.rows[0].row.kind, 1);
	check_int(bench.rows[0].row.version, 3);
	check_int(bench.rows[0].row.due_ns, op.row.due_ns);
	check_int(bench.rows[0].row.payload_bytes, 3);
	check_int(memcmp(bench.rows[0].payload, "pay", 3), 0);
	check_int(bench.rows[0].row.key_bytes, 1);
	check_int(bench_claim(0), 0);
	check_int(cancel(0, 1), TW_DURABLE_DONE);
	check_int(cancel(0, 1), TW_DURABLE_ABSENT);
	check_int(bench_find(0, 1), -ENOENT);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 0);
}

Test(store, an_id_or_a_key_that_is_there_stays, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	op = bench_op(TW_DURABLE_OP_PUT, 1, 100 * SECOND);
	op.row.key = "k";
	op.row.key_bytes = 1;
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_put(0, 1, 50 * SECOND), TW_DURABLE_PRESENT);
	op = bench_op(TW_DURABLE_OP_PUT, 2, 100 * SECOND);
	op.row.key = "k";
	op.row.key_bytes = 1;
	check_int(bench_do(0, &op), TW_DURABLE_PRESENT);
	check_int(op.row.id.serial, 1);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 1);
}

Test(store, one_session_claims_a_timer, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	for (uint64_t i = 1; i <= 100; i++)
		check_int(bench_put((int)(i % 2), i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	/* Within 5 s, and in the order of deadlines. */
	check_int(bench_claim(0), 50);
	for (size_t i = 0; i < 50; i++)
		check_int(bench.rows[i].row.id.serial, i + 1);
	check_true(bench.rows[0].row.session == bench.sessions[0].number);
	check_int(bench_claim(0) + bench_claim(1), 0);
	bench_pass(2 * SECOND);
	check_int(bench_claim(1), 20);
	check_int(bench_claim(0), 0);
}

Test(store, kinds_that_are_unknown_or_paused_are_not_claimed, .init = bench_make, .fini = bench_end)
{
	static const char *const other[] = {"fax", "call"};
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	op = bench_op(TW_DURABLE_OP_PUT, 2, SECOND);
	op.row.kind = 1;
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_try_open(1, other, 2), 0);
	bench_beat(1);
	check_int(bench_claim(1), 1);
	check_int(bench.rows[0].row.id.serial, 2);
	check_int(bench.rows[0].row.kind, 1);
	bench_sql("UPDATE @.kind SET paused = true");
	check_int(bench_claim(0), 0);
	bench_sql("UPDATE @.kind SET paused = false");
	check_int(bench_claim(0), 1);
}

Test(store, a_start_is_refused_where_the_timer_is_not_due_or_not_claimed, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	put_claimed(0, 1, SECOND);
	check_int(start(0, 1, 1), TW_DURABLE_PRESENT);
	check_int(start(1, 1, 1), TW_DURABLE_ABSENT);
	bench_pass(SECOND);
	check_int(start(1, 1, 1), TW_DURABLE_ABSENT);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	check_int(start(0, 2, 1), TW_DURABLE_ABSENT);
	check_int(bench_sql("SELECT attempt FROM @.timer WHERE started"), 1);
}

Test(store, a_cancel_from_elsewhere_is_precise, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	put_claimed(0, 1, 0);
	check_int(cancel(1, 1), TW_DURABLE_DONE);
	check_int(start(0, 1, 1), TW_DURABLE_ABSENT);
	put_claimed(0, 2, 0);
	check_int(start(0, 2, 1), TW_DURABLE_DONE);
	check_int(cancel(1, 2), TW_DURABLE_RUNNING);
	check_int(bench_find(1, 2), 0);
	/* It runs again later: an attempt began. */
	check_int(end_run(0, TW_DURABLE_OP_MOVE, 2), TW_DURABLE_DONE);
	check_int(cancel(1, 2), TW_DURABLE_ATTEMPTED);
	check_int(cancel(1, 2), TW_DURABLE_ABSENT);
}

Test(store, a_cancel_by_the_session_that_has_started_it_is_done, .init = bench_make,
     .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	put_claimed(0, 1, 0);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	op = bench_op(TW_DURABLE_OP_DELETE, 1, 0);
	op.fence = bench.sessions[0].number;
	check_int(bench_do(0, &op), TW_DURABLE_ATTEMPTED);
}

Test(store, a_move_frees_the_timer_or_keeps_it, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	bench_open(1);
	put_claimed(0, 1, 0);
	op = bench_op(TW_DURABLE_OP_MOVE, 1, 100 * SECOND);
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_int(start(0, 1, 1), TW_DURABLE_ABSENT);
	/* Both sessions end. */
	bench_pass(100 * SECOND);
	op = bench_op(TW_DURABLE_OP_MOVE, 1, SECOND);
	op.row.session = 1;
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_true(op.row.session == bench.sessions[1].number);
	check_int(bench_claim(1), 0);
	op.fence = 0;
	bench_pass(2 * SECOND);
	check_int(start(1, 1, 1), TW_DURABLE_DONE);
	check_int(bench_do(1, &op), TW_DURABLE_RUNNING);
	op.row.id.serial = 2;
	check_int(bench_do(1, &op), TW_DURABLE_ABSENT);
}

Test(store, dead_letters, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	put_claimed(0, 1, 0);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	check_int(end_run(0, TW_DURABLE_OP_BURY, 1), TW_DURABLE_DONE);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 0);
	check_int(bench_find(0, 1), 0);
	check_int(bench.rows[0].row.dead, 1);
	check_int(bench.rows[0].row.attempt, 1);
	op = bench_op(TW_DURABLE_OP_REVIVE, 1, SECOND);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_do(0, &op), TW_DURABLE_ABSENT);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.attempt, 0);
	bench_pass(SECOND);
	check_int(end_run(0, TW_DURABLE_OP_BURY, 1), TW_DURABLE_DONE);
	op = bench_op(TW_DURABLE_OP_DROP, 1, 0);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_do(0, &op), TW_DURABLE_ABSENT);
	check_int(bench_find(0, 1), -ENOENT);
}

Test(store, dead_letters_are_trimmed, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	for (uint64_t i = 1; i <= 10; i++) {
		put_claimed(0, i, 0);
		check_int(end_run(0, TW_DURABLE_OP_BURY, i), TW_DURABLE_DONE);
		bench_pass(SECOND / 2);
	}
	/* Those of the first 2 s, and of the rest all but three. */
	check_int(bench.stores[0].ops->dead_trim(bench.stores[0].store, 100,
						 bench_now() - 3 * SECOND, 3),
		  3);
	check_int(bench.stores[0].ops->dead_trim(bench.stores[0].store, 3, INT64_MIN, 100), 4);
	check_int(bench_sql("SELECT min(serial) FROM @.dead"), 8);
}

/* The others get the rows of a session that is silent, and its own writes are refused. */
Test(store, a_session_that_ends_loses_its_timers, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	put_claimed(0, 1, 0);
	put_claimed(0, 2, 0);
	check_int(start(0, 2, 1), TW_DURABLE_DONE);
	check_int(bench_claim(1), 0);
	session_ends(0);
	session_ends(1);
	check_int(bench_claim(1), 2);
	check_int(bench.rows[1].row.attempt, 1);
	check_true(bench.rows[1].row.started != 0);
	check_int(start(0, 1, 1), TW_DURABLE_ABSENT);
	check_int(end_run(0, TW_DURABLE_OP_DELETE, 2), TW_DURABLE_ABSENT);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 2);
}

/* Its timers are not claimed by anybody yet, but a cancel need not wait for that. */
Test(store, a_started_timer_of_a_session_that_ended_can_be_cancelled, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	put_claimed(0, 1, 0);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	session_ends(0);
	bench_open(1);
	check_int(cancel(1, 1), TW_DURABLE_ATTEMPTED);
}

/* Also if nobody has noticed the end yet. */
Test(store, a_heartbeat_that_comes_too_late_is_refused, .init = bench_make, .fini = bench_end)
{
	uint64_t number;

	bench_open(0);
	number = bench.sessions[0].number;
	session_ends(0);
	/* Until it is answered. */
	do
		bench_beat(0);
	while (bench.sessions[0].number == number &&
	       ((struct twi_postgres *)bench.stores[0].store)->link.beat_at_ns == 0);
	check_true(bench.sessions[0].number > number);
}

Test(store, the_numbers_of_sessions_rise, .init = bench_make, .fini = bench_end)
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

Test(store, a_close_frees_what_was_claimed, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	put_claimed(0, 1, SECOND);
	bench_close(0);
	check_int(bench_claim(1), 1);
}

/* The order of a batch, where its operations have to do with each other. */
Test(store, a_batch_keeps_its_order, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op ops[6];

	bench_open(0);
	ops[0] = bench_op(TW_DURABLE_OP_PUT, 5, 100 * SECOND);
	ops[1] = bench_op(TW_DURABLE_OP_MOVE, 5, 200 * SECOND);
	ops[2] = bench_op(TW_DURABLE_OP_DELETE, 5, 0);
	ops[3] = bench_op(TW_DURABLE_OP_DELETE, 5, 0);
	ops[4] = bench_op(TW_DURABLE_OP_PUT, 4, 100 * SECOND);
	ops[4].row.session = 1;
	ops[5] = bench_op(TW_DURABLE_OP_BURY, 4, 0);
	ops[5].fence = TW_DURABLE_FENCE_OF_BATCH;
	ops[5].flags = TW_DURABLE_OP_OWN;
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 6, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_DONE);
	check_int(ops[1].outcome, TW_DURABLE_DONE);
	check_int(ops[2].outcome, TW_DURABLE_DONE);
	check_int(ops[3].outcome, TW_DURABLE_ABSENT);
	check_int(ops[5].outcome, TW_DURABLE_DONE);
	check_int(bench_sql("SELECT count(*) FROM @.timer"), 0);
	check_int(bench_sql("SELECT count(*) FROM @.dead"), 1);
}

Test(store, a_key_is_freed_in_the_order_of_the_batch, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op ops[4];

	bench_open(0);
	for (int i = 0; i < 4; i++) {
		ops[i] = bench_op(i == 1 || i == 2 ? TW_DURABLE_OP_DELETE : TW_DURABLE_OP_PUT,
				  (uint64_t)(i < 2 ? 9 : 10), 100 * SECOND);
		ops[i].row.key = "k";
		ops[i].row.key_bytes = 1;
	}
	/* PUT 9, DELETE 10 (absent), DELETE 9, PUT 8. */
	ops[1].row.id.serial = 10;
	ops[2].row.id.serial = 9;
	ops[3].row.id.serial = 8;
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 4, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_DONE);
	check_int(ops[1].outcome, TW_DURABLE_ABSENT);
	check_int(ops[2].outcome, TW_DURABLE_DONE);
	check_int(ops[3].outcome, TW_DURABLE_DONE);
	/* PUT 7 finds the key taken, and then it is freed. */
	ops[0] = bench_op(TW_DURABLE_OP_PUT, 7, 100 * SECOND);
	ops[0].row.key = "k";
	ops[0].row.key_bytes = 1;
	ops[1] = bench_op(TW_DURABLE_OP_DELETE, 8, 0);
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 2, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_PRESENT);
	check_int(ops[0].row.id.serial, 8);
	check_int(ops[1].outcome, TW_DURABLE_DONE);
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

Test(store, a_batch_whose_reply_was_lost_is_not_done_twice, .init = bench_make, .fini = bench_end)
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
	check_int(start(1, 1, 1), TW_DURABLE_DONE);
	check_int(end_run(1, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_DONE);
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

Test(store, a_batch_that_was_not_committed_is_sent_again, .init = bench_make, .fini = bench_end)
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

Test(store, a_batch_is_unknown_if_its_session_went_with_the_reply, .init = bench_make,
     .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, 100 * SECOND), TW_DURABLE_DONE);
	reply_lost(0);
	session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 0);
	op = bench_op(TW_DURABLE_OP_PUT, 1, 100 * SECOND);
	((struct twi_postgres *)bench.stores[0].store)->link.connect_at_ns = 0;
	check_int(bench.stores[0].ops->beat(bench.stores[0].store, &bench.sessions[0]), 0);
	check_int(bench_do(0, &op), -ESTALE);
	bench_beat(0);
	check_int(bench_put(0, 2, 100 * SECOND), TW_DURABLE_DONE);
}

Test(store, what_a_lost_claim_has_claimed_is_given_after_the_next_connection, .init = bench_make,
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
Test(store, rows_that_are_not_wanted_are_free, .init = bench_make, .fini = bench_end)
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
Test(store, a_row_that_is_committed_late_is_claimed, .init = bench_make, .fini = bench_end)
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
Test(store, a_whole_claim_comes_after_a_while, .init = bench_make, .fini = bench_end)
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
Test(store, a_claim_is_done_once, .init = bench_make, .fini = bench_end)
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
Test(store, numbers_that_the_server_has_lost_are_used_again, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	check_int(bench_put(0, 1, 0), TW_DURABLE_DONE);
	check_int(bench_put(0, 2, 0), TW_DURABLE_DONE);
	check_int(bench_claim(0), 2);
	bench_sql("UPDATE @.session SET batch = batch - 1; UPDATE @.timer SET session = 0");
	check_int(start(0, 1, 1), TW_DURABLE_ABSENT);
	check_int(bench_claim(0), 2);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
}

/* The fence of a later start is greater, also if an older session does it, or the clock goes back. */
Test(store, fences_rise, .init = bench_make, .fini = bench_end)
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
Test(store, a_timer_that_is_claimed_again_is_read_after_a_lost_reply, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	put_claimed(0, 1, 0);
	check_int(start(0, 1, 1), TW_DURABLE_DONE);
	session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 1);
	check_true(bench.rows[0].row.started != 0);
	((struct twi_postgres *)bench.stores[1].store)->unread = true;
	check_int(bench_claim(1), 0);
	check_int(bench.count, 1);
	check_int(cancel(0, 1), TW_DURABLE_ATTEMPTED);
}

/* The row of the session is locked: a batch of it is under way. */
Test(store, a_session_does_not_end_in_the_middle_of_a_batch, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	put_claimed(0, 1, 0);
	((struct twi_postgres *)bench.stores[0].store)->link.beat_at_ns = INT64_MAX;
	bench_pass(21 * SECOND / 2);
	bench_open(1);
	bench_sql("BEGIN");
	bench_sql("SELECT 1 FROM @.session WHERE id = (SELECT min(id) FROM @.session) FOR UPDATE");
	check_int(bench_claim(1), 0);
	bench_sql("COMMIT");
	check_int(bench_claim(1), 1);
}

/* Bytes are bytes: none of them is ever part of a text of SQL. */
Test(store, keys_and_payloads_are_any_bytes, .init = bench_make, .fini = bench_end)
{
	static const char *const texts[] = {
		"'; DROP TABLE timer; --", "\"$1\\", "\xff\xfe\x80", "a\0b", "\0", "{NULL,\"}"};
	static const uint32_t lengths[] = {23, 5, 3, 3, 1, 8};
	struct tw_durable_op op;

	bench_open(0);
	for (uint64_t i = 0; i < 6; i++) {
		op = bench_op(TW_DURABLE_OP_PUT, i + 1, SECOND);
		op.row.key = op.row.payload = texts[i];
		op.row.key_bytes = op.row.payload_bytes = lengths[i];
		check_int(bench_do(0, &op), TW_DURABLE_DONE);
		check_int(bench_find(0, i + 1), 0);
		check_int(bench.rows[0].row.key_bytes, lengths[i]);
		check_int(memcmp(bench.rows[0].key, texts[i], lengths[i]), 0);
		check_int(memcmp(bench.rows[0].payload, texts[i], lengths[i]), 0);
		bench.count = 0;
		check_int(bench.stores[0].ops->find_key(bench.stores[0].store, texts[i], lengths[i],
							bench_take, NULL),
			  0);
		check_int(bench.rows[0].row.id.serial, i + 1);
	}
	check_int(bench_claim(0), 6);
}

Test(store, a_payload_may_be_large, .init = bench_make, .fini = bench_end)
{
	enum { BYTES = 1 << 20 };
	char *payload = calloc(BYTES, 1);
	struct tw_durable_op op;

	bench_open(0);
	memset(payload, '\'', BYTES / 2);
	op = bench_op(TW_DURABLE_OP_PUT, 1, SECOND);
	op.row.payload = payload;
	op.row.payload_bytes = BYTES;
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_sql("SELECT length(payload) FROM @.timer"), BYTES);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.payload_bytes, BYTES);
	free(payload);
}

/* In the order of deadlines, claimed or not; a slice goes on behind its last row. */
Test(store, a_list_is_in_order, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_row after;
	struct tw_durable_store *store = &bench.stores[0];

	bench_open(0);
	for (uint64_t i = 1; i <= 20; i++)
		check_int(bench_put(0, i, (int64_t)(21 - i) * SECOND), TW_DURABLE_DONE);
	check_int(bench_claim(0), 5);
	bench.count = 0;
	check_int(store->ops->near(store->store, NULL, INT64_MAX, 8, bench_take, NULL), 0);
	check_int(bench.count, 8);
	for (size_t i = 0; i < 8; i++)
		check_int(bench.rows[i].row.id.serial, 20 - i);
	after = bench.rows[7].row;
	bench.count = 0;
	check_int(store->ops->near(store->store, &after, INT64_MAX, 100, bench_take, NULL), 0);
	check_int(bench.count, 12);
	check_int(bench.rows[0].row.id.serial, 12);
}

/* In a transaction of the user's: it is there when that is committed, and never was if it is taken back. */
Test(store, calls_inside_a_transaction, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_postgres_spec spec = {
		.size = sizeof spec, .kind = "mail", .key = "k", .key_bytes = 1};
	struct tw_durable_id id, other;

	bench_open(0);
	spec.due_ns = bench_now();
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, &id), 0);
	check_int(bench_claim(0), 0);
	bench_sql("ROLLBACK");
	check_int(bench_claim(0), 0);
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, &id), 0);
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, &other),
		  0);
	check_true(id.serial == other.serial && id.place == other.place);
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_cancel_in(bench.connection, bench.schema, id),
		  TW_DURABLE_DONE);
	bench_sql("ROLLBACK");
	check_int(bench_claim(0), 1);
	check_int(tw_durable_postgres_cancel_key_in(bench.connection, bench.schema, "k", 1),
		  TW_DURABLE_DONE);
	check_int(tw_durable_postgres_cancel_key_in(bench.connection, bench.schema, "k", 1),
		  TW_DURABLE_ABSENT);
	check_int(tw_durable_postgres_cancel_in(bench.connection, bench.schema, id),
		  TW_DURABLE_ABSENT);
}

/* The run of an owner that has lost the timer ends nothing. */
Test(store, a_run_ends_its_timer_in_a_transaction, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_self self = {.id = {7, 1}, .attempt = 1};
	struct tw_durable_op op;

	bench_open(0);
	put_claimed(0, 1, 0);
	op = bench_op(TW_DURABLE_OP_START, 1, 0);
	op.row.attempt = 1;
	op.fence = bench.sessions[0].number;
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), -ESTALE);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	self.fence = op.row.fence;
	self.attempt = 2;
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), -ESTALE);
	self.attempt = 1;
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), 0);
	bench_sql("ROLLBACK");
	session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 1);
	op.row.attempt = 2;
	op.fence = bench.sessions[1].number;
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), -ESTALE);
	self.fence = op.row.fence;
	self.attempt = 2;
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), 0);
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, &self), -ESTALE);
	check_int(end_run(1, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_ABSENT);
}

Test(store, bad_arguments_are_rejected, .init = bench_make, .fini = bench_end)
{
	static const char *const wrong[] = {
		"", "A", "a-b", "a b", "a\"b", "abcdefghijklmnopqrstuvwxyz0123456", NULL};
	struct tw_durable_postgres_spec spec = {.size = sizeof spec, .kind = "mail", .due_ns = 1};
	struct tw_durable_id id = {1, 1};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		check_int(tw_durable_postgres_migrate(bench.connection, wrong[i]), -EINVAL);
		check_int(tw_durable_postgres_schedule_in(bench.connection, wrong[i], &spec, NULL),
			  -EINVAL);
		check_int(tw_durable_postgres_cancel_in(bench.connection, wrong[i], id), -EINVAL);
	}
	check_int(tw_durable_postgres_migrate(NULL, "a"), -EINVAL);
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, NULL, NULL),
		  -EINVAL);
	spec.due_ns = TW_NEVER;
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, NULL),
		  -EINVAL);
	spec.due_ns = 1;
	spec.key_bytes = 1;
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, NULL),
		  -EINVAL);
	spec.key = "k";
	spec.key_bytes = 256;
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, NULL),
		  -EMSGSIZE);
	spec.key_bytes = 1;
	spec.kind = "Not a kind";
	check_int(tw_durable_postgres_schedule_in(bench.connection, bench.schema, &spec, NULL),
		  -EINVAL);
	check_int(tw_durable_postgres_cancel_key_in(bench.connection, bench.schema, NULL, 1),
		  -EINVAL);
	check_int(tw_durable_postgres_finish_in(bench.connection, bench.schema, NULL), -EINVAL);
	check_int(tw_durable_postgres_cancel_in(bench.connection, "none", id), -ENOENT);
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_migrate(bench.connection, bench.schema), -EINVAL);
	bench_sql("ROLLBACK");
}
