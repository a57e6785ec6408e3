/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-glib: a GThreadPool as an executor.
 *
 * It uses only the public headers and src/base. The pool is exclusive: its threads are created with
 * it, so a push never has to create one. If a push failed to create a thread, its timeout could
 * stay in a queue that no thread reads. For the same reason, a pool that could not create all its
 * threads is an error.
 *
 * In a forked child none of the pool's threads exists, but one of them may have held the pool's
 * lock at the fork. So the child pushes nothing, and leaves the pool as it is.
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
	size_t queue_max;         /* [const] the most waiting timeouts, or 0 for no limit */
	int generation;           /* [const] number of forks at creation */
	_Atomic uint64_t waiting; /* [atomic] accepted timeouts that do not run yet */
};

/* The executor to which the calling thread belongs during a run. */
static _Thread_local const struct tw_glib *own_executor;

static void due_begin(gpointer data, gpointer context)
{
	struct tw_glib *executor = context;
	struct tw_due due = *(const struct tw_due *)data;

	twi_tsan_acquire(data);
	g_free(data);
	/* RELAXED: only a count; the pool's lock orders the data that was pushed. */
	(void)twi_fetch_sub_relaxed(&executor->waiting, 1);
	own_executor = executor;
	(void)tw_due_run(&due);
	/*
	 * Must be reset, because GLib may reuse the thread for another pool when this one is freed.
	 */
	own_executor = NULL;
}

/* Returns a pool that has created all of its threads, or NULL. */
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
	/*
	 * RELAXED: only a count. If several workers push at once, each may exceed the limit by one.
	 */
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
	/* The pool's lock is GLib's own, and ThreadSanitizer does not see it. */
	twi_tsan_release(copy);
	/* If the call fails, the pool has the copy nevertheless, so the copy must not be freed. */
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
	/* In a forked child neither the pool nor the data that its threads use can be freed. */
	if (forked(executor))
		return 0;
	g_thread_pool_free(executor->pool, FALSE, TRUE);
	g_free(executor);
	return 0;
}
