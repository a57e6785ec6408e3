/* SPDX-License-Identifier: MIT */
/* The state that all parts of the server share. Only the loop's thread uses it. */
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
	/* A connection without traffic for this time is closed; 0: never. */
	int64_t idle_ns;
	uint64_t tick_ns;
	uint64_t connection_count;
	uint64_t accepted_count;
	uint64_t idle_closed_count;
	uint64_t command_count;
	/* The request that is being served. Only one is served at a time, so all connections share
	 * this. */
	struct request request;
};

/* commands.c: serves server->request. Returns false if the connection must be closed after the
 * reply. */
bool command_serve(struct server *server, struct evbuffer *out);

/* info.c: writes the reply of INFO. */
void info_reply(struct server *server, struct evbuffer *out);

/* connection.c */
void connection_open(struct server *server, int fd);
void connections_close(struct server *server);

#endif
