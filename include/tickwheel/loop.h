/* SPDX-License-Identifier: MIT */
/**
 * @file loop.h
 * An engine without a thread: the caller's event loop does the worker's work.
 *
 * An engine created with TW_ENGINE_LOOP has an owner, the thread of the loop. The first thread that
 * calls one of the functions below, or tw_engine_start, becomes the owner. So does the first thread
 * that schedules a timeout that only the owner may use. The owner must call tw_engine_leave before
 * it ends, because otherwise the engine is lost with it. Callbacks run in the owner's
 * tw_engine_poll and nowhere else. Timeouts that the owner schedules and cancels go straight into
 * the wheel and out of it. Other threads may schedule and cancel as usual, and the owner's next
 * poll sees it.
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
 * Threads: the owner. If the engine has no owner, the caller becomes the owner.
 * In callback: no (-EDEADLK), of whatever engine.
 * Progress: that of the callbacks. The call never sleeps, unless it ends the engine after another
 *   thread's stop (then as tw_engine_stop).
 * Lifetime: none.
 * Returns: how many timeouts have expired, 0 or more; -EINVAL (NULL, an engine with a worker
 *   thread); -EBUSY (another thread is the owner); -EDEADLK; -ESHUTDOWN (stopped; no timeout will
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
 * Threads: the owner, as in tw_engine_poll.
 * In callback: no (-EDEADLK), of whatever engine.
 * Progress: as tw_engine_poll.
 * Lifetime: none.
 * Returns: as tw_engine_poll; -EINVAL also for a negative `now_ns`.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_poll_at(struct tw_engine *engine, int64_t now_ns, uint64_t budget);

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
 * Threads: the owner, as in tw_engine_poll.
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
 * Threads: the owner, as in tw_engine_poll; any thread may wait for the descriptor.
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
 * Gives up the owner's role: the next thread that polls, starts or asks is the owner. The owner
 * must call it if another thread should continue, or should stop the engine after this one has
 * ended.
 *
 * Units: none.
 * Threads: the owner.
 * In callback: no (-EDEADLK).
 * Progress: wait-free.
 * Lifetime: timeouts and the descriptor stay as they are.
 * Returns: 0; -EINVAL (as tw_engine_poll); -EBUSY (the caller is not the owner); -EDEADLK; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_leave(struct tw_engine *engine);

TW_END_DECLS

#endif
