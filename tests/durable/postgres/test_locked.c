/* SPDX-License-Identifier: MIT */
/*
 * A set of timers, and rows that a user's transactions have locked.
 *
 * Seen to fail with this defect: a start waits for a row that a transaction has locked.
 */
#include "bench_postgres.h"

#include <stdatomic.h>
#include <tickwheel.h>
#include <unistd.h>

static _Atomic int runs;

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	atomic_fetch_add(&runs, 1);
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind mail = TW_DURABLE_KIND("mail", on_run, NULL);

static struct tw_durable_id schedule(struct tw_durable *set)
{
	struct tw_durable_spec spec = {.size = sizeof spec, .kind = &mail, .due_ns = 2 * SECOND};
	struct tw_durable_id id;

	check_int(tw_durable_schedule(set, &spec, &id), 0);
	return id;
}

static void wait_runs(int count)
{
	while (atomic_load(&runs) < count)
		usleep(1000);
}

/*
 * A user's transaction has cancelled a timer and is still open. Other timers must run. The
 * cancelled one must run after a rollback.
 */
Test(locks, a_locked_row_holds_no_other, .init = bench_make, .fini = bench_end, .timeout = 240)
{
	const struct tw_durable_kind *kind = &mail;
	struct tw_durable_options options;
	struct tw_engine *engine;
	struct tw_durable *set;
	struct tw_durable_id id;

	check_int(tw_engine_create(NULL, &engine), 0);
	check_int(tw_durable_options_init(&options, sizeof options), 0);
	bench_server.store(50 * NS_PER_MS, &options.store);
	check_int(tw_durable_open(engine, &kind, 1, &options, &set), 0);
	id = schedule(set);
	(void)schedule(set);
	check_int(tw_durable_flush(set, TW_NEVER), 0);
	bench_sql("BEGIN");
	check_int(
		tw_durable_postgres_cancel_in(bench_postgres.connection, bench_postgres.schema, id),
		TW_DURABLE_DONE);
	wait_runs(1);
	check_int(tw_durable_flush(set, TW_NEVER), 0);
	check_int(atomic_load(&runs), 1);
	bench_sql("ROLLBACK");
	wait_runs(2);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
}
