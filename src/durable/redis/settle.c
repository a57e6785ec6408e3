/* SPDX-License-Identifier: MIT */
/*
 * Finds out which batches were done although their replies were lost.
 *
 * A request may still be on its way to the server, over a connection that was given up. So a batch
 * that was not done is sent again under the same number, and the server refuses the later of the
 * two requests. Therefore a refusal need not mean that the session is over.
 */
#include "durable/redis/store.h"

#include <errno.h>

enum column {
	BATCH,
	CLAIM,
	LIVES,
	OUTCOMES,
	COLUMNS,
};

/*
 * Ends the session, so that all its rows are claimed again. A server that crashed may have lost its
 * last seconds, and with them starts and ends of timers that the set no longer has.
 */
static int numbers_lost(struct twi_redis *store)
{
	int error = twi_redis_session_end(store);

	twi_redis_notify(&store->link.notice, "the server has lost its last writes");
	if (error != 0)
		return error;
	store->link.over = true;
	store->unsettled = false;
	return 0;
}

static int row_read(struct twi_redis *store, const redisReply *reply, struct twi_redis_settled *ret)
{
	int64_t batch;

	if (reply->elements != COLUMNS) {
		store->link.over = true;
		store->unsettled = false;
		return -ESTALE;
	}
	batch = reply->element[BATCH]->integer;
	ret->claim = reply->element[CLAIM]->integer != 0;
	ret->outcomes = reply->element[OUTCOMES];
	if (batch < store->batch)
		return numbers_lost(store);
	ret->batches = batch - store->batch;
	store->batch = batch;
	store->unsettled = false;
	/* No request can begin a batch of this session any more. */
	if (reply->element[LIVES]->integer == 0)
		store->link.over = true;
	return 0;
}

int twi_redis_settle(struct twi_redis *store, struct twi_redis_settled *ret)
{
	int error;

	*ret = (struct twi_redis_settled){.batches = 0};
	twi_arguments_8(twi_redis_link_begin(&store->link), store->link.session);
	error = twi_redis_link_run(&store->link, TWI_REDIS_LOOK, &ret->reply);
	if (error != 0)
		return twi_redis_softened(store, error);
	return row_read(store, ret->reply, ret);
}

int twi_redis_refused(struct twi_redis *store, int error)
{
	if (error == -ECONNRESET) {
		store->unread = true;
		store->unsettled = true;
		return -EAGAIN;
	}
	/* A request over an old connection may have done the batch. The next try finds out. */
	if (error == -ESTALE) {
		store->unsettled = true;
		return -EAGAIN;
	}
	return twi_redis_softened(store, error);
}

int twi_redis_softened(struct twi_redis *store, int error)
{
	/*
	 * Postpones the next try, because a server that answers with an error should not be asked
	 * each millisecond.
	 */
	if (twi_redis_passes(error) && store->link.statements != NULL) {
		twi_redis_link_close(&store->link);
		twi_redis_link_pause(&store->link);
		return -EAGAIN;
	}
	return error == -ECONNRESET || error == -ENOMEM ? -EAGAIN : error;
}
