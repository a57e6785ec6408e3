/* SPDX-License-Identifier: MIT */
/*
 * Claims. Each claim begins at the earliest deadline. It need not pass over claimed rows, because
 * these are no longer in the sorted set of the free ones. After a new connection, the set reads the
 * session's rows, because the reply to a claim may have been lost.
 */
#include "durable/redis/store.h"
#include "durable/redis/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL_BYTES = 8 };

/*
 * Begins the arguments of a claim or a release. Both are batches, so both have the session and the
 * number of the batch.
 */
static struct twi_arguments *batch_arguments(struct twi_redis *store)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);

	twi_arguments_8(arguments, store->link.session);
	twi_arguments_number(arguments, store->batch + 1);
	return arguments;
}

static int batch_run(struct twi_redis *store, enum twi_redis_script script, redisReply **ret)
{
	int error = twi_redis_link_run(&store->link, script, ret);

	if (error != 0)
		return twi_redis_refused(store, error);
	store->batch++;
	store->unsettled = false;
	return 0;
}

/* The rows of a reply, and whether the set needs them. */
struct rows {
	size_t count;
	const char **serials; /* the serials of the rows, as bytes */
	struct tw_durable_row *rows;
	unsigned char *wanted;
};

static bool rows_begin(struct rows *rows, size_t most)
{
	*rows = (struct rows){
		.serials = calloc(most + 1, sizeof *rows->serials),
		.rows = calloc(most + 1, sizeof *rows->rows),
		.wanted = calloc(most + 1, 1),
	};
	return rows->serials != NULL && rows->rows != NULL && rows->wanted != NULL;
}

static void rows_end(struct rows *rows)
{
	free(rows->serials);
	free(rows->rows);
	free(rows->wanted);
}

/*
 * Ends the claims of the rows that the set does not need. If this fails, the session's rows are
 * read again.
 */
static void give_back(struct twi_redis *store, const struct rows *rows)
{
	struct twi_arguments *arguments = batch_arguments(store);
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (rows->wanted[i] != 0)
			continue;
		twi_argument_bytes(arguments, rows->serials[i], SERIAL_BYTES);
		twi_argument_end(arguments);
		count++;
	}
	if (count != 0 && batch_run(store, TWI_REDIS_RELEASE, NULL) != 0)
		store->unread = true;
}

/* Passes the rows to `give`, in the order of their deadlines. */
static int rows_give(struct twi_redis *store, struct rows *rows, tw_durable_give *give, void *to)
{
	int error = 0;

	for (size_t i = 0; i < rows->count && error == 0; i++) {
		int answer = rows->rows[i].kind == UINT32_MAX ? 1 : give(to, &rows->rows[i]);

		rows->wanted[i] = answer == 0;
		error = answer < 0 ? answer : 0;
	}
	give_back(store, rows);
	return error;
}

static int by_deadline(const void *a, const void *b)
{
	return twi_redis_order(a, b);
}

/*
 * Sorts the rows by deadline. Makes the bytes of their serials from their ids, because the reply
 * has the old order.
 */
static void rows_sort(struct rows *rows, char (*serials)[SERIAL_BYTES])
{
	qsort(rows->rows, rows->count, sizeof *rows->rows, by_deadline);
	for (size_t i = 0; i < rows->count; i++) {
		for (int j = 0; j < SERIAL_BYTES; j++)
			serials[i][j] = (char)(rows->rows[i].id.serial >> (56 - 8 * j));
		rows->serials[i] = serials[i];
	}
}

/*
 * Passes the rows of a reply to `give`. From the element `first` on, each row has three elements:
 * its serial, its timer and its run.
 */
static int triples_give(struct twi_redis *store, const redisReply *reply, size_t first,
			tw_durable_give *give, void *to)
{
	size_t most = (reply->elements - first) / 3;
	char(*serials)[SERIAL_BYTES] = calloc(most + 1, sizeof *serials);
	struct rows rows;
	int error = !rows_begin(&rows, most) || serials == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < most && error == 0; i++) {
		redisReply *const *row = &reply->element[first + 3 * i];

		if (row[0]->len != SERIAL_BYTES ||
		    !twi_redis_row(store, row[0]->str, row[1], row[2], &rows.rows[i]))
			error = -EUCLEAN;
		rows.count++;
	}
	if (error == 0) {
		rows_sort(&rows, serials);
		error = rows_give(store, &rows, give, to);
	} else {
		store->unread = true;
	}
	rows_end(&rows);
	free(serials);
	return error;
}

/*
 * Reads the rows with these serials, which the session has claimed, and passes them to `give`. Some
 * rows may be gone by now.
 */
static int held_rows(struct twi_redis *store, const redisReply *serials, tw_durable_give *give,
		     void *to)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	redisReply *reply = NULL, *triples[3 * TWI_REDIS_ROWS_MAX];
	redisReply all = {.type = REDIS_REPLY_ARRAY, .element = triples};
	int error;

	for (size_t i = 1; i < serials->elements; i++) {
		twi_argument_bytes(arguments, serials->element[i]->str, serials->element[i]->len);
		twi_argument_end(arguments);
	}
	error = twi_redis_link_run(&store->link, TWI_REDIS_ROWS, &reply);
	if (error != 0)
		return twi_redis_softened(store, error);
	for (size_t i = 0; 3 * i + 2 < reply->elements && i < TWI_REDIS_ROWS_MAX; i++) {
		if (reply->element[3 * i]->type != REDIS_REPLY_STRING)
			continue;
		triples[all.elements++] = serials->element[i + 1];
		triples[all.elements++] = reply->element[3 * i];
		triples[all.elements++] = reply->element[3 * i + 1];
	}
	error = triples_give(store, &all, 0, give, to);
	freeReplyObject(reply);
	return error;
}

/*
 * Passes the rows that the session has claimed, but not started, to `give`. The set takes those
 * that it does not have in memory.
 */
static int held_read(struct twi_redis *store, tw_durable_give *give, void *to)
{
	char place[32];
	size_t bytes = 0;
	int error = 0;

	do {
		struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
		redisReply *reply = NULL;

		twi_arguments_8(arguments, store->link.session);
		twi_argument_bytes(arguments, place, bytes);
		twi_argument_end(arguments);
		twi_arguments_number(arguments, TWI_REDIS_ROWS_MAX);
		error = twi_redis_link_run(&store->link, TWI_REDIS_HELD, &reply);
		if (error != 0)
			return twi_redis_softened(store, error);
		bytes = reply->element[0]->len < sizeof place ? reply->element[0]->len : 0;
		memcpy(place, reply->element[0]->str, bytes);
		if (reply->elements > 1)
			error = held_rows(store, reply, give, to);
		freeReplyObject(reply);
	} while (error == 0 && bytes != 0);
	store->unread = error != 0;
	return error;
}

static void claim_arguments(struct twi_redis *store, size_t max)
{
	struct twi_arguments *arguments = batch_arguments(store);

	twi_arguments_number(arguments, store->link.session_ns / 2 / 1000);
	twi_arguments_number(arguments, (int64_t)max);
	for (size_t i = 0; i < store->kind_count; i++) {
		twi_argument_4(arguments, store->to_server[i]);
		twi_arguments_text(arguments, store->kinds[i]);
	}
}

/*
 * Finds out whether an unsettled batch was done. If it was, the session's rows are read afterwards.
 */
static int claim_settle(struct twi_redis *store)
{
	struct twi_redis_settled settled;
	int error = twi_redis_settle(store, &settled);

	if (error == 0 && settled.batches != 0)
		store->unread = true;
	if (settled.reply != NULL)
		freeReplyObject(settled.reply);
	return error == -ESTALE || (error == 0 && store->link.over) ? -EAGAIN : error;
}

int twi_redis_claim(void *to_store, size_t max, tw_durable_give *give, void *to)
{
	struct twi_redis *store = to_store;
	redisReply *reply = NULL;
	int error = store->link.statements == NULL || store->link.over ? -EAGAIN : 0, count;

	if (error == 0 && store->unsettled)
		error = claim_settle(store);
	if (error == 0 && store->unread)
		error = held_read(store, give, to);
	if (error != 0)
		return error;
	claim_arguments(store, max < TWI_REDIS_ROWS_MAX ? max : TWI_REDIS_ROWS_MAX);
	error = batch_run(store, TWI_REDIS_CLAIM, &reply);
	if (error != 0)
		return error;
	/* If the script has left rows to free or to claim, the next claim follows at once. */
	store->claim_at_ns =
		twi_redis_now_ns() + (reply->element[0]->integer != 0 ? 0 : store->poll_ns);
	count = (int)(reply->elements / 3);
	error = triples_give(store, reply, 1, give, to);
	freeReplyObject(reply);
	return error != 0 ? error : count;
}
