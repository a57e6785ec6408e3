/* SPDX-License-Identifier: MIT */
/* Durable timers in PostgreSQL, in the same transactions as the
 * program's own changes. Needs a server. */
#include "check.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>
#include <unistd.h>

static const char *address;
static int closed;

static void run_sql(PGconn *connection, const char *text)
{
	PGresult *result = PQexec(connection, text);
	ExecStatusType status = PQresultStatus(result);

	CHECK(status == PGRES_COMMAND_OK ||
	      status == PGRES_TUPLES_OK);
	PQclear(result);
}

/* example: tw_durable_postgres_finish_in */
/* The effect happens exactly once, even if the run is repeated. */
static int close_now(PGconn *connection,
		     const struct tw_durable_self *self)
{
	int code;

	run_sql(connection,
		"BEGIN; UPDATE shop SET closed = closed + 1");
	code = tw_durable_postgres_finish_in(connection,
					     "tickwheel", self);
	run_sql(connection, code == 0 ? "COMMIT" : "ROLLBACK");
	return code == 0 ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}
/* end */

static int on_run(const struct tw_durable_self *self,
		  const void *order, size_t bytes)
{
	PGconn *connection = PQconnectdb(address);
	int result = close_now(connection, self);

	(void)order;
	(void)bytes;
	PQfinish(connection);
	__atomic_fetch_add(&closed, 1, __ATOMIC_RELEASE);
	return result;
}

static const int64_t delays[] = {TW_S(1)};
static const struct tw_retry_schedule schedule =
	TW_RETRY_TABLE(delays);
static const struct tw_durable_kind close_order =
	TW_DURABLE_KIND("close", on_run, &schedule);

/* example: tw_durable_postgres_options_init tw_durable_store_postgres */
static int store_make(struct tw_durable_store *ret_store)
{
	struct tw_durable_postgres_options options;

	tw_durable_postgres_options_init(&options, sizeof options);
	options.address = address;
	options.name = "shop-1";
	return tw_durable_store_postgres(&options, ret_store);
}
/* end */

static int timers_open(struct tw_engine *engine,
		       struct tw_durable **ret_timers)
{
	const struct tw_durable_kind *kinds[] = {&close_order};
	struct tw_durable_options options;

	tw_durable_options_init(&options, sizeof options);
	CHECK(store_make(&options.store) == 0);
	return tw_durable_open(engine, kinds, 1, &options,
			       ret_timers);
}

/* example: tw_durable_postgres_migrate */
static void deploy(PGconn *connection)
{
	int code = tw_durable_postgres_migrate(connection,
					       "tickwheel");

	if (code < 0)
		fprintf(stderr, "timers: %s\n", tw_strerror(code));
}
/* end */

static void on_text(void *to, const char *text, size_t bytes)
{
	(void)text;
	*(size_t *)to += bytes;
}

/* example: tw_durable_postgres_sql */
static size_t sql_bytes(void)
{
	size_t bytes = 0;

	tw_durable_postgres_sql("tickwheel", on_text, &bytes);
	return bytes;
}
/* end */

/* example: tw_durable_postgres_upgrade_sql */
static size_t upgrade_bytes(void)
{
	size_t bytes = 0;

	/* From version 1 to that of this library. */
	tw_durable_postgres_upgrade_sql("tickwheel", 1, on_text,
					&bytes);
	return bytes;
}
/* end */

static const struct tw_durable_postgres_spec closing = {
	.size = sizeof closing,
	.kind = "close",
	.key = "order 17",
	.key_bytes = 8,
};

/* example: tw_durable_postgres_schedule_in */
/* Called inside the transaction that makes the order. */
static int close_later(PGconn *connection, int64_t due_ns,
		       struct tw_durable_id *ret_id)
{
	struct tw_durable_postgres_spec spec = closing;

	spec.due_ns = due_ns;
	return tw_durable_postgres_schedule_in(
		connection, "tickwheel", &spec, ret_id);
}
/* end */

/* example: tw_durable_postgres_cancel_in */
static bool cancelled(PGconn *connection, struct tw_durable_id id)
{
	return tw_durable_postgres_cancel_in(connection,
					     "tickwheel",
					     id) == TW_DURABLE_DONE;
}
/* end */

/* example: tw_durable_postgres_cancel_key_in */
static int paid(PGconn *connection)
{
	return tw_durable_postgres_cancel_key_in(
		connection, "tickwheel", "order 17", 8);
}
/* end */

int main(void)
{
	struct tw_durable *timers = NULL;
	struct tw_engine *engine = NULL;
	struct tw_durable_id id;
	PGconn *connection;

	address = getenv("TICKWHEEL_POSTGRES");
	if (address == NULL)
		return 77;
	connection = PQconnectdb(address);
	run_sql(connection,
		"CREATE TABLE shop AS SELECT 0 AS closed");
	CHECK(sql_bytes() > 1000);
	CHECK(upgrade_bytes() > sql_bytes() / 2);
	deploy(connection);
	deploy(connection);
	CHECK(close_later(connection, TW_HOURS(24), &id) == 0);
	CHECK(cancelled(connection, id));
	CHECK(paid(connection) == TW_DURABLE_ABSENT);
	run_sql(connection, "BEGIN");
	CHECK(close_later(connection, 1, &id) == 0);
	run_sql(connection, "COMMIT");
	CHECK(tw_engine_create(NULL, &engine) == 0);
	CHECK(timers_open(engine, &timers) == 0);
	while (__atomic_load_n(&closed, __ATOMIC_ACQUIRE) == 0)
		usleep(1000);
	CHECK(tw_durable_close(timers, TW_S(10)) == 0);
	CHECK(paid(connection) == TW_DURABLE_ABSENT);
	run_sql(connection,
		"SELECT 1 / (closed = 1)::integer FROM shop");
	CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	CHECK(tw_engine_destroy(engine) == 0);
	PQfinish(connection);
	return 0;
}
