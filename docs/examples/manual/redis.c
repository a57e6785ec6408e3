/* SPDX-License-Identifier: MIT */
/* Durable timers in Redis. Needs a server. */
#include "check.h"

#include <stdlib.h>
#include <tickwheel.h>
#include <tickwheel/durable_redis.h>

static int on_mail(const struct tw_durable_self *self,
		   const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind mail =
	TW_DURABLE_KIND("mail", on_mail, NULL);

/* example: tw_durable_redis_options_init tw_durable_store_redis */
/* `address`: the path of a socket, or "host:port". */
static int store_make(const char *address,
		      struct tw_durable_store *ret_store)
{
	struct tw_durable_redis_options server;

	tw_durable_redis_options_init(&server, sizeof server);
	server.address = address;
	return tw_durable_store_redis(&server, ret_store);
}
/* end */

int main(void)
{
	const struct tw_durable_kind *kinds[] = {&mail};
	struct tw_durable_options options;
	struct tw_durable *timers;
	struct tw_engine *engine;

	CHECK(tw_engine_create(NULL, &engine) == 0);
	CHECK(tw_durable_options_init(&options, sizeof options) ==
	      0);
	CHECK(store_make(getenv("TICKWHEEL_REDIS"),
			 &options.store) == 0);
	CHECK(tw_durable_open(engine, kinds, 1, &options,
			      &timers) == 0);
	CHECK(tw_durable_close(timers, TW_NEVER) == 0);
	CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	CHECK(tw_engine_destroy(engine) == 0);
	return 0;
}
