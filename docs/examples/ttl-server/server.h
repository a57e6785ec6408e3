/* SPDX-License-Identifier: MIT */
/* What all rooms of the server share. Everything here belongs to the loop's thread. */
#ifndef TTL_SERVER_SERVER_H
#define TTL_SERVER_SERVER_H

#include "alarms.h"
#include "resp.h"
#include "store.h"

#include <sys/queue.h>

struct connection;
struct evbuffer;
struct event_base;

struct server {
	struct event_base *base;
	struct alarms *alarms;
	struct store store;
	LIST_HEAD(, connection) connections;
	/* A connection without traffic for so long is closed; 0: never. */
	int64_t idle_ns;
	uint64_t tick_ns;
	uint64_t connection_count;
	uint64_t accepted_count;
	uint64_t idle_closed_count;
	uint64_t command_count;
	/* The request being served: one at a time, so one for all connections. */
	struct request request;
};

/* commands.c: serves server->request; false: close the connection after the reply. */
bool command_serve(struct server *server, struct evbuffer *out);

/* info.c: the report that INFO replies. */
void info_reply(struct server *server, struct evbuffer *out);

/* connection.c */
void connection_open(struct server *server, int fd);
void connections_close(struct server *server);

#endif
