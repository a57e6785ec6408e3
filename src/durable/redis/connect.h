/* SPDX-License-Identifier: MIT */
/* Makes connections, and looks at the server. */
#ifndef TWI_DURABLE_REDIS_CONNECT_H
#define TWI_DURABLE_REDIS_CONNECT_H

#include "durable/redis/errors.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

/* How to come to the server. */
struct twi_redis_door {
	char *address; /* a path, HOST, HOST:PORT or [HOST]:PORT; NULL: the user's function connects */
	char *user, *password; /* or NULL */
	int database;
	redisContext *(*connect)(void *context);
	void *connect_context;
};

void twi_redis_door_free(struct twi_redis_door *door);

/* A connection that is ready for statements and does not block; 0 and *ret, or a code of errors.h, or
 * -ECONNREFUSED. */
int twi_redis_connect(const struct twi_redis_door *door, const struct twi_redis_notice *notice,
		      redisContext **ret);

/*
 * The level of the server, as an enum tw_durable_level: from its own settings, or, if they cannot be read, the one
 * the caller says (0: nothing). -ENOTSUP: it is too old, part of a cluster, or may evict keys; -EROFS: a
 * replica; -EAGAIN: it starts; -EACCES: it says nothing, and the caller does neither.
 */
int twi_redis_server_ask(redisContext *connection, uint32_t stated,
			 const struct twi_redis_notice *notice, uint32_t *ret_level);

/* One command, with a wait for its reply; NULL: the connection broke. For a connection that is being made. */
redisReply *twi_redis_ask(redisContext *connection, int count, const char **texts);

#endif
