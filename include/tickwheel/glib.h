/* SPDX-License-Identifier: MIT */
/**
 * @file glib.h
 * An executor for engines: threads of GLib's GThreadPool. Library tickwheel-glib (pkg-config
 * tickwheel-glib), which is there where tickwheel was built with the feature `glib`.
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
 * Several engines may share one. A callback in it must not end its thread, which GLib would wait for at
 * the end. In a forked child it has no threads: it refuses all, and can only be destroyed.
 */
#ifndef TICKWHEEL_GLIB_H
#define TICKWHEEL_GLIB_H

#include <stddef.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_glib;

/**
 * Makes an executor of `threads` threads, which exist from now on.
 *
 * Units: `threads`, 1 to 1,024; `queue_max`, the most timeouts that wait for a thread, beyond which
 *   they are refused (option `refusal`), or one more for each worker that pushes at that moment; 0: no
 *   limit.
 * Threads: any.
 * In callback: yes.
 * Progress: as long as making the threads takes.
 * Lifetime: until tw_glib_destroy.
 * Returns: 0 and `*ret_executor`; -EINVAL (NULL, `threads`); -ENOMEM (also: fewer threads to be had than
 *   those); then `*ret_executor` is not written.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_glib_create(unsigned threads, size_t queue_max, struct tw_glib **ret_executor);

/**
 * The dispatch hook; its context is the executor. Takes one block of memory for each timeout, and
 * GLib's lock of the pool's queue for as long as a push takes.
 *
 * Units: timeouts.
 * Threads: any worker.
 * In callback: no; the engine calls it.
 * Progress: allocates; waits for the lock of the queue where another thread holds it.
 * Lifetime: `due` during the call only.
 * Returns: how many it accepted: fewer where the queue is full or there is no memory; none in a forked
 *   child.
 * Since: 0.1.0.
 */
TW_BESIDE_API size_t tw_glib_dispatch(void *executor, const struct tw_due *due, size_t count);

/**
 * Waits until what was accepted has run, ends the threads and frees the executor. NULL is accepted.
 *
 * Units: none.
 * Threads: any but its own, once; no engine may use it any more.
 * In callback: no, in its own threads (-EDEADLK: it would wait for itself).
 * Progress: blocks for running callbacks.
 * Lifetime: ends, save with -EDEADLK.
 * Returns: 0; -EDEADLK. In a forked child: 0, and its memory stays.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_glib_destroy(struct tw_glib *executor);

TW_END_DECLS

#endif
