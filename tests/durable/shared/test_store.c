/* SPDX-License-Identifier: MIT */
/*
 * Tests a shared store through its own functions, without a set: operations and their outcomes,
 * lists, and keys and payloads of arbitrary bytes. The server's time stands still, and the tests
 * move it.
 *
 * Seen to fail with the defects that the planted.py of each store lists.
 */
#include "bench.h"

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
	check_int(bench_cancel(0, 1), TW_DURABLE_DONE);
	check_int(bench_cancel(0, 1), TW_DURABLE_ABSENT);
	check_int(bench_find(0, 1), -ENOENT);
	check_int(bench_server.count(BENCH_TIMERS), 0);
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
	check_int(bench_server.count(BENCH_TIMERS), 1);
}

/*
 * Makes both operations in one commit. Only the second deadline counts, and nothing of the first is
 * left.
 */
Test(store, a_timer_is_put_and_moved_at_once, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op ops[2];

	bench_open(0);
	for (int later = 0; later < 2; later++) {
		ops[0] = bench_op(TW_DURABLE_OP_PUT, 1, later ? SECOND : 100 * SECOND);
		ops[1] = bench_op(TW_DURABLE_OP_MOVE, 1, later ? 100 * SECOND : SECOND);
		check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 2, 0), 0);
		check_int(ops[0].outcome, TW_DURABLE_DONE);
		check_int(ops[1].outcome, TW_DURABLE_DONE);
		check_int(bench_find(0, 1), 0);
		check_int(bench.rows[0].row.due_ns, ops[1].row.due_ns);
		if (later)
			bench_pass(100 * SECOND);
		check_int(bench_claim(0), 1);
		check_int(bench.rows[0].row.due_ns, ops[1].row.due_ns);
		bench_pass(SECOND);
		check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
		check_int(bench_end_run(0, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_DONE);
		check_int(bench_server.count(BENCH_TIMERS), 0);
		check_int(bench_server.count(BENCH_CLAIMED), 0);
	}
}

Test(store, one_session_claims_a_timer, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	for (uint64_t i = 1; i <= 100; i++)
		check_int(bench_put((int)(i % 2), i, (int64_t)i * SECOND / 10), TW_DURABLE_DONE);
	/* A claim takes the timers that are due within 5 s, in the order of their deadlines. */
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
	bench_server.pause(true);
	check_int(bench_claim(0), 0);
	bench_server.pause(false);
	check_int(bench_claim(0), 1);
}

Test(store, a_start_is_refused_where_the_timer_is_not_due_or_not_claimed, .init = bench_make,
     .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, SECOND);
	check_int(bench_start(0, 1, 1), TW_DURABLE_PRESENT);
	check_int(bench_start(1, 1, 1), TW_DURABLE_ABSENT);
	bench_pass(SECOND);
	check_int(bench_start(1, 1, 1), TW_DURABLE_ABSENT);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	check_int(bench_start(0, 2, 1), TW_DURABLE_ABSENT);
	check_int(bench_server.count(BENCH_STARTED), 1);
	check_int(bench_find(0, 1), 0);
	check_int(bench.rows[0].row.attempt, 1);
}

Test(store, a_cancel_from_elsewhere_is_precise, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, 0);
	check_int(bench_cancel(1, 1), TW_DURABLE_DONE);
	check_int(bench_start(0, 1, 1), TW_DURABLE_ABSENT);
	bench_put_claimed(0, 2, 0);
	check_int(bench_start(0, 2, 1), TW_DURABLE_DONE);
	check_int(bench_cancel(1, 2), TW_DURABLE_RUNNING);
	check_int(bench_find(1, 2), 0);
	/* The timer will run again, but an attempt has begun. The cancel must say so. */
	check_int(bench_end_run(0, TW_DURABLE_OP_MOVE, 2), TW_DURABLE_DONE);
	check_int(bench_cancel(1, 2), TW_DURABLE_ATTEMPTED);
	check_int(bench_cancel(1, 2), TW_DURABLE_ABSENT);
}

Test(store, a_cancel_by_the_session_that_has_started_it_is_done, .init = bench_make,
     .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	bench_put_claimed(0, 1, 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	op = bench_op(TW_DURABLE_OP_DELETE, 1, 0);
	op.fence = bench.sessions[0].number;
	check_int(bench_do(0, &op), TW_DURABLE_ATTEMPTED);
}

Test(store, a_move_frees_the_timer_or_keeps_it, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	bench_open(1);
	bench_put_claimed(0, 1, 0);
	op = bench_op(TW_DURABLE_OP_MOVE, 1, 100 * SECOND);
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_int(bench_start(0, 1, 1), TW_DURABLE_ABSENT);
	/* Lets both sessions end. */
	bench_pass(100 * SECOND);
	op = bench_op(TW_DURABLE_OP_MOVE, 1, SECOND);
	op.row.session = 1;
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_true(op.row.session == bench.sessions[1].number);
	check_int(bench_claim(1), 0);
	op.fence = 0;
	bench_pass(2 * SECOND);
	check_int(bench_start(1, 1, 1), TW_DURABLE_DONE);
	check_int(bench_do(1, &op), TW_DURABLE_RUNNING);
	op.row.id.serial = 2;
	check_int(bench_do(1, &op), TW_DURABLE_ABSENT);
}

Test(store, dead_letter_is_revived_once_or_dropped_once, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	bench_put_claimed(0, 1, 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	check_int(bench_end_run(0, TW_DURABLE_OP_BURY, 1), TW_DURABLE_DONE);
	check_int(bench_server.count(BENCH_TIMERS), 0);
	check_int(bench_find(0, 1), 0);
	check_int(bench.rows[0].row.dead, 1);
	check_int(bench.rows[0].row.attempt, 1);
	op = bench_op(TW_DURABLE_OP_REVIVE, 1, SECOND);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_do(0, &op), TW_DURABLE_ABSENT);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.attempt, 0);
	bench_pass(SECOND);
	check_int(bench_end_run(0, TW_DURABLE_OP_BURY, 1), TW_DURABLE_DONE);
	op = bench_op(TW_DURABLE_OP_DROP, 1, 0);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	check_int(bench_do(0, &op), TW_DURABLE_ABSENT);
	check_int(bench_find(0, 1), -ENOENT);
}

Test(store, dead_letters_are_trimmed, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	for (uint64_t i = 1; i <= 10; i++) {
		bench_put_claimed(0, i, 0);
		check_int(bench_end_run(0, TW_DURABLE_OP_BURY, i), TW_DURABLE_DONE);
		bench_pass(SECOND / 2);
	}
	/*
	 * First removes the letters of the first 2 s by age, but no more than three. Then removes
	 * all but three by number.
	 */
	check_int(bench.stores[0].ops->dead_trim(bench.stores[0].store, 100,
						 bench_now() - 3 * SECOND, 3),
		  3);
	check_int(bench.stores[0].ops->dead_trim(bench.stores[0].store, 3, INT64_MIN, 100), 4);
	check_int(bench_server.count(BENCH_DEAD), 3);
	check_int(bench_find(0, 7), -ENOENT);
	check_int(bench_find(0, 8), 0);
}

/* Operations of a batch that depend on each other take effect in order. */
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
	check_int(bench_server.count(BENCH_TIMERS), 0);
	check_int(bench_server.count(BENCH_DEAD), 1);
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
	/* Makes a batch: PUT 9, DELETE 10 (a timer that does not exist), DELETE 9, PUT 8. */
	ops[1].row.id.serial = 10;
	ops[2].row.id.serial = 9;
	ops[3].row.id.serial = 8;
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 4, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_DONE);
	check_int(ops[1].outcome, TW_DURABLE_ABSENT);
	check_int(ops[2].outcome, TW_DURABLE_DONE);
	check_int(ops[3].outcome, TW_DURABLE_DONE);
	/* PUT 7 finds the key taken; the DELETE after it frees the key. */
	ops[0] = bench_op(TW_DURABLE_OP_PUT, 7, 100 * SECOND);
	ops[0].row.key = "k";
	ops[0].row.key_bytes = 1;
	ops[1] = bench_op(TW_DURABLE_OP_DELETE, 8, 0);
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 2, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_PRESENT);
	check_int(ops[0].row.id.serial, 8);
	check_int(ops[1].outcome, TW_DURABLE_DONE);
}

/*
 * Keys and payloads may be any bytes. None of them may become part of a statement that the server
 * runs.
 */
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
	check_int(bench_find(0, 1), 0);
	check_int(bench.rows[0].row.payload_bytes, BYTES);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.payload_bytes, BYTES);
	free(payload);
}

/*
 * A list has all timers, claimed or not, in the order of their deadlines. A slice continues after
 * the last row of the previous slice.
 */
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
