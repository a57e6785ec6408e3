/* SPDX-License-Identifier: MIT */
/**
 * @file uv.h
 * An executor for engines: the work queue of libuv. It is in the library tickwheel-uv (pkg-config
 * tickwheel-uv), which exists if tickwheel was built with the feature `libuv`.
 *
 *     struct tw_uv *executor;
 *     tw_uv_create(loop, 10000, &executor);
 *     options.dispatch = tw_uv_dispatch;
 *     options.dispatch_context = executor;
 *
 * uv_queue_work may be called only on the loop's thread. Therefore a worker pushes its batches to a
 * lock-free stack and wakes the loop (uv_async_send). The loop's thread hands them to the work
 * queue, and callbacks run in libuv's threads. If the loop does not run, no callback runs. A
 * callback in the executor must not end its thread. Otherwise libuv would never learn that the
 * callback has ended, and the executor could never be closed.
 *
 * tw_engine_stop waits for all accepted timeouts, and therefore for the loop. On a thread other
 * than the loop's, call it as usual. On the loop's own thread the call would wait for a loop that
 * cannot run meanwhile. So call it there like this:
 *
 *     while (tw_engine_stop(engine, NULL, NULL, TW_MS(1)) == -ETIMEDOUT)
 *             tw_uv_flush(executor);
 *     tw_engine_destroy(engine);
 *     while (tw_uv_close(executor) == -EBUSY)
 *             uv_run(loop, UV_RUN_ONCE);
 *     uv_run(loop, UV_RUN_DEFAULT);
 *
 * Do the same if the engine is in loop mode and polled on that thread. If other threads stop such
 * an engine, call tw_uv_flush after each tw_engine_poll, because the poll that ends the engine
 * waits for all accepted timeouts.
 *
 * In a forked child an executor of the parent rejects all timeouts. The timeouts that were under
 * way at the fork belong to the parent, and the memory that libuv held for them is not freed in the
 * child. Close the executor after uv_loop_fork.
 */
#ifndef TICKWHEEL_UV_H
#define TICKWHEEL_UV_H

#include <stddef.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** An executor of libuv's work queue, made by tw_uv_create and freed after tw_uv_close. */
struct tw_uv;
struct uv_loop_s;

/**
 * Creates an executor for a loop. The executor keeps the loop alive until it is closed.
 *
 * Units: `queue_max`, the most timeouts that wait or run; 0: no limit. If there are that many,
 *   further ones are rejected (option `rejection`).
 * Threads: the loop's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_uv_close; the loop must live longer.
 * Returns: 0 and `*ret_executor`; -EINVAL (NULL); -ENOMEM (also if libuv cannot create its wake-up
 *   handle).
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_uv_create(struct uv_loop_s *loop, size_t queue_max,
					  struct tw_uv **ret_executor);

/**
 * The dispatch hook; its context is the executor. It allocates one block of memory for each batch,
 * and takes no lock.
 *
 * Units: timeouts.
 * Threads: any worker.
 * In callback: no; the engine calls it.
 * Progress: allocates, lock-free; a system call to wake the loop.
 * Lifetime: `due` during the call only.
 * Returns: how many timeouts it accepted: fewer if `queue_max` would be exceeded; none if there is
 *   no memory, or in a forked child.
 * Since: 0.1.0.
 */
TW_BESIDE_API size_t tw_uv_dispatch(void *executor, const struct tw_due *due, size_t count);

/**
 * Hands to libuv's work queue all batches that workers have pushed, as the loop does when it is
 * woken. The loop's thread calls this if it waits for the engine without running the loop.
 *
 * Units: timeouts.
 * Threads: the loop's.
 * In callback: yes, on the loop's thread.
 * Progress: that of uv_queue_work.
 * Lifetime: none.
 * Returns: how many timeouts it has handed to the work queue (at most INT_MAX); -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_flush(struct tw_uv *executor);

/**
 * Closes the executor, if all accepted timeouts have run. Its memory is freed when the loop runs
 * its close callbacks.
 *
 * Units: none.
 * Threads: the loop's, once; no engine may use the executor any more.
 * In callback: no.
 * Progress: does not wait.
 * Lifetime: the executor must not be used after the call has returned 0.
 * Returns: 0 (also for NULL); -EBUSY: a timeout is under way, or the loop has not processed the end
 *   of one yet. Then run the loop and call again.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_close(struct tw_uv *executor);

TW_END_DECLS

#endif
