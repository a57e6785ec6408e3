/* SPDX-License-Identifier: MIT */
/*
 * Sessions of a shared store: ends of sessions, claims, lost replies, and fences. The server's time
 * stands still, and the tests move it.
 *
 * Seen to fail with the defects that the planted.py of each store lists.
 */
#include "bench.h"

/* If a session sends no heartbeat, other sessions get its rows, and its own writes are refused. */
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
	check_int(bench_server.count(BENCH_TIMERS), 2);
}

/* A cancel need not wait until another session has claimed the timers of the ended session. */
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

/* The heartbeat is refused even if no process has noticed the session's end yet. */
Test(session, a_heartbeat_that_comes_too_late_is_refused, .init = bench_make, .fini = bench_end)
{
	uint64_t number;

	bench_open(0);
	number = bench.sessions[0].number;
	bench_session_ends(0);
	/* Repeats the heartbeat until the server answers it. */
	do
		bench_beat(0);
	while (bench.sessions[0].number == number && bench_server.beat_due(bench.stores[0].store));
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
		/* The server's clock goes back, which must not matter. */
		bench_pass(-SECOND);
	}
	check_int(bench_server.count(BENCH_SESSIONS), 0);
}

Test(session, a_close_frees_what_was_claimed, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, SECOND);
	bench_close(0);
	check_int(bench_claim(1), 1);
}

static void reconnect(int number)
{
	bench_server.connect_now(bench.stores[number].store);
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
	bench_server.lose_reply(bench.stores[0].store);
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
	check_int(bench_server.count(BENCH_TIMERS), 1);
	check_int(bench_put(0, 4, 0), TW_DURABLE_DONE);
}

Test(session, a_batch_that_was_not_committed_is_sent_again, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, 100 * SECOND), TW_DURABLE_DONE);
	bench_server.lose_request(bench.stores[0].store);
	op = bench_op(TW_DURABLE_OP_PUT, 2, 100 * SECOND);
	reconnect(0);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_server.count(BENCH_TIMERS), 2);
}

Test(session, a_batch_is_unknown_if_its_session_went_with_the_reply, .init = bench_make,
     .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	check_int(bench_put(0, 1, 100 * SECOND), TW_DURABLE_DONE);
	bench_server.lose_reply(bench.stores[0].store);
	bench_session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 0);
	op = bench_op(TW_DURABLE_OP_PUT, 1, 100 * SECOND);
	bench_server.connect_now(bench.stores[0].store);
	check_int(bench.stores[0].ops->beat(bench.stores[0].store, &bench.sessions[0]), 0);
	check_int(bench_do(0, &op), -ESTALE);
	bench_beat(0);
	check_int(bench_put(0, 2, 100 * SECOND), TW_DURABLE_DONE);
}

Test(session, what_a_lost_claim_has_claimed_is_given_after_the_next_connection, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	check_int(bench_claim(0), 1);
	bench_server.cut(bench.stores[0].store);
	bench_server.connect_now(bench.stores[0].store);
	check_int(bench_claim(0), 0);
	check_int(bench.count, 1);
	check_int(bench.rows[0].row.id.serial, 1);
	check_int(bench_claim(0), 0);
	check_int(bench.count, 0);
}

/* Rows that the set does not want become free again. So do the rows that follow an error. */
Test(session, rows_that_are_not_wanted_are_free, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	for (uint64_t i = 1; i <= 5; i++)
		check_int(bench_put(0, i, SECOND), TW_DURABLE_DONE);
	bench.answer = 1;
	check_int(bench_claim(0), 5);
	check_int(bench_server.count(BENCH_CLAIMED), 0);
	bench.answer = -ENOMEM;
	check_int(bench_claim(0), -ENOMEM);
	check_int(bench_server.count(BENCH_CLAIMED), 0);
	bench.answer = 0;
	check_int(bench_claim(1), 5);
}

/*
 * A connection that the store has given up may still deliver a claim. If the claim comes late, it
 * is refused. If it came in time, its rows are read.
 */
Test(session, a_claim_is_done_once, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	/* The old connection delivers the claim before the next batch. */
	check_int(bench_server.claim_by_hand(bench.stores[0].store, 1), 1);
	check_int(bench_put(0, 2, 100 * SECOND), TW_DURABLE_DONE);
	check_int(bench_find(0, 2), 0);
	check_int(bench_claim(0), 0);
	check_int(bench.count, 1);
	check_int(bench.rows[0].row.id.serial, 1);
	/* Here the claim comes after the batch. */
	check_int(bench_server.claim_by_hand(bench.stores[0].store, 0), -1);
}

/*
 * A crash of the server may lose claims, with their numbers. The claimed timers are free again on
 * the server, so a start is refused.
 */
Test(session, numbers_that_the_server_has_lost_are_used_again, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	check_int(bench_put(0, 1, 0), TW_DURABLE_DONE);
	check_int(bench_put(0, 2, 0), TW_DURABLE_DONE);
	check_int(bench_claim(0), 2);
	bench_server.forget_claim(bench.stores[0].store);
	check_int(bench_start(0, 1, 1), TW_DURABLE_ABSENT);
	check_int(bench_claim(0), 2);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
}

/* A later start has a greater fence, even if an older session makes it, or the clock goes back. */
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
		op = bench_op(TW_DURABLE_OP_MOVE, 1, -SECOND);
		op.row.attempt = (uint64_t)i + 1;
		op.flags = TW_DURABLE_OP_OWN;
		op.fence = bench.sessions[i % 2 == 0].number;
		check_int(bench_do(i % 2 == 0, &op), TW_DURABLE_DONE);
		if (i % 2 == 0)
			bench_pass(-SECOND / 5);
	}
}

/*
 * If another session claims a row whose attempt has not ended, the row must not count as started by
 * that session.
 */
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
	bench_server.unread(bench.stores[1].store);
	check_int(bench_claim(1), 0);
	check_int(bench.count, 1);
	check_int(bench_cancel(0, 1), TW_DURABLE_ATTEMPTED);
}
