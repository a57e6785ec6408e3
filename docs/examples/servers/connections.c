/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that end together. A connection has an idle timeout, and one timeout for each request
 * that is under way. When the connection closes, one call cancels all of them, and reports for each
 * whether it was in time.
 *
 * The program plays 1,000 connections in virtual time, in loop mode. In loop mode no callback runs
 * for a connection after its close. With a worker thread, a callback may still run at the close.
 * Its outcome is then TW_CANCEL_RUNNING: call tw_cancel_wait for it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <tickwheel.h>

enum { CONNECTIONS = 1000, REQUESTS = 7, TIMEOUTS = REQUESTS + 1 };

struct connection {
	struct tw_handle timeouts[TIMEOUTS]; /* the last one is the idle timeout */
	bool closed;
};

static uint64_t requests_late, idle_closed, cancelled, after_close;

static void on_request(struct tw_handle self, void *arg)
{
	const struct connection *connection = arg;

	(void)self;
	after_close += connection->closed;
	requests_late++;
}

/* Cancels all timeouts of the connection except those that have run or run now. */
static void connection_close(struct connection *connection)
{
	int done = tw_cancel_many(connection->timeouts, TIMEOUTS, NULL);

	connection->closed = true;
	cancelled += done > 0 ? (uint64_t)done : 0;
}

static void on_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;

	(void)self;
	after_close += connection->closed;
	idle_closed++;
	connection_close(connection);
}

static const struct tw_kind request = TW_KIND(on_request, NULL), idle = TW_KIND(on_idle, NULL);

/* Schedules all timeouts of a new connection with one reading of the clock and one notification of
 * the worker. */
static int connection_open(struct tw_engine *engine, struct connection *connection, int number)
{
	struct tw_item items[TIMEOUTS];

	for (int i = 0; i < REQUESTS; i++)
		items[i] = (struct tw_item){TW_MS(10 + number % 90 + 20 * i), &request, connection};
	items[REQUESTS] = (struct tw_item){TW_MS(60 + number % 50), &idle, connection};
	connection->closed = false;
	return tw_schedule_many(engine, items, TIMEOUTS, connection->timeouts, NULL) == TIMEOUTS
		       ? 0
		       : -1;
}

/* Half of the peers close after 50 ms; the idle timeouts close the others. */
static void play(struct tw_clock *clock, struct tw_engine *engine, struct connection *connections)
{
	for (int64_t ms = 1; ms <= 300; ms++) {
		tw_clock_set(clock, TW_MS(ms));
		tw_engine_poll(engine, 0);
		for (int i = 0; ms == 50 && i < CONNECTIONS; i += 2)
			connection_close(&connections[i]);
	}
}

int main(void)
{
	static struct connection connections[CONNECTIONS];
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;
	int64_t pending;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_clock_create_virtual(0, &clock) != 0)
		return 1;
	options.clock = clock;
	if (tw_engine_create(&options, &engine) != 0)
		return 1;
	for (int i = 0; i < CONNECTIONS; i++)
		if (connection_open(engine, &connections[i], i) != 0)
			return 1;
	play(clock, engine, connections);
	pending = tw_engine_pending(engine);
	printf("%" PRIu64 " requests late, %" PRIu64 " closed as idle, %" PRIu64
	       " cancelled, %" PRIu64 " after a close, %" PRId64 " left\n",
	       requests_late, idle_closed, cancelled, after_close, pending);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	tw_clock_destroy(clock);
	return after_close != 0 || pending != 0 ||
	       requests_late + idle_closed + cancelled != CONNECTIONS * TIMEOUTS;
}
