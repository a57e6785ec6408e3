/* SPDX-License-Identifier: MIT */
/**
 * @file uv.h
 * An executor for engines: the work queue of libuv. Library tickwheel-uv (pkg-config tickwheel-uv),
 * which is there where tickwheel was built with the feature `libuv`.
 *
 *     struct tw_uv *executor;
 *     tw_uv_create(loop, 10000, &executor);
 *     options.dispatch = tw_uv_dispatch;
 *     options.dispatch_context = executor;
 *
 * uv_queue_work belongs to the thread of its loop. So a worker hands its batches over by a stack without a
 * lock and wakes the loop (uv_async_send); the loop's thread gives them to the work queue, and callbacks
 * run in libuv's threads. A loop that does not run runs none. A callback in it must not end its thread:
 * libuv would never be told of its end, and the executor never be closed.
 *
 * Stop. tw_engine_stop waits for what was accepted, and so for the loop. On another thread than the
 * loop's it is called as always. On the loop's own thread it would wait for itself; there:
 *
 *     while (tw_engine_stop(engine, NULL, NULL, 1000000) == -ETIMEDOUT)
 *             tw_uv_flush(executor);
 *     tw_engine_destroy(engine);
 *     while (tw_uv_close(executor) == -EBUSY)
 *             uv_run(loop, UV_RUN_ONCE);
 *     uv_run(loop, UV_RUN_DEFAULT);
 *
 * The same where the engine is in loop mode and polled on that thread. If other threads stop such an engine,
 * call tw_uv_flush after each tw_poll: the poll that ends the engine waits for what was accepted.
 *
 * In a forked child it refuses all; what was under way is the parent's, and the child's copy of what libuv
 * had of it is not freed. It is closed after uv_loop_fork.
 */
#ifndef TICKWHEEL_UV_H
#define TICKWHEEL_UV_H

#include <stddef.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_uv;
struct uv_loop_s;

/**
 * Makes an executor of a loop. While it is open, it keeps the loop alive.
 *
 * Units: `queue_max`, the most timeouts that wait or run, beyond which they are refused (option
 *   `refusal`); 0: no limit.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_uv_close; the loop must live longer.
 * Returns: 0 and `*ret_executor`; -EINVAL (NULL); -ENOMEM (also: libuv has no means to be woken).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_create(struct uv_loop_s *loop, size_t queue_max,
			       struct tw_uv **ret_executor);

/**
 * The dispatch hook; its context is the executor. Takes one block of memory for each batch, and no
 * lock.
 *
 * Units: timeouts.
 * Threads: any worker.
 * In callback: no; the engine calls it.
 * Progress: allocates, lock-free; a system call to wake the loop.
 * Lifetime: `due` during the call only.
 * Returns: how many it accepted: fewer where `queue_max` are under way; none where there is no memory, or
 *   in a forked child.
 * Since: 0.1.0.
 */
TW_BESIDE_API size_t tw_uv_dispatch(void *executor, const struct tw_due *due, size_t count);

/**
 * Gives to the work queue what was handed over, as the loop does when it is woken: for a thread that
 * is the loop's, and waits without running it.
 *
 * Units: timeouts.
 * Threads: the loop's.
 * In callback: on the loop's thread: yes.
 * Progress: that of uv_queue_work.
 * Lifetime: none.
 * Returns: how many (at most INT_MAX); -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_flush(struct tw_uv *executor);

/**
 * Closes the executor, when all has run. Its memory is free once the loop has run its close callbacks.
 *
 * Units: none.
 * Threads: the loop's, once; no engine may use it any more.
 * In callback: no.
 * Progress: does not wait.
 * Lifetime: ends with 0.
 * Returns: 0 (also for NULL); -EBUSY: something is under way, or its loop has not been told of its end
 *   yet: run the loop, and call again.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_close(struct tw_uv *executor);

TW_END_DECLS

#endif
