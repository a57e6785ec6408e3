/* SPDX-License-Identifier: MIT */
/*
 * Reports to ThreadSanitizer the order that GLib's thread pool provides. TSan cannot see GLib's
 * locks because they are futexes in a library that is built without TSan. Without this file, TSan
 * would report a race for each timeout that tickwheel-glib runs. There are two orders:
 *
 * Writes before a push happen before the pool's function is called for that push. The calls of that
 * function happen before the return of a free that waits for them.
 *
 * A program linked with this file gets these functions instead of GLib's. They call GLib's.
 */
#include <dlfcn.h>
#include <glib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

struct lent {
	GFunc function;
	gpointer context;
};

static void run(gpointer data, gpointer context)
{
	struct lent *lent = context;

	__tsan_acquire(data);
	lent->function(data, lent->context);
	__tsan_release(lent);
}

GThreadPool *g_thread_pool_new(GFunc function, gpointer context, gint threads, gboolean exclusive,
			       GError **error)
{
	GThreadPool *(*next)(GFunc, gpointer, gint, gboolean, GError **) =
		(GThreadPool * (*)(GFunc, gpointer, gint, gboolean, GError **))
			dlsym(RTLD_NEXT, "g_thread_pool_new");
	struct lent *lent = g_new(struct lent, 1);

	*lent = (struct lent){function, context};
	return next(run, lent, threads, exclusive, error);
}

gboolean g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error)
{
	gboolean (*next)(GThreadPool *, gpointer, GError **) =
		(gboolean(*)(GThreadPool *, gpointer, GError **))dlsym(RTLD_NEXT,
								       "g_thread_pool_push");

	__tsan_release(data);
	return next(pool, data, error);
}

/* TSan must not instrument this read. A thread of GLib frees the pool later, and TSan would
 * report a race. */
__attribute__((no_sanitize("thread"), noinline)) static struct lent *
lent_of(const GThreadPool *pool)
{
	return pool->user_data;
}

void g_thread_pool_free(GThreadPool *pool, gboolean immediate, gboolean waits)
{
	void (*next)(GThreadPool *, gboolean, gboolean) =
		(void (*)(GThreadPool *, gboolean, gboolean))dlsym(RTLD_NEXT, "g_thread_pool_free");
	struct lent *lent = lent_of(pool);

	next(pool, immediate, waits);
	if (!waits)
		return;
	__tsan_acquire(lent);
	g_free(lent);
}
