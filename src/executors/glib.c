/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-glib: a GThreadPool as an executor.
 *
 * By the public headers, and base. Its threads are the pool's own (exclusive), so that they are made
 * when it is, and a push never has to make one: a push that cannot would leave what it was given in a
 * queue that nobody reads. For the same reason a pool with fewer threads than it should have is none.
 *
 * In a forked child there is none of its threads, and its lock may be held by one of them: nothing is
 * pushed, and the pool is left as it is.
 */
#include <tickwheel/fork.h>
#include <tickwheel/glib.h>

#include "base/atomic.h"
#include "base/tsan.h"

#include <errno.h>
#include <glib.h>

enum { THREADS_MAX = 1024 };

struct tw_glib {
	GThreadPool *pool;        /* [const] */
	size_t queue_max;         /* [const] 0: no limit */
	int generation;           /* [const] of forks */
	_Atomic uint64_t waiting; /* [atomic] accepted, and not begun */
};

/* Whose thread it is that we are in. */
static _Thread_local const struct tw_glib *own_executor;

static void due_begin(gpointer data, gpointer context)
{
	struct tw_glib *executor = context;
	struct tw_due due = *(const struct tw_due *)data;

	twi_tsan_acquire(data);
	g_free(data);
	/* RELAXED: a count; what was pushed came by the pool's lock. */
	(void)twi_fetch_sub_relaxed(&executor->waiting, 1);
	own_executor = executor;
	(void)tw_due_run(&due);
	/* GLib lends its threads to other pools. */
	own_executor = NULL;
}

/* All of its threads, or NULL. */
static GThreadPool *pool_make(struct tw_glib *executor, unsigned threads)
{
	GError *error = NULL;
	GThreadPool *pool = g_thread_pool_new(due_begin, executor, (gint)threads, TRUE, &error);

	if (error == NULL)
		return pool;
	g_error_free(error);
	if (pool != NULL)
		g_thread_pool_free(pool, TRUE, TRUE);
	return NULL;
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
	executor->generation = tw_fork_generation();
	executor->pool = pool_make(executor, threads);
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
	/* The pool's lock is GLib's own, which ThreadSanitizer does not see. */
	twi_tsan_release(copy);
	/* Whatever it returns, it has it. */
	(void)g_thread_pool_push(executor->pool, copy, NULL);
	return true;
}

static bool forked(const struct tw_glib *executor)
{
	return executor->generation != tw_fork_generation();
}

size_t tw_glib_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;

	if (forked(context))
		return 0;
	while (accepted < count && due_push(context, &due[accepted]))
		accepted++;
	return accepted;
}

int tw_glib_destroy(struct tw_glib *executor)
{
	if (executor == NULL)
		return 0;
	if (own_executor == executor)
		return -EDEADLK;
	/* Neither can the pool be freed there, nor what its threads would look at. */
	if (forked(executor))
		return 0;
	g_thread_pool_free(executor->pool, FALSE, TRUE);
	g_free(executor);
	return 0;
}
