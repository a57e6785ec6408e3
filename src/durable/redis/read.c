/* SPDX-License-Identifier: MIT */
/* The functions that read timers and dead letters, and the trim of dead letters. */
#include "durable/redis/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SERIAL_BYTES = 8,
	PLACE_BYTES = 20, /* bytes of a place in a list: due, place, serial */
};

#define SIGN_4 (UINT32_C(1) << 31)

static int run(struct twi_redis *store, enum twi_redis_script script, redisReply **ret)
{
	int error = twi_redis_link_run(&store->link, script, ret);

	return error == 0 ? 0 : twi_redis_softened(store, error);
}

static void place_add(struct twi_arguments *arguments, struct tw_durable_id id)
{
	twi_argument_4(arguments, (uint32_t)id.place ^ SIGN_4);
	twi_argument_8(arguments, id.serial);
}

/*
 * Passes the timer or the dead letter with this serial to `give`. If `place` is not NULL, the row's
 * id must have this place. Returns 1 if there is no such row.
 */
static int row_give(struct twi_redis *store, const char *serial, redisReply *const *row,
		    tw_durable_give *give, void *to, const uint64_t *place)
{
	struct tw_durable_row found;
	bool good;

	if (row[0]->type != REDIS_REPLY_NIL)
		good = twi_redis_row(store, serial, row[0], row[1], &found);
	else if (row[2]->type != REDIS_REPLY_NIL)
		good = twi_redis_row_dead(store, serial, row[2], &found);
	else
		return 1;
	if (!good)
		return -EUCLEAN;
	if (place != NULL && found.id.place != *place)
		return 1;
	return give(to, &found);
}

int twi_redis_find(void *to_store, struct tw_durable_id id, tw_durable_give *give, void *to)
{
	struct twi_redis *store = to_store;
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	redisReply *reply = NULL;
	int error;

	twi_arguments_8(arguments, id.serial);
	error = run(store, TWI_REDIS_ROWS, &reply);
	if (error != 0)
		return error;
	error = row_give(store, twi_arguments_get(arguments, 1, &(size_t){0}), reply->element, give,
			 to, &id.place);
	freeReplyObject(reply);
	/* The session may have claimed this row, although the set does not have it in memory. */
	if (error < 0)
		store->unread = true;
	return error == 1 ? -ENOENT : error;
}

int twi_redis_find_key(void *to_store, const void *key, size_t bytes, tw_durable_give *give,
		       void *to)
{
	struct twi_redis *store = to_store;
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	struct tw_durable_row row;
	redisReply *reply = NULL;
	int error;

	twi_argument_bytes(arguments, key, bytes);
	twi_argument_end(arguments);
	error = run(store, TWI_REDIS_FIND_KEY, &reply);
	if (error != 0)
		return error;
	if (reply->elements != 3 || reply->element[1]->type == REDIS_REPLY_NIL)
		error = -ENOENT;
	else if (reply->element[0]->len != SERIAL_BYTES ||
		 !twi_redis_row(store, reply->element[0]->str, reply->element[1], reply->element[2],
				&row))
		error = -EUCLEAN;
	else
		error = give(to, &row);
	freeReplyObject(reply);
	return error;
}

static int by_place(const void *a, const void *b)
{
	const redisReply *const *left = a, *const *right = b;

	return memcmp((*left)->str, (*right)->str, PLACE_BYTES);
}

/* Passes the rows of the first `count` places to `give`, in their order. */
static int places_give(struct twi_redis *store, const redisReply *places, size_t count,
		       tw_durable_give *give, void *to)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	redisReply *reply = NULL;
	int error;

	for (size_t i = 0; i < count; i++) {
		twi_argument_bytes(arguments, places->element[i]->str + PLACE_BYTES - SERIAL_BYTES,
				   SERIAL_BYTES);
		twi_argument_end(arguments);
	}
	error = run(store, TWI_REDIS_ROWS, &reply);
	if (error != 0)
		return error;
	for (size_t i = 0; 3 * i + 2 < reply->elements && error >= 0; i++)
		/* Timers that have ended meanwhile are left out. */
		if (reply->element[3 * i]->type != REDIS_REPLY_NIL)
			error = row_give(store,
					 places->element[i]->str + PLACE_BYTES - SERIAL_BYTES,
					 &reply->element[3 * i], give, to, NULL);
	freeReplyObject(reply);
	return error < 0 ? error : 0;
}

/*
 * Reads at least `most` places behind the place `after` (NULL: from the beginning) up to
 * `until_ns`, or all if there are fewer, and sorts them. The result may have more than `most`: the
 * script returns all timers with the deadline of the last one, because only the sort here orders
 * equal deadlines. The caller frees `*ret`.
 */
static int places_read(struct twi_redis *store, const char *after, int64_t until_ns, size_t most,
		       redisReply **ret)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	int error;

	twi_argument_bytes(arguments, after, after == NULL ? 0 : PLACE_BYTES);
	twi_argument_end(arguments);
	twi_argument_signed(arguments, until_ns);
	twi_argument_end(arguments);
	twi_arguments_number(arguments, (int64_t)most);
	for (size_t i = 0; i < store->kind_count; i++) {
		twi_argument_4(arguments, store->to_server[i]);
		twi_argument_end(arguments);
	}
	error = run(store, TWI_REDIS_NEAR, ret);
	if (error != 0)
		return error;
	for (size_t i = 0; i < (*ret)->elements; i++)
		if ((*ret)->element[i]->len != PLACE_BYTES)
			error = -EUCLEAN;
	if (error == 0)
		qsort((*ret)->element, (*ret)->elements, sizeof *(*ret)->element, by_place);
	return error;
}

/*
 * Passes rows on, except those of kinds that the caller does not have. Other sessions may have
 * claimed such rows.
 */
struct filter {
	tw_durable_give *give;
	void *to;
	size_t given;
};

static int give_known(void *to, const struct tw_durable_row *row)
{
	struct filter *filter = to;

	if (row->kind == UINT32_MAX)
		return 0;
	filter->given++;
	return filter->give(filter->to, row);
}

static size_t less(size_t a, size_t b)
{
	return a < b ? a : b;
}

int twi_redis_near(void *to_store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		   tw_durable_give *give, void *to)
{
	struct twi_redis *store = to_store;
	struct filter filter = {give, to, 0};
	struct twi_arguments first = {.count = 0};
	char place[PLACE_BYTES], *from = NULL;
	int error = 0;
	bool more = max > 0;

	if (after != NULL) {
		twi_argument_signed(&first, after->due_ns);
		place_add(&first, after->id);
		from = first.failed ? NULL : memcpy(place, first.at, PLACE_BYTES);
	}
	error = first.failed ? -EAGAIN : 0;
	while (error == 0 && more) {
		size_t most = less(max - filter.given, TWI_REDIS_ROWS_MAX), count;
		redisReply *places = NULL;

		error = places_read(store, from, until_ns, most, &places);
		count = error == 0 ? less(places->elements, most) : 0;
		if (count != 0) {
			error = places_give(store, places, count, give_known, &filter);
			from = memcpy(place, places->element[count - 1]->str, PLACE_BYTES);
		}
		if (places != NULL)
			freeReplyObject(places);
		more = count == most && filter.given < max;
	}
	twi_arguments_free(&first);
	return error;
}

static int letters_give(struct twi_redis *store, const redisReply *reply, struct filter *filter,
			size_t max, struct tw_durable_id *ret_last)
{
	int error = 0;

	for (size_t i = 0; i + 1 < reply->elements && error == 0 && filter->given < max; i += 2) {
		struct tw_durable_row row;

		if (reply->element[i]->len != SERIAL_BYTES ||
		    !twi_redis_row_dead(store, reply->element[i]->str, reply->element[i + 1], &row))
			return -EUCLEAN;
		*ret_last = row.id;
		error = give_known(filter, &row);
	}
	return error;
}

int twi_redis_dead(void *to_store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		   void *to)
{
	struct twi_redis *store = to_store;
	struct filter filter = {give, to, 0};
	int error = 0;
	bool more = max > 0;

	while (error == 0 && more) {
		struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
		redisReply *reply = NULL;

		/* An id of zeros means: from the first on, including deadlines before 1970. */
		if (after.serial != 0)
			place_add(arguments, after);
		twi_argument_end(arguments);
		twi_arguments_number(arguments, TWI_REDIS_ROWS_MAX);
		error = run(store, TWI_REDIS_DEAD, &reply);
		if (error != 0)
			break;
		more = reply->elements == 2 * TWI_REDIS_ROWS_MAX;
		error = letters_give(store, reply, &filter, max, &after);
		more = more && filter.given < max;
		freeReplyObject(reply);
	}
	return error;
}

int twi_redis_dead_trim(void *to_store, uint64_t most, int64_t ended_before_ns, size_t max)
{
	struct twi_redis *store = to_store;
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	redisReply *reply = NULL;
	int error, count;

	twi_arguments_number(arguments, most > INT64_MAX ? INT64_MAX : (int64_t)most);
	twi_argument_signed(arguments, ended_before_ns);
	twi_argument_end(arguments);
	twi_arguments_number(arguments, (int64_t)less(max, TWI_REDIS_ROWS_MAX));
	error = run(store, TWI_REDIS_TRIM, &reply);
	if (error != 0)
		return error;
	count = (int)reply->integer;
	freeReplyObject(reply);
	return count;
}
