/* SPDX-License-Identifier: MIT */
/*
 * One process of a shop that cancels orders if they are not paid in time. Any number of these
 * processes share a PostgreSQL database, and each may be killed.
 *
 *     shop ADDRESS setup          makes the tables
 *     shop ADDRESS MILLISECONDS   obeys lines of its input: "order N", "pay N"
 *
 * One transaction makes the order and its timer. The transaction that records a payment also
 * cancels the timer. The timer's run cancels the order, and ends the timer in the same transaction.
 */
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/durable_postgres.h>
#include <time.h>

#define SCHEMA "shop_timers"

static const char *address;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "shop: %s: %s\n", what, why);
	exit(1);
}

/* Runs a statement. Returns how many rows it has changed; -1: it has failed. */
static int change(PGconn *connection, const char *text, const char *argument)
{
	PGresult *result = PQexecParams(connection, text, argument == NULL ? 0 : 1, NULL, &argument,
					NULL, NULL, 0);
	int rows = PQresultStatus(result) == PGRES_COMMAND_OK ? atoi(PQcmdTuples(result)) : -1;

	PQclear(result);
	return rows;
}

static PGconn *connect_or_fail(void)
{
	PGconn *connection = PQconnectdb(address);

	if (PQstatus(connection) != CONNECTION_OK)
		fail("connect", PQerrorMessage(connection));
	return connection;
}

/* Ends the transaction. Returns true if it was committed. After false it may still have been
 * committed, if the connection broke before the reply. */
static bool end(PGconn *connection, bool good)
{
	return change(connection, good ? "COMMIT" : "ROLLBACK", NULL) >= 0 && good;
}

static bool order_cancel(PGconn *connection, const struct tw_durable_self *self, const char *order)
{
	bool good = change(connection, "BEGIN", NULL) >= 0 &&
		    change(connection,
			   "UPDATE orders SET state = 'cancelled', cancels = cancels + 1 "
			   "WHERE id = $1",
			   order) == 1 &&
		    tw_durable_postgres_finish_in(connection, SCHEMA, self) == 0;

	return end(connection, good);
}

/* Runs on the engine's worker. A shop with more orders would use a pool of threads. */
static int on_due(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	PGconn *connection = PQconnectdb(address);
	char order[32];
	bool done;

	snprintf(order, sizeof order, "%.*s", (int)bytes, (const char *)payload);
	done = PQstatus(connection) == CONNECTION_OK && order_cancel(connection, self, order);
	PQfinish(connection);
	return done ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}

static const struct tw_retry_schedule schedule =
	TW_RETRY_EXPONENTIAL(TW_MS(100), TW_S(10), 200, TW_RETRY_JITTER_EQUAL);
static const struct tw_durable_kind unpaid = TW_DURABLE_KIND("order.unpaid", on_due, &schedule);

static int64_t in_ms(long ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ms * INT64_C(1000000);
}

static bool order_make(PGconn *connection, const char *order, long ms)
{
	const struct tw_durable_postgres_spec spec = {
		.size = sizeof spec,
		.kind = "order.unpaid",
		.due_ns = in_ms(ms),
		.payload = order,
		.payload_bytes = (uint32_t)strlen(order),
		.key = order,
		.key_bytes = (uint32_t)strlen(order),
	};
	bool good = change(connection, "BEGIN", NULL) >= 0 &&
		    change(connection, "INSERT INTO orders (id) VALUES ($1)", order) == 1 &&
		    tw_durable_postgres_schedule_in(connection, SCHEMA, &spec, NULL) == 0;

	return end(connection, good);
}

/* Returns false if it is too late, or there is no such order. */
static bool order_pay(PGconn *connection, const char *order)
{
	bool good = change(connection, "BEGIN", NULL) >= 0;
	int outcome =
		good ? tw_durable_postgres_cancel_key_in(connection, SCHEMA, order, strlen(order))
		     : -1;

	/* ATTEMPTED: a run had begun and was rolled back, so the order is still open. */
	good = (outcome == TW_DURABLE_DONE || outcome == TW_DURABLE_ATTEMPTED) &&
	       change(connection,
		      "UPDATE orders SET state = 'paid' WHERE id = $1 AND state = 'open'",
		      order) == 1;
	return end(connection, good);
}

static int setup(void)
{
	PGconn *connection = connect_or_fail();
	int code = tw_durable_postgres_migrate(connection, SCHEMA);

	if (code < 0)
		fail("migrate", tw_strerror(code));
	if (change(connection,
		   "CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, state text NOT NULL "
		   "DEFAULT 'open', cancels integer NOT NULL DEFAULT 0)",
		   NULL) < 0)
		fail("orders", PQerrorMessage(connection));
	PQfinish(connection);
	return 0;
}

static struct tw_durable *timers_open(struct tw_engine *engine)
{
	const struct tw_durable_kind *kinds[] = {&unpaid};
	struct tw_durable_postgres_options server;
	struct tw_durable_options options;
	struct tw_durable *timers = NULL;
	int code;

	tw_durable_postgres_options_init(&server, sizeof server);
	server.address = address;
	server.schema = SCHEMA;
	server.session_ns = TW_S(2);
	server.poll_ns = TW_MS(200);
	tw_durable_options_init(&options, sizeof options);
	code = tw_durable_store_postgres(&server, &options.store);
	if (code == 0)
		code = tw_durable_open(engine, kinds, 1, &options, &timers);
	if (code < 0)
		fail("open", tw_strerror(code));
	return timers;
}

/* Answers each line of the input, until its end. */
static void serve(PGconn *connection, long ms)
{
	char line[64], order[32];

	while (fgets(line, sizeof line, stdin) != NULL) {
		bool good = false;

		if (sscanf(line, "order %31s", order) == 1)
			good = order_make(connection, order, ms);
		else if (sscanf(line, "pay %31s", order) == 1)
			good = order_pay(connection, order);
		puts(good ? "yes" : "no");
		fflush(stdout);
	}
}

int main(int count, char **texts)
{
	struct tw_engine *engine;
	struct tw_durable *timers;
	PGconn *connection;

	if (count != 3)
		fail("usage", "shop ADDRESS setup | MILLISECONDS");
	address = texts[1];
	if (strcmp(texts[2], "setup") == 0)
		return setup();
	if (tw_engine_create(NULL, &engine) != 0)
		fail("engine", "no memory");
	timers = timers_open(engine);
	connection = connect_or_fail();
	serve(connection, strtol(texts[2], NULL, 10));
	PQfinish(connection);
	if (tw_durable_close(timers, TW_S(10)) != 0)
		fail("close", "the server is away");
	(void)tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	(void)tw_engine_destroy(engine);
	return 0;
}
