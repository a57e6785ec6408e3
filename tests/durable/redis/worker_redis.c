/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <tickwheel/durable_redis.h>

int worker_store(const struct worker_place *place, struct tw_durable_store *ret_store)
{
	struct tw_durable_redis_options server;

	(void)tw_durable_redis_options_init(&server, sizeof server);
	server.address = place->address;
	server.prefix = place->place;
	server.name = place->name;
	server.session_ns = place->session_ns;
	server.poll_ns = place->session_ns / 10;
	server.notice = place->notice;
	server.password = getenv("TESTS_REDIS_PASSWORD");
	if (getenv("TESTS_REDIS_STATED") != NULL)
		server.level = TW_DURABLE_LEVEL_DISK;
	return tw_durable_store_redis(&server, ret_store);
}

/* Fails, because Redis has no such transaction: a run's own transaction cannot end its timer. */
int worker_effect(const struct worker_place *place, const struct tw_durable_self *self,
		  const char *id)
{
	(void)place;
	(void)self;
	(void)id;
	return -EOPNOTSUPP;
}

void worker_end(void)
{
}
