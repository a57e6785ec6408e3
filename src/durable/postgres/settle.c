/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether a batch was committed although its reply was lost.
 *
 * The query (batch_look) locks the session's row, so a transaction that is under way in the server
 * ends first. But another request may still be on its way, over a connection that was given up. So
 * a batch that was not committed is sent again under the same number, and the server refuses the
 * later of the two requests. Therefore a refusal need not mean that the session is over.
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
 * Continues the session from the server's batch number, if that is lower than the store's. A server
 * that crashed may have lost the last claims, which it does not sync, together with their numbers.
 * No request from before the crash is still on its way.
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
	/* No request can begin a batch of this session any more. */
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
		/*
		 * Either the session is over, or a request over an old connection has done the
		 * batch. The next try finds out which.
		 */
		store->unsettled = true;
		return -EAGAIN;
	case -ENOMEM:
		return -EAGAIN;
	default:
		return error;
	}
}
