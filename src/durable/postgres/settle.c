/* SPDX-License-Identifier: MIT */
/*
 * What became of a batch whose reply was lost.
 *
 * The statement locks the session's row, so a transaction that the server still has under way ends
 * first. But one may still be on its way there, over a connection that was given up. So a batch that
 * was not committed is sent again under the same number: either of the two is refused. A refusal
 * therefore need not mean that the session is over.
 */
#include "durable/postgres/store.h"

#include <errno.h>

enum column {
	BATCH,
	OUTCOMES,
	CLAIM,
	LIVES,
};

/*
 * A server that has crashed may have lost the last claims, which it does not sync, and their numbers with
 * them. No request from before the crash is on its way any more.
 */
static void numbers_lost(struct twi_postgres *store, int64_t batch)
{
	if (batch >= store->batch)
		return;
	store->batch = batch;
	store->unread = true;
}

static int row_read(struct twi_postgres *store, const PGresult *result, bool *ret_claim)
{
	if (PQntuples(result) == 0) {
		store->link.over = true;
		store->unsettled = false;
		return -ESTALE;
	}
	*ret_claim = twi_value_bool(result, 0, CLAIM);
	numbers_lost(store, twi_value_int8(result, 0, BATCH));
	if (twi_value_int8(result, 0, BATCH) == store->batch + 1) {
		store->batch++;
		store->unsettled = false;
		return 1;
	}
	if (twi_value_bool(result, 0, LIVES))
		return 0;
	/* Nothing can begin a batch of it any more. */
	store->link.over = true;
	store->unsettled = false;
	return 0;
}

int twi_postgres_settle(struct twi_postgres *store, bool *ret_claim, PGresult **ret)
{
	PGresult *result = NULL;
	int error;

	twi_values_begin(&store->link.values);
	twi_values_int8(&store->link.values, (int64_t)store->link.session);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_BATCH_LOOK], &result);
	if (error != 0)
		return error == -ECONNRESET || error == -ENOMEM ? -EAGAIN : error;
	error = row_read(store, result, ret_claim);
	if (error == 1 && ret != NULL)
		*ret = result;
	else
		PQclear(result);
	return error;
}

int twi_postgres_refused(struct twi_postgres *store, int error)
{
	switch (error) {
	case -ECONNRESET:
		store->unread = true;
		store->unsettled = true;
		return -EAGAIN;
	case -ESTALE:
		/* Or an old connection has done it: the next try looks. */
		store->unsettled = true;
		return -EAGAIN;
	case -ENOMEM:
		return -EAGAIN;
	default:
		return error;
	}
}
