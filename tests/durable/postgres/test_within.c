/* SPDX-License-Identifier: MIT */
/*
 * Calls inside a user's transactions, and invalid arguments.
 *
 * Seen to fail with the defects of planted.py.
 */
#include "bench_postgres.h"

/*
 * Calls in a user's transaction: they take effect at the commit, and have no effect after a
 * rollback.
 */
Test(within, calls_inside_a_transaction, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_postgres_spec spec = {
		.size = sizeof spec, .kind = "mail", .key = "k", .key_bytes = 1};
	struct tw_durable_id id, other;

	bench_open(0);
	spec.due_ns = bench_now();
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, &id),
		  0);
	check_int(bench_claim(0), 0);
	bench_sql("ROLLBACK");
	check_int(bench_claim(0), 0);
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, &id),
		  0);
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, &other),
		  0);
	check_true(id.serial == other.serial && id.place == other.place);
	bench_sql("BEGIN");
	check_int(
		tw_durable_postgres_cancel_in(bench_postgres.connection, bench_postgres.schema, id),
		TW_DURABLE_DONE);
	bench_sql("ROLLBACK");
	check_int(bench_claim(0), 1);
	check_int(tw_durable_postgres_cancel_key_in(bench_postgres.connection,
						    bench_postgres.schema, "k", 1),
		  TW_DURABLE_DONE);
	check_int(tw_durable_postgres_cancel_key_in(bench_postgres.connection,
						    bench_postgres.schema, "k", 1),
		  TW_DURABLE_ABSENT);
	check_int(
		tw_durable_postgres_cancel_in(bench_postgres.connection, bench_postgres.schema, id),
		TW_DURABLE_ABSENT);
}

/* If the session has lost the timer, the run's end has no effect. */
Test(within, a_run_ends_its_timer_in_a_transaction, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_self self = {.id = {7, 1}, .attempt = 1};
	struct tw_durable_op op;

	bench_open(0);
	bench_put_claimed(0, 1, 0);
	op = bench_op(TW_DURABLE_OP_START, 1, 0);
	op.row.attempt = 1;
	op.fence = bench.sessions[0].number;
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  -ESTALE);
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	self.fence = op.row.fence;
	self.attempt = 2;
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  -ESTALE);
	self.attempt = 1;
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  0);
	bench_sql("ROLLBACK");
	bench_session_ends(0);
	bench_open(1);
	check_int(bench_claim(1), 1);
	/* Both runs have the same attempt number, so only the fence distinguishes them. */
	op.fence = bench.sessions[1].number;
	check_int(bench_do(1, &op), TW_DURABLE_DONE);
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  -ESTALE);
	self.fence = op.row.fence;
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  0);
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						&self),
		  -ESTALE);
	check_int(bench_end_run(1, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_ABSENT);
}

Test(within, bad_arguments_are_rejected, .init = bench_make, .fini = bench_end)
{
	static const char *const wrong[] = {
		"", "A", "a-b", "a b", "a\"b", "abcdefghijklmnopqrstuvwxyz0123456", NULL};
	struct tw_durable_postgres_spec spec = {.size = sizeof spec, .kind = "mail", .due_ns = 1};
	struct tw_durable_id id = {1, 1};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		check_int(tw_durable_postgres_migrate(bench_postgres.connection, wrong[i]),
			  -EINVAL);
		check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, wrong[i],
							  &spec, NULL),
			  -EINVAL);
		check_int(tw_durable_postgres_cancel_in(bench_postgres.connection, wrong[i], id),
			  -EINVAL);
	}
	check_int(tw_durable_postgres_migrate(NULL, "a"), -EINVAL);
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  NULL, NULL),
		  -EINVAL);
	spec.due_ns = TW_NEVER;
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, NULL),
		  -EINVAL);
	spec.due_ns = 1;
	spec.key_bytes = 1;
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, NULL),
		  -EINVAL);
	spec.key = "k";
	spec.key_bytes = 256;
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, NULL),
		  -EMSGSIZE);
	spec.key_bytes = 1;
	spec.kind = "Not a kind";
	check_int(tw_durable_postgres_schedule_in(bench_postgres.connection, bench_postgres.schema,
						  &spec, NULL),
		  -EINVAL);
	check_int(tw_durable_postgres_cancel_key_in(bench_postgres.connection,
						    bench_postgres.schema, NULL, 1),
		  -EINVAL);
	check_int(tw_durable_postgres_finish_in(bench_postgres.connection, bench_postgres.schema,
						NULL),
		  -EINVAL);
	check_int(tw_durable_postgres_cancel_in(bench_postgres.connection, "none", id), -ENOENT);
	bench_sql("BEGIN");
	check_int(tw_durable_postgres_migrate(bench_postgres.connection, bench_postgres.schema),
		  -EINVAL);
	bench_sql("ROLLBACK");
}

Test(within, an_id_that_no_server_has_is_absent, .init = bench_make, .fini = bench_end)
{
	const uint64_t serials[] = {(uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};

	for (int i = 0; i < 3; i++) {
		struct tw_durable_id id = {7, serials[i]};
		struct tw_durable_self self = {.id = id, .fence = 1};

		check_int(tw_durable_postgres_cancel_in(bench_postgres.connection,
							bench_postgres.schema, id),
			  TW_DURABLE_ABSENT);
		check_int(tw_durable_postgres_finish_in(bench_postgres.connection,
							bench_postgres.schema, &self),
			  -ESTALE);
	}
}
