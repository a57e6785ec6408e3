/* SPDX-License-Identifier: MIT */
/*
 * Claims. If a claim got as many rows as it asked for, the next one continues at the deadline of
 * its last row. At least once in `poll_ns` a claim begins at the earliest deadline, because a
 * transaction that was open until now may have added rows with earlier deadlines. If such a claim
 * takes long, looks find those rows instead (look.c). After a new connection, the set reads the
 * session's rows, because the reply to a claim may have been lost.
 */
#include "durable/postgres/store.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Begins the arguments of a claim or a release. Both are batches, so both have the session and the
 * number of the batch.
 */
static void batch_arguments(struct twi_postgres *store)
{
	twi_values_begin(&store->link.values);
	twi_values_int8(&store->link.values, (int64_t)store->link.session);
	twi_values_int8(&store->link.values, store->batch + 1);
}

static bool looks(const struct twi_postgres *store)
{
	return store->look.connection != NULL;
}

static int batch_run(struct twi_postgres *store, enum twi_postgres_sql sql, PGresult **ret)
{
	int error = twi_link_run(&store->link, store->texts[sql], ret);

	if (error != 0)
		return twi_postgres_refused(store, error);
	store->batch++;
	store->unsettled = false;
	return 0;
}

/*
 * Ends the claims of the rows that the set does not need. If this fails, the session's rows are
 * read again.
 */
static void give_back(struct twi_postgres *store, const PGresult *result, int first,
		      const unsigned char *wanted)
{
	struct twi_values *values = &store->link.values;
	int array, count = 0;

	batch_arguments(store);
	array = twi_values_array(values, TWI_TYPE_ARRAY_INT8);
	for (int i = 0; i < PQntuples(result); i++) {
		if (i < first && wanted[i] != 0)
			continue;
		twi_array_int8(values, array, twi_value_int8(result, i, 0));
		count++;
	}
	if (count != 0 && batch_run(store, TWI_POSTGRES_GIVE_BACK, NULL) != 0)
		store->unread = true;
}

/* Passes the rows of a result to `give`, in their order. */
static int rows_give(struct twi_postgres *store, const PGresult *result, tw_durable_give *give,
		     void *to)
{
	unsigned char *wanted = calloc((size_t)PQntuples(result) + 1, 1);
	int error = wanted == NULL ? -ENOMEM : 0, i = 0;

	for (; i < PQntuples(result) && error == 0; i++) {
		struct tw_durable_row row;
		int answer;

		twi_postgres_row(store, result, i, &row);
		answer = row.kind == UINT32_MAX ? 1 : give(to, &row);
		wanted[i] = answer == 0;
		error = answer < 0 ? answer : 0;
	}
	give_back(store, result, i, wanted);
	free(wanted);
	return error;
}

/*
 * Passes the rows that the session has claimed, but not started, to `give`. The set takes those
 * that it does not have in memory.
 */
static int held_read(struct twi_postgres *store, tw_durable_give *give, void *to)
{
	PGresult *result = NULL;
	int error;

	twi_values_begin(&store->link.values);
	twi_values_int8(&store->link.values, (int64_t)store->link.session);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_HELD], &result);
	if (error != 0)
		return error == -ECONNRESET || error == -ENOMEM ? -EAGAIN : error;
	store->unread = false;
	error = rows_give(store, result, give, to);
	PQclear(result);
	return error;
}

/*
 * Records where the next claim begins, and when the next claim from the beginning is due. `anew`:
 * this claim began at the first deadline or at the recent rows.
 */
static void next_claim(struct twi_postgres *store, const PGresult *result, bool anew, size_t max)
{
	int count = PQntuples(result);
	int64_t now_ns = twi_link_now_ns();

	if (anew)
		store->whole_at_ns = now_ns + store->poll_ns;
	store->low = INT64_MIN;
	if ((size_t)count >= max && (looks(store) || now_ns < store->whole_at_ns))
		store->low = twi_value_int8(result, count - 1, 2);
}

/* Passes the rows of a claim to `give`, and frees the result. Returns how many there are. */
static int claim_give(struct twi_postgres *store, PGresult *result, tw_durable_give *give, void *to)
{
	int error = rows_give(store, result, give, to), count = PQntuples(result);

	PQclear(result);
	return error != 0 ? error : count;
}

/* Claims the rows that the last look found. */
static int claim_found(struct twi_postgres *store, size_t max, tw_durable_give *give, void *to)
{
	struct twi_values *values = &store->link.values;
	PGresult *found = store->look.found, *result = NULL;
	int array, asked = 0, error;

	batch_arguments(store);
	array = twi_values_array(values, TWI_TYPE_ARRAY_INT8);
	for (; asked < PQntuples(found) && (size_t)asked < max; asked++)
		twi_array_int8(values, array, twi_value_int8(found, asked, 0));
	twi_values_int8(values, store->link.session_ns / 2);
	twi_postgres_kinds_argument(store, values);
	error = batch_run(store, TWI_POSTGRES_CLAIM_FOUND, &result);
	if (error != 0)
		return error;
	twi_look_claimed(store, asked, PQntuples(result));
	return claim_give(store, result, give, to);
}

/*
 * Claims rows from the beginning, or the recent ones if there are looks. If the claim before got as
 * many rows as it asked for, continues at the deadline of its last row.
 */
static int claim_due(struct twi_postgres *store, size_t max, tw_durable_give *give, void *to)
{
	struct twi_values *values = &store->link.values;
	int64_t sent_ns = twi_link_now_ns();
	bool first = store->low == INT64_MIN;
	bool recent = looks(store) && (first || sent_ns >= store->whole_at_ns);
	PGresult *result = NULL;
	int error;

	batch_arguments(store);
	twi_values_int8(values, recent && first ? INT64_MAX : store->low);
	twi_values_int8(values, store->link.session_ns / 2);
	twi_postgres_kinds_argument(store, values);
	twi_values_int4(values, (int32_t)max);
	error = batch_run(store, recent ? TWI_POSTGRES_CLAIM_RECENT : TWI_POSTGRES_CLAIM, &result);
	if (error == 0)
		next_claim(store, result, first || recent, max);
	if (first && !recent)
		twi_look_judge(store, sent_ns, error == 0 ? PQntuples(result) : 0);
	return error != 0 ? error : claim_give(store, result, give, to);
}

/*
 * Finds out whether an unsettled batch was committed. If it was, the session's rows are read
 * afterwards.
 */
static int claim_settle(struct twi_postgres *store)
{
	bool claim;
	int committed = twi_postgres_settle(store, &claim, NULL);

	if (committed == 1)
		store->unread = true;
	return committed == -ESTALE || store->link.over ? -EAGAIN : committed < 0 ? committed : 0;
}

int twi_postgres_claim(void *to_store, size_t max, tw_durable_give *give, void *to)
{
	struct twi_postgres *store = to_store;
	int error = store->link.statements == NULL || store->link.over ? -EAGAIN : 0;

	if (error == 0 && store->unsettled)
		error = claim_settle(store);
	if (error == 0 && store->unread)
		error = held_read(store, give, to);
	if (error != 0)
		return error;
	if (store->look.found != NULL)
		return claim_found(store, max, give, to);
	return claim_due(store, max, give, to);
}
