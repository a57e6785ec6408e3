/* SPDX-License-Identifier: MIT */
/*
 * A client's connection: reads requests and writes replies. The server closes it when it is idle.
 *
 * Traffic may come a million times a second, so it does not move the idle alarm, but only records
 * the time. When the alarm rings, it is set again for the rest of the idle time since the last
 * traffic, or the connection is closed. So each connection sets one alarm for each idle period,
 * whatever the traffic.
 */
#include "reply.h"
#include "server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <tickwheel.h>
#include <unistd.h>

/* If a client does not read its replies and this many bytes wait, the server reads nothing more
 * from it. */
#define OUTPUT_BYTES_MAX (4u << 20)
/* How long a rejected client may continue to send before its connection is closed. */
#define LINGER_NS TW_S(5)

struct connection {
	LIST_ENTRY(connection) link;
	struct server *server;
	struct bufferevent *io;
	struct alarm *idle;
	int64_t last_traffic_ns;
	/* No more requests are served; the connection is closed when the replies are written. */
	bool closing;
	/* Further input is read and discarded, until the client has read the error. */
	bool lingering;
};

static void close_connection(struct connection *connection)
{
	alarm_clear(connection->idle);
	LIST_REMOVE(connection, link);
	connection->server->connection_count--;
	bufferevent_free(connection->io);
	free(connection);
}

static void on_idle(void *owner)
{
	struct connection *connection = owner;
	struct server *server = connection->server;
	int64_t deadline_ns = connection->last_traffic_ns + server->idle_ns;

	connection->idle = NULL;
	if (deadline_ns > alarms_now_ns(server->alarms) &&
	    alarm_set(server->alarms, deadline_ns, on_idle, connection, &connection->idle) == 0)
		return;
	server->idle_closed_count++;
	close_connection(connection);
}

static size_t output_bytes(const struct connection *connection)
{
	return evbuffer_get_length(bufferevent_get_output(connection->io));
}

static void on_linger(void *owner)
{
	struct connection *connection = owner;

	connection->idle = NULL;
	close_connection(connection);
}

/*
 * A client that sends a large request reads only when it has sent all of it. If the server left its
 * bytes unread, the system would reset the connection, and the client would lose the error reply.
 */
static void reject(struct connection *connection, const char *error)
{
	struct alarms *alarms = connection->server->alarms;

	reply_error(bufferevent_get_output(connection->io), error);
	connection->closing = true;
	alarm_clear(connection->idle);
	connection->idle = NULL;
	connection->lingering = alarm_set(alarms, alarms_now_ns(alarms) + LINGER_NS, on_linger,
					  connection, &connection->idle) == 0;
}

/* Serves one request of `input`. Returns how many bytes it took; 0 if there is no whole request. */
static size_t serve_one(struct connection *connection, struct span input)
{
	struct server *server = connection->server;
	size_t bytes = 0;

	switch (resp_parse(input, &server->request, &bytes)) {
	case RESP_DONE:
		connection->closing =
			!command_serve(server, bufferevent_get_output(connection->io));
		return bytes;
	case RESP_MORE:
		/*
		 * The loop must not wake up and parse the request again before `bytes` bytes have
		 * arrived.
		 */
		bufferevent_setwatermark(connection->io, EV_READ, bytes, 0);
		return 0;
	case RESP_TOO_LARGE:
		reject(connection, "ERR Protocol error: request too large: at most 4096 arguments, "
				   "8 MiB in each, 64 MiB in all, 64 KiB inline");
		return 0;
	default:
		reject(connection, "ERR Protocol error");
		return 0;
	}
}

static void serve(struct connection *connection)
{
	struct evbuffer *input = bufferevent_get_input(connection->io);
	struct span rest = {(const char *)evbuffer_pullup(input, -1), evbuffer_get_length(input)};
	size_t taken = 1;
	size_t total = 0;

	bufferevent_setwatermark(connection->io, EV_READ, 0, 0);
	while (rest.count > 0 && taken > 0 && !connection->closing &&
	       output_bytes(connection) < OUTPUT_BYTES_MAX) {
		taken = serve_one(connection, rest);
		rest.bytes += taken;
		rest.count -= taken;
		total += taken;
	}
	evbuffer_drain(input, connection->lingering ? evbuffer_get_length(input) : total);
	if ((connection->closing && !connection->lingering) ||
	    output_bytes(connection) >= OUTPUT_BYTES_MAX)
		bufferevent_disable(connection->io, EV_READ);
}

static void note_traffic(struct connection *connection)
{
	connection->last_traffic_ns = alarms_now_ns(connection->server->alarms);
}

static void on_readable(struct bufferevent *io, void *context)
{
	struct connection *connection = context;
	struct evbuffer *input = bufferevent_get_input(io);

	note_traffic(connection);
	if (connection->lingering)
		evbuffer_drain(input, evbuffer_get_length(input));
	else
		serve(connection);
}

/* Called when all replies are written. */
static void on_written(struct bufferevent *io, void *context)
{
	struct connection *connection = context;

	note_traffic(connection);
	if (connection->lingering) {
		shutdown(bufferevent_getfd(io), SHUT_WR);
	} else if (connection->closing) {
		close_connection(connection);
	} else if ((bufferevent_get_enabled(io) & EV_READ) == 0) {
		bufferevent_enable(io, EV_READ);
		serve(connection);
	}
}

static void on_end(struct bufferevent *io, short what, void *context)
{
	struct connection *connection = context;

	(void)io;
	connection->closing = true;
	if ((what & BEV_EVENT_EOF) == 0 || output_bytes(connection) == 0)
		close_connection(connection);
}

static bool start(struct connection *connection)
{
	struct server *server = connection->server;

	note_traffic(connection);
	bufferevent_setcb(connection->io, on_readable, on_written, on_end, connection);
	return bufferevent_enable(connection->io, EV_READ | EV_WRITE) == 0 &&
	       (server->idle_ns == 0 ||
		alarm_set(server->alarms, connection->last_traffic_ns + server->idle_ns, on_idle,
			  connection, &connection->idle) == 0);
}

void connection_open(struct server *server, int fd)
{
	struct bufferevent *io = bufferevent_socket_new(server->base, fd, BEV_OPT_CLOSE_ON_FREE);
	struct connection *connection = calloc(1, sizeof(*connection));

	if (io == NULL || connection == NULL) {
		if (io != NULL)
			bufferevent_free(io);
		else
			close(fd);
		free(connection);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	connection->server = server;
	connection->io = io;
	LIST_INSERT_HEAD(&server->connections, connection, link);
	server->connection_count++;
	server->accepted_count++;
	if (!start(connection))
		close_connection(connection);
}

void connections_close(struct server *server)
{
	while (!LIST_EMPTY(&server->connections)) {
		/* The engine has stopped, so an alarm of the connection has already ended. */
		LIST_FIRST(&server->connections)->idle = NULL;
		close_connection(LIST_FIRST(&server->connections));
	}
}
