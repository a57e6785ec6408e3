/* SPDX-License-Identifier: MIT */
/* Redis as a store: its options, its functions. */
#include "durable/redis/store.h"

#include "base/sized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_redis.h>

#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

enum { DATABASE_MAX = 15 };

static const struct tw_durable_redis_options defaults = {
	.prefix = "tickwheel",
	.name = "",
	.session_ns = 10 * SECOND,
	.poll_ns = SECOND,
};

int tw_durable_redis_options_init(struct tw_durable_redis_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

static int redis_reserve(void *to, uint64_t count, uint64_t *ret_first)
{
	struct twi_redis *store = to;
	redisReply *reply = NULL;
	uint64_t end;
	int error;

	twi_arguments_number(twi_redis_link_begin(&store->link), (int64_t)count);
	error = twi_redis_link_run(&store->link, TWI_REDIS_RESERVE, &reply);
	/*
	 * If the reply is lost, the server has reserved numbers that no process uses. That does no
	 * harm.
	 */
	if (error != 0)
		return twi_redis_softened(store, error);
	end = reply->type == REDIS_REPLY_STRING ? strtoull(reply->str, NULL, 10) : 0;
	freeReplyObject(reply);
	if (end <= count || end > INT64_MAX)
		return -EUCLEAN;
	*ret_first = end - count;
	return 0;
}

static int redis_upkeep(void *to)
{
	(void)to;
	return 0;
}

static void store_free(struct twi_redis *store)
{
	twi_redis_link_free(&store->link);
	free(store->to_server);
	free(store->from_server);
	free(store->name);
	free(store);
}

/*
 * Ends the session, so that its rows are free at once. If the server cannot be reached, they are
 * free when the session runs out.
 */
static void redis_close(void *to, int clean)
{
	struct twi_redis *store = to;

	(void)clean;
	if (store->link.statements != NULL && store->link.session != 0 && !store->link.over)
		(void)twi_redis_session_end(store);
	store_free(store);
}

static const struct tw_durable_store_ops redis_ops = {
	.size = sizeof(redis_ops),
	.flags = TW_DURABLE_STORE_SHARED,
	.open = twi_redis_open,
	.reserve = redis_reserve,
	.commit = twi_redis_commit,
	.near = twi_redis_near,
	.find = twi_redis_find,
	.find_key = twi_redis_find_key,
	.dead = twi_redis_dead,
	.upkeep = redis_upkeep,
	.close = redis_close,
	.dead_trim = twi_redis_dead_trim,
	.beat = twi_redis_beat,
	.claim = twi_redis_claim,
};

static char *copy(const char *text, bool *good)
{
	char *made = text == NULL ? NULL : strdup(text);

	*good = *good && (text == NULL || made != NULL);
	return made;
}

static struct twi_redis *store_make(const struct tw_durable_redis_options *options)
{
	struct twi_redis *store = calloc(1, sizeof *store);
	bool good = true;

	if (store == NULL)
		return NULL;
	store->link.door = (struct twi_redis_door){
		.address = copy(options->address, &good),
		.user = copy(options->user, &good),
		.password = copy(options->password, &good),
		.database = (int)options->database,
		.connect = options->connect,
		.connect_context = options->connect_context,
	};
	store->link.notice = (struct twi_redis_notice){options->notice, options->context};
	store->link.session_ns = (int64_t)options->session_ns;
	store->link.stated = options->level;
	store->poll_ns = (int64_t)options->poll_ns;
	store->name = copy(options->name, &good);
	twi_redis_keys(options->prefix, store->link.keys);
	if (good)
		return store;
	store_free(store);
	return NULL;
}

static bool door_right(const struct tw_durable_redis_options *options)
{
	if (options->connect != NULL)
		return options->password == NULL && options->user == NULL;
	return options->address != NULL && options->address[0] != '\0' &&
	       (options->user == NULL || options->password != NULL);
}

static bool right(const struct tw_durable_redis_options *options)
{
	return options->flags == 0 && door_right(options) &&
	       twi_redis_prefix_right(options->prefix) && options->name != NULL &&
	       options->session_ns >= SECOND && options->session_ns <= 3600 * SECOND &&
	       options->poll_ns >= 10 * MILLISECOND && options->poll_ns <= 60 * SECOND &&
	       options->database <= DATABASE_MAX && options->level <= TW_DURABLE_LEVEL_DISK;
}

int tw_durable_store_redis(const struct tw_durable_redis_options *options,
			   struct tw_durable_store *ret_store)
{
	struct twi_redis *store;
	int error;

	if (options == NULL || ret_store == NULL)
		return -EINVAL;
	error = twi_size_check(options, options->size, sizeof *options, sizeof *options);
	if (error != 0)
		return error;
	if (!right(options))
		return -EINVAL;
	store = store_make(options);
	if (store == NULL)
		return -ENOMEM;
	*ret_store = (struct tw_durable_store){&redis_ops, store};
	return 0;
}
