/* SPDX-License-Identifier: MIT */
/*
 * Opens the store, and keeps its session alive. When a session is over, a new one begins. But if
 * the old session's last commit has an unknown outcome, the store first finds out whether it was
 * done (settle.c).
 */
#include "durable/postgres/schema.h"
#include "durable/postgres/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SERVER_LEAST = 130000,
	/* How often the store checks whether the reply to a look has arrived. */
	LOOK_POLL_NS = 10000000,
};

static int session_begin(struct twi_postgres *store)
{
	struct twi_link *link = &store->link;
	int64_t sent_ns = twi_link_now_ns();
	PGresult *result = NULL;
	int error;

	twi_values_begin(&link->values);
	twi_values_int8(&link->values, link->session_ns);
	twi_values_bytes(&link->values, TWI_TYPE_TEXT, store->name, strlen(store->name));
	error = twi_link_run(link, store->texts[TWI_POSTGRES_SESSION_BEGIN], &result);
	if (error != 0)
		return error;
	twi_link_session(link, (uint64_t)twi_value_int8(result, 0, 0), twi_value_int8(result, 0, 1),
			 sent_ns);
	PQclear(result);
	store->batch = 0;
	store->low = INT64_MIN;
	store->whole_at_ns = 0;
	store->unread = false;
	return 0;
}

/*
 * Returns whether an error makes the set fail. Other errors pass when the server can be reached
 * again.
 */
static bool final(int error)
{
	return error == -EUCLEAN || error == -ENOENT || error == -ENOTSUP;
}

static int connect_all(struct twi_postgres *store)
{
	bool was_open = store->link.statements != NULL;
	int error = twi_link_open(&store->link);

	if (error == 0 && !was_open) {
		store->unread = true;
		/*
		 * Asks for the last batch even if its outcome is known, because the query
		 * (settle.c) also writes the new connection's pid to the session's row.
		 */
		store->unsettled = store->unsettled || store->link.session != 0;
	}
	/* If the session is over, it does not matter what became of its last claim. */
	if (store->link.over && !store->sent)
		store->unsettled = false;
	if (error == 0 && (store->link.session == 0 || store->link.over) && !store->unsettled)
		error = session_begin(store);
	else
		return error;
	/*
	 * Postpones the next try, because a server that answers with an error should not be asked
	 * each millisecond.
	 */
	if (error != 0) {
		twi_link_close(&store->link);
		twi_link_pause(&store->link);
	}
	return error;
}

/* Returns when the next heartbeat is due, or the reply to a look may have arrived. */
static int64_t next_step_ns(const struct twi_postgres *store)
{
	int64_t reply_ns = store->look.waits ? twi_link_now_ns() + LOOK_POLL_NS : INT64_MAX;

	return reply_ns < store->link.beat_at_ns ? reply_ns : store->link.beat_at_ns;
}

int twi_postgres_beat(void *to, struct tw_durable_session *ret_session)
{
	struct twi_postgres *store = to;
	struct twi_link *link = &store->link;
	int error = connect_all(store);
	bool cut;

	twi_link_beat(link);
	twi_link_beat_wait(link);
	twi_look_step(store);
	cut = error != 0 || link->statements == NULL || link->session == 0 || link->over;
	*ret_session = (struct tw_durable_session){
		.number = link->session,
		.cut = cut,
		.until_ns = link->until_ns,
		.wall_ns = link->wall_ns,
		.ahead_ns = link->session_ns / 2,
		.beat_at_ns = cut ? link->connect_at_ns : next_step_ns(store),
		.claim_at_ns = store->whole_at_ns,
	};
	return final(error) || (error != 0 && link->session == 0) ? error : 0;
}

/*
 * Reads the server's level: how durable its commits are. Returns -EROFS if the server takes no
 * writes.
 */
static int level_ask(struct twi_postgres *store, uint32_t *ret_level)
{
	PGresult *result = NULL;
	int error;

	twi_values_begin(&store->link.values);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_LEVEL], &result);
	if (error != 0)
		return error;
	if (twi_value_bool(result, 0, 1))
		error = -EROFS;
	*ret_level = (uint32_t)twi_value_int4(result, 0, 0);
	PQclear(result);
	return error;
}

static int kinds_add(struct twi_postgres *store, const char *const *kinds, size_t count)
{
	struct twi_values *values = &store->link.values;
	int array;

	twi_values_begin(values);
	/* Names are ASCII, so they can be sent as bytes. */
	array = twi_values_array(values, TWI_TYPE_ARRAY_BYTEA);
	for (size_t i = 0; i < count; i++)
		twi_array_bytes(values, array, kinds[i], strlen(kinds[i]));
	return twi_link_run(&store->link, store->texts[TWI_POSTGRES_KINDS_ADD], NULL);
}

static bool numbers_room(struct twi_postgres *store, size_t count)
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

static int kind_note(struct twi_postgres *store, const PGresult *result, int at,
		     const char *const *kinds)
{
	int32_t number = twi_value_int4(result, at, 0);

	if (number < 0 || number == INT32_MAX || !numbers_room(store, (size_t)number + 1))
		return number < 0 || number == INT32_MAX ? -EUCLEAN : -ENOMEM;
	for (size_t i = 0; i < store->kind_count; i++) {
		if (strcmp(kinds[i], PQgetvalue(result, at, 1)) != 0)
			continue;
		store->to_server[i] = number;
		store->from_server[number] = (uint32_t)i;
	}
	return 0;
}

static int kinds_read(struct twi_postgres *store, const char *const *kinds, size_t count,
		      uint64_t *ret_unknown)
{
	PGresult *result = NULL;
	int error;

	store->kind_count = count;
	store->to_server = calloc(count, sizeof *store->to_server);
	if (store->to_server == NULL)
		return -ENOMEM;
	twi_values_begin(&store->link.values);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_KINDS], &result);
	if (error != 0)
		return error;
	*ret_unknown = (uint64_t)PQntuples(result) - count;
	for (int i = 0; i < PQntuples(result) && error == 0; i++)
		error = kind_note(store, result, i, kinds);
	PQclear(result);
	return error;
}

int twi_postgres_open(void *to, const char *const *kinds, size_t count,
		      struct tw_durable_opened *ret_opened)
{
	struct twi_postgres *store = to;
	int error = twi_link_open(&store->link);

	if (error != 0)
		error = twi_postgres_connect_error(store->link.address);
	if (error == 0 && PQserverVersion(store->link.statements) < SERVER_LEAST)
		error = -ENOTSUP;
	if (error == 0)
		error = twi_postgres_schema_look(store->link.statements, store->schema,
						 store->link.session_ns / 4);
	if (error == 0)
		error = level_ask(store, &ret_opened->level);
	if (error == 0)
		error = kinds_add(store, kinds, count);
	if (error == 0)
		error = kinds_read(store, kinds, count, &ret_opened->unknown_kinds);
	ret_opened->clean = 1;
	return error;
}
