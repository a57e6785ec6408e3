/* SPDX-License-Identifier: MIT */
/**
 * @file glib.h
 * An executor for engines: threads of GLib's GThreadPool. It is in the library tickwheel-glib
 * (pkg-config tickwheel-glib), which exists if tickwheel was built with the feature `glib`.
 *
 *     struct tw_glib *executor;
 *     tw_glib_create(4, 10000, &executor);
 *     options.dispatch = tw_glib_dispatch;
 *     options.dispatch_context = executor;
 *     ...
 *     tw_engine_stop(engine, NULL, NULL, TW_NEVER);
 *     tw_engine_destroy(engine);
 *     tw_glib_destroy(executor);
 *
 * Several engines may share one executor. A callback in the executor must not end its thread,
 * because tw_glib_destroy would wait for that thread for ever. In a forked child an executor of the
 * parent has no threads: it rejects all timeouts, and can only be destroyed.
 */
#ifndef TICKWHEEL_GLIB_H
#define TICKWHEEL_GLIB_H

#include <stddef.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** An executor of GLib's threads, made by tw_glib_create and freed by tw_glib_destroy. */
struct tw_glib;

/**
 * Creates an executor, and its `threads` threads.
 *
 * Units: `threads`, 1 to 1,024; `queue_max`, the most timeouts that wait for a thread; 0: no limit.
 *   If that many wait, the executor rejects further ones (option `rejection`). Each worker that
 *   pushes at that moment may exceed the limit by one.
 * Threads: any.
 * In callback: yes.
 * Progress: takes as long as creating the threads takes.
 * Lifetime: until tw_glib_destroy.
 * Returns: 0 and `*ret_executor`; -EINVAL (NULL, `threads`); -ENOMEM (also if not all of the
 *   threads can be created); then `*ret_executor` is not written.
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_glib_create(unsigned threads, size_t queue_max,
					    struct tw_glib **ret_executor);

/**
 * The dispatch hook; its context is the executor. It allocates one block of memory for each
 * timeout, and holds the lock of the pool's queue during each push.
 *
 * Units: timeouts.
 * Threads: any worker.
 * In callback: no; the engine calls it.
 * Progress: allocates; waits for the lock of the queue if another thread holds it.
 * Lifetime: `due` during the call only.
 * Returns: how many timeouts it accepted: fewer if the queue is full or there is no memory; none in
 *   a forked child.
 * Since: 0.1.0.
 */
TW_BESIDE_API size_t tw_glib_dispatch(void *executor, const struct tw_due *due, size_t count);

/**
 * Waits until all accepted timeouts have run, ends the threads and frees the executor. NULL is
 * accepted.
 *
 * Units: none.
 * Threads: any except the executor's own, once; no engine may use the executor any more.
 * In callback: no, if the callback runs in one of the executor's own threads (-EDEADLK, because the
 *   call would wait for itself).
 * Progress: blocks for running callbacks.
 * Lifetime: the executor no longer exists after the call, except after -EDEADLK.
 * Returns: 0; -EDEADLK. In a forked child it returns 0, and does not free the executor's memory.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_glib_destroy(struct tw_glib *executor);

TW_END_DECLS

#endif
