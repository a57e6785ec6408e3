/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The length of a session, as the link to the server needs it. The program has no session; the link
 * waits a quarter of this time for a reply.
 */
#define PATIENCE_NS INT64_C(120000000000)

static void print_notice(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tickwheel-durable: Redis: %s\n", text);
}

static char *copy(const char *text, bool *good)
{
	char *made = text == NULL ? NULL : strdup(text);

	*good = *good && (text == NULL || made != NULL);
	return made;
}

static int texts_make(struct twi_tool_redis *redis)
{
	for (int i = 0; i < TWI_TOOL_REDIS_LINES_COUNT; i++) {
		redis->texts[i] = twi_redis_lines_text(twi_tool_redis_lines[i], NULL);
		if (redis->texts[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int twi_tool_redis_run(struct twi_tool_redis *redis, enum twi_tool_redis_script script,
		       redisReply **ret)
{
	return twi_redis_link_run_text(&redis->store.link, redis->texts[script], ret);
}

/*
 * Makes the tables that translate numbers of kinds. The program uses the server's numbers, so each
 * number is translated to itself.
 */
static int numbers_make(struct twi_redis *store, size_t count)
{
	store->number_count = count;
	store->from_server = calloc(count + 1, sizeof *store->from_server);
	store->to_server = calloc(count + 1, sizeof *store->to_server);
	return store->from_server == NULL || store->to_server == NULL ? -ENOMEM : 0;
}

bool twi_tool_redis_want(struct twi_tool_redis *redis, const char *kind)
{
	struct twi_redis *store = &redis->store;

	redis->all = kind == NULL;
	store->kind_count = 0;
	for (uint32_t i = 0; i < store->number_count; i++) {
		bool wanted = twi_tool_kind(&redis->kinds, i) != NULL &&
			      twi_tool_wanted(&redis->kinds, kind, i);

		store->from_server[i] = wanted || kind == NULL ? i : UINT32_MAX;
		if (wanted)
			store->to_server[store->kind_count++] = i;
	}
	return kind == NULL || store->kind_count != 0;
}

static int kinds_note(struct twi_tool_redis *redis, const redisReply *reply)
{
	enum { KINDS_MOST = 1 << 20, FIRST = 2, PER_KIND = 3 };
	int error = 0;

	for (size_t i = FIRST; i + PER_KIND <= reply->elements && error == 0; i += PER_KIND) {
		unsigned long number = strtoul(reply->element[i]->str, NULL, 10);

		error = number == 0 || number > KINDS_MOST
				? -EUCLEAN
				: twi_tool_kinds_add(&redis->kinds, (uint32_t)number,
						     reply->element[i + 1]->str,
						     reply->element[i + 2]->integer != 0);
	}
	return error;
}

static int meta_note(struct twi_tool_redis *redis, const redisReply *reply)
{
	struct twi_redis_link *link = &redis->store.link;

	if (reply->elements == 0)
		return -ENOENT;
	if (reply->elements < 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[0]->len >= sizeof link->id ||
	    reply->element[1]->type != REDIS_REPLY_STRING)
		return -EUCLEAN;
	snprintf(link->id, sizeof link->id, "%s", reply->element[0]->str);
	redis->serial = strtoull(reply->element[1]->str, NULL, 10);
	return kinds_note(redis, reply);
}

static int meta_read(struct twi_tool_redis *redis)
{
	redisReply *reply = NULL;
	int error;

	twi_arguments_begin(&redis->store.link.arguments);
	error = twi_tool_redis_run(redis, TWI_TOOL_REDIS_KINDS, &reply);
	if (error != 0)
		return error;
	error = meta_note(redis, reply);
	freeReplyObject(reply);
	if (error == 0)
		error = numbers_make(&redis->store, redis->kinds.count);
	if (error == 0)
		(void)twi_tool_redis_want(redis, NULL);
	return error;
}

int twi_tool_redis_open(struct twi_tool_redis *redis, const struct twi_tool_arguments *arguments)
{
	struct twi_redis_link *link = &redis->store.link;
	bool good = true;
	int error;

	*redis = (struct twi_tool_redis){.serial = 0};
	link->door = (struct twi_redis_door){
		.address = copy(arguments->redis, &good),
		.user = copy(arguments->user, &good),
		/*
		 * The password is not an option, because other users of the machine see the
		 * options.
		 */
		.password = copy(getenv("REDISCLI_AUTH"), &good),
		.database = (int)arguments->database,
	};
	link->notice.function = print_notice;
	link->session_ns = PATIENCE_NS;
	twi_redis_keys(arguments->prefix, link->keys);
	error = good ? texts_make(redis) : -ENOMEM;
	if (error == 0)
		error = twi_redis_link_attach(link);
	if (error == 0)
		error = meta_read(redis);
	if (error != 0)
		twi_tool_redis_close(redis);
	return error;
}

void twi_tool_redis_close(struct twi_tool_redis *redis)
{
	for (int i = 0; i < TWI_TOOL_REDIS_LINES_COUNT; i++)
		free(redis->texts[i]);
	twi_redis_link_free(&redis->store.link);
	free(redis->store.from_server);
	free(redis->store.to_server);
	twi_tool_kinds_free(&redis->kinds);
}
