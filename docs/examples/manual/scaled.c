/* SPDX-License-Identifier: MIT */
/* A server that closes idle connections sooner when memory runs short. */
#include "check.h"

struct connection {
	int socket;
	struct tw_handle idle;
};

static struct tw_scaled *idle_timeouts;

static void on_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;

	(void)self;
	printf("close %d\n", connection->socket);
}

static const struct tw_kind idle = TW_KIND(on_idle, NULL);

/* example: tw_scaled_create */
/* A connection may be idle for 10 minutes, under pressure for 1. */
static int server_begin(struct tw_engine *engine)
{
	return tw_scaled_create(engine, TW_MINUTES(1),
				TW_MINUTES(10), &idle_timeouts);
}
/* end */

/* example: tw_scaled_schedule */
static int connection_open(struct connection *connection)
{
	return tw_scaled_schedule(idle_timeouts, &idle, connection,
				  &connection->idle);
}
/* end */

/* example: tw_scaled_touch */
/* Returns false if it was idle too long, and is being closed. */
static bool request_begin(struct connection *connection)
{
	return tw_scaled_touch(idle_timeouts, connection->idle) ==
	       TW_RESCHEDULE_DONE;
}
/* end */

/* example: tw_scaled_factor_set tw_scaled_factor_get */
/* `used`: the fraction of the memory that is in use, 0 to 1. */
static int pressure_report(struct tw_engine *engine, double used)
{
	double factor = used < 0.8 ? 1 : (1 - used) / 0.2;
	double before;
	int code = tw_scaled_factor_get(engine, &before);

	if (code < 0 || factor == before)
		return code;
	return tw_scaled_factor_set(engine, factor);
}
/* end */

/* example: tw_scaled_deadline */
static void connection_report(struct tw_engine *engine,
			      struct connection *connection)
{
	int64_t end_ns;

	if (tw_scaled_deadline(idle_timeouts, connection->idle,
			       &end_ns) == 0)
		printf("%d: %" PRId64 " s left\n",
		       connection->socket,
		       (end_ns - tw_engine_now(engine)) / TW_S(1));
}
/* end */

/* example: tw_scaled_pending */
static void server_report(void)
{
	printf("%" PRId64 " connections\n",
	       tw_scaled_pending(idle_timeouts));
}
/* end */

/* example: tw_scaled_owns */
static void on_unexpired(void *context, struct tw_handle handle,
			 const struct tw_kind *kind, void *arg,
			 int64_t remaining_ns)
{
	(void)context, (void)handle, (void)remaining_ns;
	if (!tw_scaled_owns(kind))
		printf("open %d\n",
		       ((struct connection *)arg)->socket);
}
/* end */

/* example: tw_scaled_stop tw_scaled_destroy */
/* Call it before the engine's stop. on_unexpired gets each open
 * connection. */
static int server_end(void)
{
	int code = tw_scaled_stop(idle_timeouts, on_unexpired, NULL,
				  TW_S(10));

	return code < 0 ? code : tw_scaled_destroy(idle_timeouts);
}
/* end */

int main(void)
{
	struct connection connection = {.socket = 7};
	struct tw_engine *engine;
	double factor;

	CHECK(tw_engine_create(NULL, &engine) == 0);
	CHECK(server_begin(engine) == 0);
	CHECK(connection_open(&connection) == 0);
	CHECK(request_begin(&connection));
	CHECK(pressure_report(engine, 0.9) == 0);
	CHECK(tw_scaled_factor_get(engine, &factor) == 0 &&
	      factor > 0.4 && factor < 0.6);
	connection_report(engine, &connection);
	server_report();
	CHECK(tw_scaled_pending(idle_timeouts) == 1);
	CHECK(server_end() == 0);
	CHECK(tw_engine_stop(engine, on_unexpired, NULL,
			     TW_NEVER) == 0 &&
	      tw_engine_destroy(engine) == 0);
	return 0;
}
