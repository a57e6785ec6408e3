/* SPDX-License-Identifier: MIT */
/**
 * @file scope.h
 * Scopes: timeouts that end together, such as those of a connection or a request.
 *
 * Timeouts are scheduled into a scope. One call, from any thread, cancels all of them that are
 * still pending. After that call none of them expires any more. A timeout of a scope is like any
 * other: it can be cancelled, rescheduled and waited for by its handle. When a timeout has ended,
 * it leaves the scope without a call. docs/scopes.md shows how a scope is used.
 *
 * A scope is OPEN until the first call that ends it, and ENDED from then on.
 */
#ifndef TICKWHEEL_SCOPE_H
#define TICKWHEEL_SCOPE_H

#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/memory.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;

/** A set of timeouts that end together, made by tw_scope_create and freed by tw_scope_destroy. */
struct tw_scope;

/**
 * Creates a scope, whose timeouts go to this engine.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_scope_destroy. `allocator` must stay alive until then; NULL: malloc and free.
 *   The engine may be destroyed before the scope; from then on tw_scope_schedule must not be
 *   called.
 * Returns: 0 and `*ret_scope`; -EINVAL (NULL as engine or `ret_scope`, an allocator without a
 *   function); -ENOMEM; -ECHILD.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_scope_create(struct tw_engine *engine,
				      const struct tw_allocator *allocator,
				      struct tw_scope **ret_scope);

/**
 * Schedules a timeout into a scope, `delay_ns` from now. Otherwise the same as tw_schedule.
 *
 * If another thread ends the scope during the call, there are two possible outcomes. Either the
 * call returns -ESHUTDOWN, and the timeout never existed. Or the call returns 0, and the timeout is
 * cancelled like all the others: either tw_scope_end cancels it, or this call does so before it
 * returns. The thread that cancels it also runs the finaliser. In no case does the timeout expire
 * after tw_scope_end has returned.
 *
 * In tw_stats the call counts as one schedule and, unless the delay is TW_NEVER, as one reschedule.
 * With TW_ENGINE_ORDERED or TW_ENGINE_LOOP, the timeout's place among equal deadlines is undefined,
 * unless the engine's own thread has scheduled it.
 *
 * Units: as tw_schedule.
 * Threads: any.
 * In callback: yes, as tw_schedule. If the scope is ended while the callback of one of its timeouts
 *   runs, the call returns -ESHUTDOWN in that callback. So a callback that schedules itself again
 *   needs no check of its own.
 * Progress: lock-free. On average it visits a constant number of the scope's slots. If more
 *   timeouts are pending in the scope than ever before, it visits all slots, and allocates.
 * Lifetime: as tw_schedule. The scope must not be destroyed before the call has returned, except by
 *   the timeout's own callback or finaliser.
 * Returns: as tw_schedule; -EINVAL also for NULL as `scope` and for a kind that only the owner may
 *   use; -ESHUTDOWN also if the scope has ended; -ENOMEM also if the scope cannot grow.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_scope_schedule(struct tw_scope *scope, int64_t delay_ns,
						 const struct tw_kind *kind, void *arg,
						 struct tw_handle *ret_handle);

/**
 * Schedules a timeout into a scope, for a point of the engine's time; does not read the clock.
 * Otherwise the same as tw_scope_schedule.
 *
 * Units: as tw_schedule_at.
 * Threads: any.
 * In callback: yes, as tw_scope_schedule.
 * Progress: as tw_scope_schedule.
 * Lifetime: as tw_scope_schedule.
 * Returns: as tw_scope_schedule; -ERANGE for the deadline INT64_MIN.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_scope_schedule_at(struct tw_scope *scope, int64_t deadline_ns,
						    const struct tw_kind *kind, void *arg,
						    struct tw_handle *ret_handle);

/**
 * Ends a scope: cancels all its pending timeouts. The scope then accepts no more timeouts.
 *
 * After the return, no timeout of the scope expires any more. The callback of a timeout that
 * expired before may still run, or be about to begin; tw_scope_end_wait waits for it. The
 * finalisers of the timeouts that this call has cancelled have run. (One exception: a timeout may
 * be on its way to an executor during the call. If the executor rejects it, and the engine has
 * TW_REJECTION_REQUEUE, the timeout is pending again. tw_scope_end_wait, or another call of
 * tw_scope_end, cancels it.)
 *
 * A scope may be ended more than once. A later call cancels the timeouts that are still pending. If
 * two threads end a scope at the same time, each timeout is cancelled by one of them, and its
 * finaliser runs on that thread.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes, also in the callback of one of the scope's timeouts. That timeout itself has
 *   expired, and is not counted.
 * Progress: for each timeout as tw_cancel.
 * Lifetime: handles and the scope stay valid.
 * Returns: how many timeouts this call has cancelled, 0 or more; -EINVAL for NULL; -ECHILD: in a
 *   forked child that has not taken the library over. In a child that has, the call cancels the
 *   timeouts that belong to the child.
 * Since: 0.1.0.
 */
TW_API int64_t tw_scope_end(struct tw_scope *scope);

/**
 * Ends a scope like tw_scope_end, and waits until none of its callbacks (and finalisers) runs.
 *
 * When it has returned 0, the memory that callbacks of the scope use can be freed, unless the
 * caller itself is such a callback.
 *
 * Units: `timeout_ns`, the longest time to wait for all callbacks together; TW_NEVER: without
 *   bound; 0 or less: do not wait.
 * Threads: any.
 * In callback: yes. The call does not wait for the callback in which it is made. On a worker it
 *   does not wait for any callback of that worker's engine. If two callbacks on different threads
 *   wait for each other, they deadlock. So two callbacks of one scope in an executor must not both
 *   make this call.
 * Progress: blocks.
 * Lifetime: as tw_scope_end.
 * Returns: 0; -ETIMEDOUT: the scope has ended, but a callback still runs; -EINVAL; -ECHILD (as
 *   tw_scope_end).
 * Since: 0.1.0.
 */
TW_API int tw_scope_end_wait(struct tw_scope *scope, int64_t timeout_ns);

/**
 * Returns how many timeouts of a scope are pending or run. Timeouts of calls that are under way may
 * or may not count.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes; the callback's own timeout counts.
 * Progress: wait-free; visits each slot of the scope.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL; -ECHILD (as tw_scope_end).
 * Since: 0.1.0.
 */
TW_API int64_t tw_scope_count(struct tw_scope *scope);

/**
 * Frees a scope that has ended. NULL is accepted.
 *
 * Callbacks of the scope may still run, because none of them touches the scope's memory. A callback
 * of the scope may end it and destroy it.
 *
 * Units: none.
 * Threads: any, once; no thread may use the scope any more. Handles stay safe.
 * In callback: yes.
 * Progress: frees memory.
 * Lifetime: the scope exists until the call returns 0.
 * Returns: 0; -EBUSY: the scope has not ended, or a call on it is under way. In a forked child the
 *   call frees the child's copy of a scope of the parent, and never returns -EBUSY.
 * Since: 0.1.0.
 */
TW_API int tw_scope_destroy(struct tw_scope *scope);

TW_END_DECLS

#endif
