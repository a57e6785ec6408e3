/* SPDX-License-Identifier: MIT */
/*
 * Opens the store, and keeps its session alive. When a session is over, a new one begins. But if
 * the old session's last commit has an unknown outcome, the store first finds out whether it was
 * done (settle.c).
 */
#include "durable/redis/store.h"
#include "durable/redis/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int session_begin(struct twi_redis *store)
{
	struct twi_redis_link *link = &store->link;
	struct twi_arguments *arguments = twi_redis_link_begin(link);
	int64_t sent_ns = twi_redis_now_ns();
	redisReply *reply = NULL;
	int error;

	twi_arguments_number(arguments, link->session_ns / 1000);
	twi_arguments_text(arguments, store->name);
	error = twi_redis_link_run(link, TWI_REDIS_SESSION, &reply);
	if (error != 0)
		return error;
	twi_redis_link_session(link, strtoull(reply->element[0]->str, NULL, 10),
			       strtoll(reply->element[1]->str, NULL, 10), sent_ns);
	freeReplyObject(reply);
	store->batch = 0;
	store->claim_at_ns = 0;
	store->unread = false;
	return 0;
}

int twi_redis_session_end(struct twi_redis *store)
{
	int64_t until_ns = twi_redis_link_until_ns(&store->link);
	redisReply *reply;
	int error = 0;
	bool more = true;

	while (error == 0 && more && twi_redis_now_ns() < until_ns) {
		struct twi_arguments *arguments = twi_redis_link_begin(&store->link);

		twi_arguments_8(arguments, store->link.session);
		twi_arguments_number(arguments, TWI_REDIS_ROWS_MAX);
		error = twi_redis_link_run(&store->link, TWI_REDIS_END, &reply);
		if (error != 0)
			break;
		more = reply->integer != 0;
		freeReplyObject(reply);
	}
	return error;
}

/*
 * Returns whether an error makes the set fail. Other errors pass when the server can be reached
 * again.
 */
static bool final(int error)
{
	return error == -EUCLEAN || error == -ENOENT || error == -ENOTSUP;
}

static int connect_all(struct twi_redis *store)
{
	bool was_open = store->link.statements != NULL;
	int error = twi_redis_link_open(&store->link);

	if (error == 0 && !was_open) {
		store->unread = true;
		/*
		 * Asks for the last batch even if its outcome is known, because the query
		 * (settle.c) also shows whether the server has lost batches.
		 */
		store->unsettled = store->unsettled || store->link.session != 0;
	}
	/* If the session is over, it does not matter what became of its last claim. */
	if (store->link.over && !store->sent)
		store->unsettled = false;
	if (error != 0 || store->unsettled || (store->link.session != 0 && !store->link.over))
		return error;
	error = session_begin(store);
	if (error != 0) {
		twi_redis_link_close(&store->link);
		twi_redis_link_pause(&store->link);
	}
	return error;
}

int twi_redis_beat(void *to, struct tw_durable_session *ret_session)
{
	struct twi_redis *store = to;
	struct twi_redis_link *link = &store->link;
	int error = connect_all(store);
	bool cut;

	twi_redis_link_beat(link);
	twi_redis_link_beat_wait(link);
	if (link->evicts)
		return -ENOTSUP;
	if (link->gone)
		return -ENOENT;
	cut = error != 0 || link->statements == NULL || link->session == 0 || link->over;
	*ret_session = (struct tw_durable_session){
		.number = link->session,
		.cut = cut,
		.until_ns = link->until_ns,
		.wall_ns = link->wall_ns,
		.ahead_ns = link->session_ns / 2,
		.beat_at_ns = cut ? link->connect_at_ns : link->beat_at_ns,
		.claim_at_ns = store->claim_at_ns,
	};
	return final(error) || (error != 0 && link->session == 0) ? error : 0;
}

static bool numbers_room(struct twi_redis *store, size_t count)
{
	uint32_t *numbers;

	if (count <= store->number_count)
		return true;
	numbers = realloc(store->from_server, count * sizeof *numbers);
	if (numbers == NULL)
		return false;
	for (size_t i = store->number_count; i < count; i++)
		numbers[i] = UINT32_MAX;
	store->from_server = numbers;
	store->number_count = count;
	return true;
}

static int kind_note(struct twi_redis *store, const char *name, const char *text)
{
	enum { KINDS_MOST = 1 << 20 };
	unsigned long number = strtoul(text, NULL, 10);

	if (number == 0 || number > KINDS_MOST)
		return -EUCLEAN;
	if (!numbers_room(store, number + 1))
		return -ENOMEM;
	for (size_t i = 0; i < store->kind_count; i++) {
		if (strcmp(store->kinds[i], name) != 0)
			continue;
		store->to_server[i] = (uint32_t)number;
		store->from_server[number] = (uint32_t)i;
	}
	return 0;
}

static int kinds_read(struct twi_redis *store, const redisReply *names, uint64_t *ret_unknown)
{
	int error = 0;

	store->to_server = calloc(store->kind_count, sizeof *store->to_server);
	if (store->to_server == NULL)
		return -ENOMEM;
	*ret_unknown = (uint64_t)(names->elements / 2 - store->kind_count);
	for (size_t i = 0; i + 1 < names->elements && error == 0; i += 2)
		error = kind_note(store, names->element[i]->str, names->element[i + 1]->str);
	return error;
}

/* Makes the missing keys and kinds, and reads the numbers of all kinds. */
static int kinds_add(struct twi_redis *store, uint64_t *ret_unknown)
{
	struct twi_redis_link *link = &store->link;
	redisReply *reply = NULL;
	int error;

	twi_arguments_begin(&link->arguments);
	for (size_t i = 0; i < store->kind_count; i++)
		twi_arguments_text(&link->arguments, store->kinds[i]);
	error = twi_redis_link_run(link, TWI_REDIS_OPEN, &reply);
	if (error != 0)
		return error;
	if (reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
	    reply->element[0]->len < sizeof link->id) {
		snprintf(link->id, sizeof link->id, "%s", reply->element[0]->str);
		error = kinds_read(store, reply->element[1], ret_unknown);
	} else {
		error = -EUCLEAN;
	}
	freeReplyObject(reply);
	return error;
}

int twi_redis_open(void *to, const char *const *kinds, size_t count,
		   struct tw_durable_opened *ret_opened)
{
	struct twi_redis *store = to;
	int error = twi_redis_link_open(&store->link);

	store->kinds = kinds;
	store->kind_count = count;
	if (error == 0)
		error = kinds_add(store, &ret_opened->unknown_kinds);
	if (error == 0) {
		(void)twi_redis_link_begin(&store->link);
		error = twi_redis_link_run(&store->link, TWI_REDIS_CHECK, NULL);
	}
	ret_opened->level = store->link.level;
	ret_opened->clean = 1;
	return error;
}
