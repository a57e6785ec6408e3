/* SPDX-License-Identifier: MIT */
/* Makes connections, and checks the server. */
#ifndef TWI_DURABLE_REDIS_CONNECT_H
#define TWI_DURABLE_REDIS_CONNECT_H

#include "durable/redis/errors.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

/* How to connect to the server. */
struct twi_redis_door {
	/* a path, HOST, HOST:PORT or [HOST]:PORT; NULL if the user's function connects */
	char *address;
	char *user, *password; /* may be NULL */
	int database;
	redisContext *(*connect)(void *context);
	void *connect_context;
};

void twi_redis_door_free(struct twi_redis_door *door);

/*
 * Makes a connection that is ready for statements and does not block. Returns 0 and *ret, a code of
 * errors.h, or -ECONNREFUSED.
 */
int twi_redis_connect(const struct twi_redis_door *door, const struct twi_redis_notice *notice,
		      redisContext **ret);

/*
 * Checks the server. Sets *ret_level, an enum tw_durable_level, from the server's settings, or to
 * `stated` if they cannot be read. Returns 0, or:
 *
 *     -ENOTSUP  the server is too old, part of a cluster, or may evict keys
 *     -EROFS    the server is a replica
 *     -EAGAIN   the server is starting
 *     -EACCES   the server's settings cannot be read, and `stated` is 0
 */
int twi_redis_server_ask(redisContext *connection, uint32_t stated,
			 const struct twi_redis_notice *notice, uint32_t *ret_level);

/*
 * Runs one command on a connection that is not ready yet, and waits for the reply. Returns NULL if
 * the connection broke, or no reply arrived in time.
 */
redisReply *twi_redis_ask(redisContext *connection, int count, const char **texts);

#endif
