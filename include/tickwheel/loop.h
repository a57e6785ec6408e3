/* SPDX-License-Identifier: MIT */
/**
 * @file loop.h
 * An engine without a thread: the caller's event loop does the worker's work.
 *
 * A bracket is a poll, or the time from tw_loop_enter to tw_loop_exit. The thread in the bracket is
 * the engine's owner. Only the owner touches the wheel of an engine with TW_ENGINE_LOOP. The
 * timeouts that it schedules go straight into the wheel, and its cancels take them straight out.
 * Other threads schedule and cancel as usual, and the next poll handles these calls. Callbacks run
 * inside tw_engine_poll and nowhere else.
 *
 * Any thread may open the next bracket. The program must make sure that the brackets of one engine
 * never overlap. If a thread opens a bracket during another thread's bracket, it gets -EBUSY, and
 * the log hook gets a message.
 *
 * If a loop stays on one thread, that thread calls tw_loop_enter once, before the loop begins, and
 * tw_loop_exit at its end.
 */
#ifndef TICKWHEEL_LOOP_H
#define TICKWHEEL_LOOP_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/**
 * Runs the timeouts that are due: one turn of the worker, on the calling thread.
 *
 * A timeout is due if its deadline is not after the present time. Due timeouts run in the order of
 * their deadlines. The engine asks for a poll only at the end of a tick (tw_engine_next_due,
 * tw_engine_fd). So a loop is woken once for each tick that has timeouts. If the loop polls sooner,
 * they run sooner.
 *
 * If the budget is used up, the remaining timeouts stay due: tw_engine_next_due returns a time that
 * has passed, and the descriptor stays readable. After a stop by another thread, the poll ends the
 * engine, and the hand-back runs inside the poll.
 *
 * Units: `budget`, the most callbacks that run; 0: no bound. With a dispatch hook: the most
 *   timeouts that are handed over, rounded up to a batch of at most 244.
 * Threads: any, but one at a time. If the caller is in no bracket of the engine, the call itself is
 *   a bracket.
 * In callback: no (-EDEADLK) in a callback of this engine; in another engine's callback, yes.
 * Progress: that of the callbacks. The call never sleeps, unless it ends the engine after another
 *   thread's stop (then as tw_engine_stop).
 * Lifetime: none.
 * Returns: how many timeouts have expired, 0 or more; -EINVAL (NULL, an engine with a worker
 *   thread); -EBUSY (another thread is in a bracket); -EDEADLK; -ESHUTDOWN (stopped; no timeout
 *   will ever be due); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_poll(struct tw_engine *engine, uint64_t budget);

/**
 * Runs the timeouts that are due at the given time. Otherwise the same as tw_engine_poll. Lateness
 * is still counted by the clock.
 *
 * Units: `now_ns`, nanoseconds of the engine's clock. If it is in the future, timeouts may run
 *   early by as much. If it is before the time of an earlier poll, the time of that poll is used.
 * Threads: as tw_engine_poll.
 * In callback: as tw_engine_poll.
 * Progress: as tw_engine_poll.
 * Lifetime: none.
 * Returns: as tw_engine_poll; -EINVAL also for a negative `now_ns`.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_poll_at(struct tw_engine *engine, int64_t now_ns, uint64_t budget);

/**
 * Runs the timeouts that are due, for a bounded time. Otherwise the same as tw_engine_poll.
 *
 * Meant for a loop that has other work waiting, such as descriptors. The poll reads the clock after
 * each callback, so it exceeds its time by one callback at most. If timeouts are due, at least one
 * runs. Before the callbacks, the poll moves other threads' timeouts into the wheel. This work is
 * not bounded in time, but in number, by the option `transfer_batch`.
 *
 * Units: `budget`, as in tw_engine_poll. `budget_ns`, nanoseconds of the engine's clock; 0: one
 *   callback; TW_NEVER: no bound. With a dispatch hook the clock is read after each batch.
 * Threads: as tw_engine_poll.
 * In callback: as tw_engine_poll.
 * Progress: as tw_engine_poll.
 * Lifetime: none.
 * Returns: as tw_engine_poll; -EINVAL also for a negative `budget_ns`.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_poll_for(struct tw_engine *engine, uint64_t budget, int64_t budget_ns);

/**
 * Returns when the next poll is needed. A loop that waits for the descriptor (tw_engine_fd) does
 * not need this call.
 *
 * The result does not include timeouts that other threads schedule after this call. Such a timeout
 * makes the descriptor readable if it is due earlier than all before. Without a descriptor, the
 * next poll finds it.
 *
 * Units: nanoseconds of the engine's clock (tw_engine_now). A time that has passed, such as 0: at
 *   once. TW_NEVER: nothing will ever be due. The result is never later than the tick boundary at
 *   which the earliest timeout runs. It is earlier if many far timeouts must move to a lower level
 *   of the wheel before.
 * Threads: as tw_engine_poll.
 * In callback: yes.
 * Progress: O(levels) with the hierarchical wheel, O(occupied slots) with the hashed one.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL (as tw_engine_poll); -EBUSY; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_next_due(struct tw_engine *engine);

/**
 * Returns a file descriptor that is readable while a poll is needed. For poll, epoll
 * (level-triggered), and every loop built on them. Only wait for it: do not read, write, set or
 * close it.
 *
 * A poll is needed when a timeout is due. It is also needed when another thread stops or flushes
 * the engine, or has scheduled a timeout that is due earlier than all before. Finally, it is needed
 * when so many cancelled timeouts of a thread wait that their memory should be reclaimed. The
 * descriptor may be readable although nothing is due, but it is always readable while a poll is
 * needed.
 *
 * Units: none.
 * Threads: as tw_engine_poll; any thread may wait for the descriptor.
 * In callback: yes.
 * Progress: the first call creates the descriptor (timerfd_create); later calls only return its
 *   number. Once there is a descriptor, a poll may make a system call, and so does a schedule whose
 *   timeout is due earlier than all before.
 * Lifetime: tw_engine_destroy closes the descriptor. In a forked child the copy of the descriptor
 *   is of no use.
 * Returns: the descriptor, 0 or more; -ENOMEM (no descriptor, or no memory for it); -EINVAL (as
 *   tw_engine_poll); -EBUSY; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_fd(struct tw_engine *engine);

/**
 * Opens a bracket: makes the calling thread the owner, until tw_loop_exit.
 *
 * A poll outside of a bracket opens a bracket and closes it again. So a program needs this call
 * only to use the owner's faster calls between polls, and timeouts of owner-only kinds.
 *
 * Units: none.
 * Threads: any, but one at a time.
 * In callback: yes, but only for an engine other than the callback's.
 * Progress: lock-free. The call moves the timeouts that the thread has pushed before into the
 *   wheel.
 * Lifetime: the bracket ends with tw_loop_exit, or when a stop or a poll of the owner ends the
 *   engine. It also ends when the thread ends; then the log hook gets a message. Timeouts and the
 *   descriptor are not affected.
 * Returns: 0; -EINVAL (as tw_engine_poll); -EBUSY (another thread, or the caller itself, is in a
 *   bracket of this engine); -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_loop_enter(struct tw_engine *engine);

/**
 * Closes the bracket that the calling thread has opened with tw_loop_enter. From then on the thread
 * is a producer like all others, and any thread may open the next bracket.
 *
 * Units: none.
 * Threads: only the thread that has called tw_loop_enter.
 * In callback: no (-EDEADLK) for the callback's engine; for another engine, yes.
 * Progress: wait-free.
 * Lifetime: timeouts and the descriptor are not affected.
 * Returns: 0; -EINVAL (as tw_engine_poll); -EPERM (the calling thread is not in a bracket of this
 *   engine); -EDEADLK; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_loop_exit(struct tw_engine *engine);

TW_END_DECLS

#endif
