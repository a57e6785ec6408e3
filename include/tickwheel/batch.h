/* SPDX-License-Identifier: MIT */
/**
 * @file batch.h
 * Batches: many timeouts scheduled, or cancelled, by one call.
 *
 * A batch does for each item what tw_schedule, tw_schedule_at or tw_cancel would do. It goes
 * through the array in order, and reports the outcome of each item. It saves work that single calls
 * repeat: it reads the clock once, and notifies the worker of a thousand timeouts at a time. While
 * it handles one item, it prefetches the memory of the next ones. docs/batches.md has figures.
 */
#ifndef TICKWHEEL_BATCH_H
#define TICKWHEEL_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;

/** The most items of a batch. */
#define TW_BATCH_MAX INT32_MAX

/** A timeout to be scheduled. */
struct tw_item {
	/** Nanoseconds: a delay (tw_schedule_many) or a deadline (tw_schedule_many_at). */
	int64_t time_ns;
	/** The kind, as in tw_schedule. Items may share one. */
	const struct tw_kind *kind;
	/** The argument, which the library passes on and does not look at. */
	void *arg;
};

/**
 * Schedules a timeout for each item of an array, its delay counted from the beginning of the call.
 *
 * Items are independent: if one is rejected, the items after it are not affected. There is one
 * exception: if an item is rejected because the engine is stopped or cannot be started, all later
 * items are rejected with the same code. If the caller is not the engine's worker, the items reach
 * the worker in portions: up to 1,024 at once, then the next 1,024, and so on. A callback may run
 * before the call has returned. If the call as a whole is rejected, it does nothing.
 *
 * The callback of an item may rely on its own `ret_handles[i]` and `ret_errors[i]`, because the
 * call writes them before the callback can run, and never afterwards. The elements of later items
 * may not be written yet.
 *
 * Units: items, 1 to TW_BATCH_MAX; times as in tw_schedule, counted from one reading of the clock.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: for each item as tw_schedule. If the thread must pause for the worker (see
 *   tw_schedule), it does so only between portions of 1,024 items.
 * Lifetime: `items` during the call only; kinds and arguments as in tw_schedule. A stop of the
 *   engine waits for this call, but only for the present portion of up to 1,024 items.
 * Returns: how many were scheduled, 0 or more; -EINVAL (engine or `items` NULL, no item); -ERANGE
 *   (more than TW_BATCH_MAX); -ECHILD. With one of these codes nothing is scheduled or written.
 *   Otherwise the call writes the results of each item, if the arrays are not NULL.
 *   `ret_handles[i]` is the item's handle, or a handle of zeros. `ret_errors[i]` is 0 or the code
 *   that tw_schedule would have returned: -EINVAL, -E2BIG (kind); -ERANGE (time INT64_MIN); -EAGAIN
 *   (limit); -ENOMEM; -ESHUTDOWN; -EPERM (a kind that only the owner may use); the code that
 *   creating the worker's thread returned.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_schedule_many(struct tw_engine *engine,
						const struct tw_item *items, size_t count,
						struct tw_handle *ret_handles, int *ret_errors);

/**
 * Schedules a timeout for each item of an array, at a point of the engine's time; does not read the
 * clock. Otherwise the same as tw_schedule_many: an item's handle and code are written before its
 * callback can run.
 *
 * Units: items, 1 to TW_BATCH_MAX; times as in tw_schedule_at.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule_many.
 * Lifetime: as tw_schedule_many.
 * Returns: as tw_schedule_many.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_schedule_many_at(struct tw_engine *engine,
						   const struct tw_item *items, size_t count,
						   struct tw_handle *ret_handles, int *ret_errors);

/**
 * Cancels the timeouts of an array of handles, in the order of the array, and reports the outcome
 * of each.
 *
 * The timeouts may be of any engines, and in any state. If a handle is in the array twice, the call
 * cancels the timeout at the first place. The outcome at the second place is TW_CANCEL_CANCELLED,
 * or TW_CANCEL_STALE if the memory is already used again. Finalisers run in the order of the array,
 * each before the call continues with the next handle.
 *
 * Units: handles, 1 to TW_BATCH_MAX.
 * Threads: any.
 * In callback: yes, as tw_cancel.
 * Progress: for each handle as tw_cancel.
 * Lifetime: as tw_cancel; `handles` during the call only, and a finaliser must not change it.
 * Returns: how many this call cancelled (TW_CANCEL_DONE, TW_CANCEL_STOPPED), 0 or more; -EINVAL
 *   (`handles` NULL, no handle); -ERANGE (more than TW_BATCH_MAX); -ECHILD. With one of these codes
 *   nothing is cancelled or written. Otherwise, if `ret_outcomes` is not NULL, `ret_outcomes[i]` is
 *   the result that tw_cancel would have returned for this handle: an enum tw_cancel_outcome,
 *   -EINVAL (a handle of zeros), -EPERM, -ECHILD (the timeout stayed with the parent when a child
 *   took the library over).
 * Since: 0.1.0.
 */
TW_API int tw_cancel_many(const struct tw_handle *handles, size_t count, int *ret_outcomes);

TW_END_DECLS

#endif
