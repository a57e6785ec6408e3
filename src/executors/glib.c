/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-glib: a GThreadPool as an executor.
 *
 * By the public headers, and base. Its threads are the pool's own (exclusive), so that they are made
 * when it is, and a push never has to make one: a push that cannot would leave what it was given in a
 * queue that nobody reads.
 */
#include <tickwheel/glib.h>

#include "base/atomic.h"

#include <errno.h>
#include <glib.h>

enum { THREADS_MAX = 1024 };

struct tw_glib {
	GThreadPool *pool;        /* [const] */
	size_t queue_max;         /* [const] 0: no limit */
	_Atomic uint64_t waiting; /* [atomic] accepted, and not begun */
};

static void due_begin(gpointer data, gpointer context)
{
	struct tw_glib *executor = context;
	struct tw_due due = *(const struct tw_due *)data;

	g_free(data);
	/* RELAXED: a count; what was pushed came by the pool's lock. */
	(void)twi_fetch_sub_relaxed(&executor->waiting, 1);
	(void)tw_due_run(&due);
}

int tw_glib_create(unsigned threads, size_t queue_max, struct tw_glib **ret_executor)
{
	struct tw_glib *executor;

	if (ret_executor == NULL || threads == 0 || threads > THREADS_MAX)
		return -EINVAL;
	executor = g_try_new0(struct tw_glib, 1);
	if (executor == NULL)
		return -ENOMEM;
	executor->queue_max = queue_max;
	executor->pool = g_thread_pool_new(due_begin, executor, (gint)threads, TRUE, NULL);
	if (executor->pool == NULL) {
		g_free(executor);
		return -ENOMEM;
	}
	*ret_executor = executor;
	return 0;
}

static bool due_push(struct tw_glib *executor, const struct tw_due *due)
{
	/* RELAXED, all: a count. Several workers at once may go beyond it by one each. */
	uint64_t waiting = twi_load_relaxed(&executor->waiting);
	struct tw_due *copy;

	if (executor->queue_max != 0 && waiting >= executor->queue_max)
		return false;
	copy = g_try_new(struct tw_due, 1);
	if (copy == NULL)
		return false;
	*copy = *due;
	/* RELAXED: as above. */
	(void)twi_fetch_add_relaxed(&executor->waiting, 1);
	/* Whatever it returns, it has it. */
	(void)g_thread_pool_push(executor->pool, copy, NULL);
	return true;
}

size_t tw_glib_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;

	while (accepted < count && due_push(context, &due[accepted]))
		accepted++;
	return accepted;
}

int tw_glib_destroy(struct tw_glib *executor)
{
	if (executor == NULL)
		return 0;
	g_thread_pool_free(executor->pool, FALSE, TRUE);
	g_free(executor);
	return 0;
}
