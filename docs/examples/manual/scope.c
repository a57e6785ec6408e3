/* SPDX-License-Identifier: MIT */
/* A server whose connections have several timeouts each. */
#include "check.h"

struct connection {
	int socket;
	struct tw_scope *timeouts;
};

static void on_idle(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static const struct tw_kind idle = TW_KIND(on_idle, NULL);

/* example: tw_scope_create */
static int connection_open(struct connection *connection,
			   struct tw_engine *engine, int socket)
{
	connection->socket = socket;
	return tw_scope_create(engine, NULL, &connection->timeouts);
}
/* end */

/* example: tw_scope_schedule */
/* -ESHUTDOWN: another thread has closed the connection. */
static int request_begin(struct connection *connection,
			 struct tw_handle *timeout)
{
	return tw_scope_schedule(connection->timeouts, TW_S(30),
				 &idle, connection, timeout);
}
/* end */

/* example: tw_scope_schedule_at */
/* The connection must end by this time, whatever it does. */
static int lifetime_limit(struct connection *connection,
			  int64_t end_ns)
{
	return tw_scope_schedule_at(connection->timeouts, end_ns,
				    &idle, connection, NULL);
}
/* end */

/* example: tw_scope_count */
static void connection_report(struct connection *connection)
{
	printf("%d: %" PRId64 " timeouts\n", connection->socket,
	       tw_scope_count(connection->timeouts));
}
/* end */

/* example: tw_scope_end */
/* The peer is gone. Callbacks may still run afterwards. */
static void connection_cut(struct connection *connection)
{
	int64_t cancelled = tw_scope_end(connection->timeouts);

	if (cancelled > 0)
		printf("%d: %" PRId64 " timeouts cancelled\n",
		       connection->socket, cancelled);
}
/* end */

/* example: tw_scope_end_wait tw_scope_destroy */
/* When it returns 0, no callback uses the connection any more. */
static int connection_close(struct connection *connection)
{
	int code =
		tw_scope_end_wait(connection->timeouts, TW_S(10));

	if (code < 0)
		return code;
	return tw_scope_destroy(connection->timeouts);
}
/* end */

int main(void)
{
	struct connection connection;
	struct tw_engine *engine;
	struct tw_handle timeout;

	CHECK(tw_engine_create(NULL, &engine) == 0);
	CHECK(connection_open(&connection, engine, 7) == 0);
	CHECK(request_begin(&connection, &timeout) == 0);
	CHECK(lifetime_limit(&connection,
			     tw_engine_now(engine) + TW_HOURS(1)) ==
	      0);
	connection_report(&connection);
	CHECK(tw_scope_count(connection.timeouts) == 2);
	connection_cut(&connection);
	CHECK(tw_timeout_state(timeout) == TW_STATE_CANCELLED);
	CHECK(request_begin(&connection, &timeout) == -ESHUTDOWN);
	CHECK(connection_close(&connection) == 0);
	CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0 &&
	      tw_engine_destroy(engine) == 0);
	return 0;
}
