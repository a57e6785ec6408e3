/* SPDX-License-Identifier: MIT */
#include "bench_postgres.h"

#include "durable/postgres/text.h"

#include <stdio.h>
#include <unistd.h>

struct bench_postgres bench_postgres;

int64_t bench_sql(const char *text)
{
	char *sql = twi_postgres_text(text, bench_postgres.schema);
	PGresult *result = PQexec(bench_postgres.connection, sql);
	ExecStatusType status = PQresultStatus(result);
	int64_t number = 0;

	cr_assert(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
		  PQerrorMessage(bench_postgres.connection));
	if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
		number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	free(sql);
	return number;
}

static void make(void)
{
	const char *address = getenv("TICKWHEEL_POSTGRES");

	memset(&bench_postgres, 0, sizeof bench_postgres);
	cr_assert(address != NULL, "no server: run this by with_server.py");
	snprintf(bench_postgres.schema, sizeof bench_postgres.schema, "t%d", (int)getpid());
	bench_postgres.connection = PQconnectdb(address);
	cr_assert(PQstatus(bench_postgres.connection) == CONNECTION_OK);
	check_int(tw_durable_postgres_migrate(bench_postgres.connection, bench_postgres.schema), 0);
	bench_sql("SELECT set_config('search_path', '@', false)");
}

/*
 * Waits until the server has ended the other connections. A heartbeat that was sent before its
 * connection was closed may still run. Its locks and those of DROP SCHEMA could cause a deadlock.
 */
static void others_wait(void)
{
	while (bench_sql("SELECT count(*) FROM pg_stat_activity WHERE "
			 "backend_type = 'client backend' AND pid <> pg_backend_pid()") != 0)
		usleep(1000);
}

static void end(void)
{
	if (bench_postgres.connection == NULL)
		return;
	others_wait();
	bench_sql("DROP SCHEMA @ CASCADE");
	PQfinish(bench_postgres.connection);
}

static void store_make(int64_t poll_ns, struct tw_durable_store *ret_store)
{
	struct tw_durable_postgres_options options;

	check_int(tw_durable_postgres_options_init(&options, sizeof options), 0);
	options.address = getenv("TICKWHEEL_POSTGRES");
	options.schema = bench_postgres.schema;
	options.name = "bench";
	if (poll_ns != 0)
		options.poll_ns = (uint64_t)poll_ns;
	check_int(tw_durable_store_postgres(&options, ret_store), 0);
	/*
	 * With this value no look (test_looks.c) begins, even if a claim is slow because the
	 * machine is busy.
	 */
	((struct twi_postgres *)ret_store->store)->look.retry_ns = INT64_MAX;
}

static int64_t now(bool stand)
{
	if (!stand)
		return bench_sql("SELECT @.now_ns()");
	if (bench_sql("SELECT count(*) FROM pg_tables WHERE schemaname = '@' AND tablename = "
		      "'clock'") == 0)
		bench_sql("CREATE TABLE @.clock AS SELECT @.now_ns() AS ns;"
			  "CREATE OR REPLACE FUNCTION @.now_ns() RETURNS bigint LANGUAGE sql "
			  "VOLATILE AS "
			  "'SELECT ns FROM @.clock'");
	return bench_sql("SELECT ns FROM @.clock");
}

static void pass(int64_t ns)
{
	char text[128];

	snprintf(text, sizeof text, "UPDATE @.clock SET ns = ns + %lld", (long long)ns);
	bench_sql(text);
}

static int64_t count(enum bench_what what)
{
	static const char *const texts[] = {
		[BENCH_TIMERS] = "timer",
		[BENCH_CLAIMED] = "timer WHERE session <> 0",
		[BENCH_STARTED] = "timer WHERE started",
		[BENCH_TOUCHED] = "timer WHERE open OR attempt > 0 OR session <> 0",
		[BENCH_DEAD] = "dead",
		[BENCH_SESSIONS] = "session",
	};
	char text[128];

	snprintf(text, sizeof text, "SELECT count(*) FROM @.%s", texts[what]);
	return bench_sql(text);
}

static void pause_all(bool paused)
{
	bench_sql(paused ? "UPDATE @.kind SET paused = true" : "UPDATE @.kind SET paused = false");
}

static void cut(void *of)
{
	struct twi_postgres *store = of;

	PQfinish(store->link.statements);
	store->link.statements = NULL;
}

static void lose_request(void *of)
{
	struct twi_postgres *store = of;

	cut(store);
	store->unsettled = store->unread = store->sent = true;
}

static void lose_reply(void *of)
{
	struct twi_postgres *store = of;

	lose_request(store);
	store->batch--;
}

static void connect_now(void *of)
{
	struct twi_postgres *store = of;

	store->link.connect_at_ns = 0;
}

static void beats(void *of, bool sent)
{
	struct twi_postgres *store = of;

	store->link.beat_at_ns = sent ? 0 : INT64_MAX;
}

static bool beat_due(void *of)
{
	const struct twi_postgres *store = of;

	return store->link.beat_at_ns == 0;
}

static void unread(void *of)
{
	struct twi_postgres *store = of;

	store->unread = true;
}

static int claim_by_hand(void *of, int64_t after)
{
	const struct twi_postgres *store = of;
	PGresult *result;
	char text[160];
	int rows;

	snprintf(text, sizeof text,
		 "SELECT * FROM %s.claim(%lld, %lld, 0, 5000000000, '{1,2}', 10)",
		 bench_postgres.schema, (long long)store->link.session,
		 (long long)(store->batch + after));
	result = PQexec(bench_postgres.connection, text);
	rows = PQresultStatus(result) == PGRES_TUPLES_OK ? PQntuples(result) : -1;
	PQclear(result);
	return rows;
}

static void forget_claim(void *of)
{
	(void)of;
	bench_sql("UPDATE @.session SET batch = batch - 1; UPDATE @.timer SET session = 0");
}

const struct bench_server bench_server = {
	.make = make,
	.end = end,
	.store = store_make,
	.now = now,
	.pass = pass,
	.count = count,
	.pause = pause_all,
	.cut = cut,
	.lose_reply = lose_reply,
	.lose_request = lose_request,
	.connect_now = connect_now,
	.beats = beats,
	.beat_due = beat_due,
	.unread = unread,
	.claim_by_hand = claim_by_hand,
	.forget_claim = forget_claim,
};
