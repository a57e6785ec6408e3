/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-uv: libuv's work queue as an executor.
 *
 * It uses only the public headers, src/base and queue/handover.h. A worker pushes a batch and wakes
 * the loop. The loop's thread takes all batches, and gives each timeout to the work queue. The
 * threads of the work queue run the timeouts. libuv reports on the loop's thread that a timeout has
 * run. Then this thread counts the timeout, and frees the batch after its last one.
 *
 * Other code may find a request and call uv_cancel, so that libuv returns the timeout without
 * running it. Then the loop's thread runs the timeout itself, because an accepted timeout must run.
 *
 * In a forked child nothing is pushed, because libuv's threads exist only in the parent.
 */
#include <tickwheel/fork.h>
#include <tickwheel/uv.h>

#include "queue/handover.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <uv.h>

struct batch;

struct item {
	uv_work_t work;
	struct batch *batch;
	struct tw_due due;
};

struct batch {
	struct twi_handover_link link; /* the first field, because a link is cast to its batch */
	struct tw_uv *executor;
	size_t left; /* timeouts whose end is not reported yet; only the loop's thread uses it */
	size_t count;
	struct item item[];
};

struct tw_uv {
	uv_async_t async;
	uv_loop_t *loop;            /* [const] */
	size_t queue_max;           /* [const] the most timeouts under way, or 0 for no limit */
	int generation;             /* [const] number of forks at creation */
	struct twi_handover handed; /* [atomic E66] */
	_Atomic uint64_t under_way; /* [atomic] accepted timeouts whose end is not reported yet */
};

static void item_work(uv_work_t *work)
{
	const struct item *item = work->data;

	(void)tw_due_run(&item->due);
}

static void item_done(struct item *item)
{
	struct batch *batch = item->batch;

	/* RELAXED: only a count; it publishes nothing. */
	(void)twi_fetch_sub_relaxed(&batch->executor->under_way, 1);
	if (--batch->left == 0)
		free(batch);
}

static void work_ended(uv_work_t *work, int status)
{
	struct item *item = work->data;

	if (status != 0)
		item_work(work);
	item_done(item);
}

static void item_queue(uv_loop_t *loop, struct item *item)
{
	item->work.data = item;
	if (uv_queue_work(loop, &item->work, item_work, work_ended) == 0)
		return;
	item_work(&item->work);
	item_done(item);
}

/*
 * Hands all timeouts of a batch to the work queue. Reads the loop and the count first, because the
 * batch may be freed when its last request is queued. Returns the count.
 */
static size_t batch_queue(struct batch *batch)
{
	uv_loop_t *loop = batch->executor->loop;
	size_t count = batch->count;

	for (size_t i = 0; i < count; i++)
		item_queue(loop, &batch->item[i]);
	return count;
}

static size_t handed_queue(struct tw_uv *executor)
{
	struct twi_handover_link *link = twi_handover_take(&executor->handed);
	size_t count = 0;

	while (link != NULL) {
		struct twi_handover_link *next = link->next;

		count += batch_queue((struct batch *)(void *)link);
		link = next;
	}
	return count;
}

static void woken(uv_async_t *async)
{
	(void)handed_queue(async->data);
}

int tw_uv_create(struct uv_loop_s *loop, size_t queue_max, struct tw_uv **ret_executor)
{
	struct tw_uv *executor;

	if (loop == NULL || ret_executor == NULL)
		return -EINVAL;
	executor = calloc(1, sizeof *executor);
	if (executor == NULL)
		return -ENOMEM;
	executor->loop = loop;
	executor->queue_max = queue_max;
	executor->generation = tw_fork_generation();
	executor->async.data = executor;
	if (uv_async_init(loop, &executor->async, woken) != 0) {
		free(executor);
		return -ENOMEM;
	}
	*ret_executor = executor;
	return 0;
}

static bool forked(const struct tw_uv *executor)
{
	return executor->generation != tw_fork_generation();
}

/* Returns how many of `count` timeouts the executor may accept. */
static size_t room_for(const struct tw_uv *executor, size_t count)
{
	/*
	 * RELAXED: only a count. If several workers push at once, their sum may exceed the limit.
	 */
	uint64_t under_way = twi_load_relaxed(&executor->under_way);

	if (executor->queue_max == 0)
		return count;
	if (under_way >= executor->queue_max)
		return 0;
	return count < executor->queue_max - under_way ? count
						       : executor->queue_max - (size_t)under_way;
}

static struct batch *batch_make(struct tw_uv *executor, const struct tw_due *due, size_t count)
{
	struct batch *batch = calloc(1, sizeof *batch + count * sizeof batch->item[0]);

	if (batch == NULL)
		return NULL;
	batch->executor = executor;
	batch->left = batch->count = count;
	for (size_t i = 0; i < count; i++) {
		batch->item[i].batch = batch;
		batch->item[i].due = due[i];
	}
	return batch;
}

size_t tw_uv_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct tw_uv *executor = context;
	size_t room = forked(executor) ? 0 : room_for(executor, count);
	struct batch *batch = room > 0 ? batch_make(executor, due, room) : NULL;

	if (batch == NULL)
		return 0;
	/*
	 * RELAXED: only a count. Must come before the push, because after the push the loop's
	 * thread may subtract.
	 */
	(void)twi_fetch_add_relaxed(&executor->under_way, room);
	twi_handover_push(&executor->handed, &batch->link);
	(void)uv_async_send(&executor->async);
	return room;
}

int tw_uv_flush(struct tw_uv *executor)
{
	size_t count;

	if (executor == NULL)
		return -EINVAL;
	count = handed_queue(executor);
	return count < INT_MAX ? (int)count : INT_MAX;
}

static void closed(uv_handle_t *async)
{
	free(async->data);
}

/* RELAXED: no engine uses the executor any more, so only the loop's thread changes the count. */
static bool busy(const struct tw_uv *executor)
{
	return twi_load_relaxed(&executor->under_way) != 0;
}

/* Frees the batches in a forked child, where they must not run. */
static void handed_free(struct tw_uv *executor)
{
	struct twi_handover_link *link = twi_handover_take(&executor->handed);

	while (link != NULL) {
		struct twi_handover_link *next = link->next;

		free(link);
		link = next;
	}
}

int tw_uv_close(struct tw_uv *executor)
{
	if (executor == NULL)
		return 0;
	if (forked(executor))
		handed_free(executor);
	else if (busy(executor))
		return -EBUSY;
	uv_close((uv_handle_t *)&executor->async, closed);
	return 0;
}
