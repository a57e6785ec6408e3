/* SPDX-License-Identifier: MIT */
/**
 * @file loop.h
 * An engine without a thread: the caller's event loop does the worker's work.
 *
 * A thread may touch the wheel of an engine with TW_ENGINE_LOOP inside a bracket: during a poll, or
 * from tw_loop_enter to tw_loop_exit. The thread in the bracket is the engine's owner. The timeouts
 * that it schedules and cancels there go straight into the wheel and out of it. Outside of brackets
 * all threads schedule and cancel as usual, and the next poll sees it. Callbacks run inside
 * tw_engine_poll and nowhere else.
 *
 * Any thread may open the next bracket. The brackets of one engine must come one after the other,
 * which is the caller's duty, as it is with the loops of other libraries. If a thread opens one
 * during another thread's, it gets -EBUSY, and the log one line.
 *
 * A loop that stays on one thread enters once, before it begins, and exits at its end.
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
 * Due is each timeout with a deadline that is not after the present time. They run by deadline. The
 * engine asks for a poll only at the end of a tick (tw_engine_next_due, tw_engine_fd), so a loop is
 * woken once for each tick that has timeouts. If it polls sooner, they run sooner.
 *
 * If the budget is used up, the remaining timeouts stay due: tw_engine_next_due returns a time that
 * has come, and the descriptor stays readable. After a stop by another thread, the poll ends the
 * engine, and the hand-back runs inside the poll.
 *
 * Units: `budget`, the most callbacks that run; 0: no bound. With a dispatch hook: the most
 *   timeouts that are handed over, rounded up to a batch of at most 244.
 * Threads: any, but one at a time. If the caller is in no bracket of the engine, the call is one.
 * In callback: no (-EDEADLK) in a callback of this engine; in another engine's, yes.
 * Progress: that of the callbacks. The call never sleeps, unless it ends the engine after another
 *   thread's stop (then as tw_engine_stop).
 * Lifetime: none.
 * Returns: how many timeouts have expired, 0 or more; -EINVAL (NULL, an engine with a worker
 *   thread); -EBUSY (another thread is in a bracket); -EDEADLK; -ESHUTDOWN (stopped; no timeout will
 *   ever be due); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_poll(struct tw_engine *engine, uint64_t budget);

/**
 * Runs the timeouts that are due at the given time. Otherwise the same as tw_engine_poll. Lateness
 * is still counted by the clock.
 *
 * Units: `now_ns`, of the engine's clock. If it is in the future, timeouts are early by as much. If
 *   it is before the time of an earlier poll, that earlier poll's time is used.
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
 * For a loop that has other work waiting, such as descriptors. The clock is read after each
 * callback, so the poll is longer than its time by one callback at most. It runs at least one of
 * those that are due. A transfer of other threads' timeouts before the callbacks is not bounded in
 * time, but by the batch (struct tw_options).
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
 * Returns when the next poll is needed. A loop that waits for the descriptor does not have to ask.
 *
 * The result does not include timeouts that other threads schedule after this call. For those the
 * descriptor becomes readable, or the next poll finds them.
 *
 * Units: nanoseconds of the engine's clock (tw_engine_now). A time that has passed, such as 0: at
 *   once. TW_NEVER: nothing will ever be due. The result is never later than the tick boundary at
 *   which the earliest timeout runs. It is earlier if many far timeouts must be prepared for that
 *   time.
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
 * A poll is needed when a timeout is due. It is also needed when another thread stops the engine,
 * flushes, or has scheduled a timeout that is due earlier than all before. Finally, it is needed
 * when a thread has left so much behind that its memory should be reclaimed. The descriptor may be
 * readable when nothing is due, but never the other way round.
 *
 * Units: none.
 * Threads: as tw_engine_poll; any thread may wait for the descriptor.
 * In callback: yes.
 * Progress: the first call creates it (timerfd_create), the others only return its number. From
 *   then on a poll may make a system call. So does a schedule if its timeout is due earlier than
 *   all before.
 * Lifetime: the engine closes it in tw_engine_destroy. A forked child does not share it usefully.
 * Returns: the descriptor, 0 or more; -ENOMEM (no descriptor, or no memory for it); -EINVAL (as
 *   tw_engine_poll); -EBUSY; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_fd(struct tw_engine *engine);

/**
 * Opens a bracket: makes the calling thread the owner, until tw_loop_exit.
 *
 * Each poll outside of a bracket opens its own and closes it. So a program needs this call only for
 * the owner's short paths between polls, and for timeouts of owner-only kinds.
 *
 * Units: none.
 * Threads: any, but one at a time.
 * In callback: yes, for another engine than the callback's.
 * Progress: lock-free. It moves into the wheel what the thread has pushed before.
 * Lifetime: the bracket ends with tw_loop_exit, with a stop or a poll of the owner that ends the
 *   engine, and with the thread (then the log gets a line). Timeouts and the descriptor stay as they
 *   are.
 * Returns: 0; -EINVAL (as tw_engine_poll); -EBUSY (a thread is in a bracket of this engine: another
 *   one, or the caller); -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_loop_enter(struct tw_engine *engine);

/**
 * Closes the bracket that the calling thread has opened with tw_loop_enter. From then on the thread
 * is a producer like all others, and any thread may open the next bracket.
 *
 * Units: none.
 * Threads: the one that has entered.
 * In callback: no (-EDEADLK) for the callback's engine; for another engine, yes.
 * Progress: wait-free.
 * Lifetime: timeouts and the descriptor stay as they are.
 * Returns: 0; -EINVAL (as tw_engine_poll); -EPERM (the calling thread is not in a bracket of this
 *   engine); -EDEADLK; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_loop_exit(struct tw_engine *engine);

TW_END_DECLS

#endif
