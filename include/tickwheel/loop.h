/* SPDX-License-Identifier: MIT */
/**
 * @file loop.h
 * An engine without a thread: the caller's event loop does the worker's work.
 *
 * Made with TW_ENGINE_LOOP, an engine has an owner, the thread of the loop: whoever calls one of
 * the functions below first, or tw_engine_start, or schedules a timeout that is only the owner's.
 * It has to call tw_engine_leave before it ends, else the engine is lost with it. Callbacks run in
 * the owner's tw_poll and nowhere else. What the owner schedules and cancels goes straight to the
 * wheel; other threads may schedule and cancel as ever, and the owner's next poll sees it.
 */
#ifndef TICKWHEEL_LOOP_H
#define TICKWHEEL_LOOP_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/**
 * Runs what is due: one turn of the worker, on the calling thread.
 *
 * What is left when the budget is used up stays due: tw_next_due says a time that has come, the
 * descriptor stays readable. After a stop by another thread the poll ends the engine: its hand-back
 * runs in here.
 *
 * Units: `budget`, the most callbacks that run; 0: no bound. With a dispatch hook: the most that
 *   are handed over, rounded up to a batch of at most 244.
 * Threads: the owner; an engine that has none gets the caller as owner.
 * In callback: no (-EDEADLK), of whatever engine.
 * Progress: that of the callbacks; never sleeps, save where it ends the engine after another
 *   thread's stop (then as tw_engine_stop).
 * Lifetime: none.
 * Returns: how many timeouts have expired, 0 or more; -EINVAL (NULL, an engine with a worker
 *   thread); -EBUSY (another thread is the owner); -EDEADLK; -ESHUTDOWN (stopped; nothing will ever
 *   be due); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_poll(struct tw_engine *engine, uint64_t budget);

/**
 * As tw_poll, but what is due is judged by the time that the caller gives. Lateness is still
 * counted by the clock.
 *
 * Units: `now_ns`, of the engine's clock. One in the future makes timeouts early by as much; one
 *   before that of an earlier poll counts as that.
 * Threads: the owner, as in tw_poll.
 * In callback: no (-EDEADLK), of whatever engine.
 * Progress: as tw_poll.
 * Lifetime: none.
 * Returns: as tw_poll; -EINVAL also for a negative `now_ns`.
 * Since: 0.1.0.
 */
TW_API int64_t tw_poll_at(struct tw_engine *engine, int64_t now_ns, uint64_t budget);

/**
 * When the next poll is needed. A loop that waits for the descriptor does not have to ask.
 *
 * What other threads schedule after this call is not in it: the descriptor tells, or the next poll.
 *
 * Units: nanoseconds of the engine's clock (tw_engine_now). A time that has passed, such as 0: at
 *   once. TW_NEVER: nothing is due, ever. Never later than the tick boundary at which the earliest
 *   timeout runs; earlier where a crowd of far timeouts is to be made ready for it.
 * Threads: the owner, as in tw_poll.
 * In callback: yes.
 * Progress: O(levels) with the hierarchical wheel, O(occupied slots) with the hashed one.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL (as tw_poll); -EBUSY; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_next_due(struct tw_engine *engine);

/**
 * A file descriptor that is readable while a poll is needed: something is due, another thread has
 * scheduled something that is due earlier than all before, stops the engine, settles, or has left
 * so much behind that its memory should be seen to. For poll, epoll (level-triggered), and every
 * loop above them. Only to be waited for: do not read, write, set or close it.
 *
 * It may be readable when nothing is due, never the other way round.
 *
 * Units: none.
 * Threads: the owner, as in tw_poll; the descriptor may be waited for anywhere.
 * In callback: yes.
 * Progress: the first call makes it (timerfd_create), the others only tell its number. From then on
 *   a poll may make a system call, and so does a schedule that is due earlier than all before.
 * Lifetime: the engine closes it in tw_engine_destroy. A forked child does not share it usefully.
 * Returns: the descriptor, 0 or more; -ENOMEM (no descriptor, or no memory for it); -EINVAL (as
 *   tw_poll); -EBUSY; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_fd(struct tw_engine *engine);

/**
 * The owner gives up its role: the next thread that polls, starts or asks is the owner. Needed where
 * another thread is to go on, or to stop the engine after this one has ended.
 *
 * Units: none.
 * Threads: the owner.
 * In callback: no (-EDEADLK).
 * Progress: wait-free.
 * Lifetime: timeouts and the descriptor stay as they are.
 * Returns: 0; -EINVAL (as tw_poll); -EBUSY (the caller is not the owner); -EDEADLK; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_leave(struct tw_engine *engine);

TW_END_DECLS

#endif
