/* SPDX-License-Identifier: MIT */
/**
 * @file batch.h
 * Batches: many timeouts scheduled, or cancelled, by one call.
 *
 * A batch does to each item what tw_schedule, tw_schedule_at or tw_cancel would do, in the order of the
 * array, and says of each what came of it. What it saves is what single calls do once each: the clock is
 * read once, the worker hears of a thousand timeouts at a time, and memory that the next items need is
 * asked for while this one is done. docs/batches.md has figures.
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
	/** As in tw_schedule; items may share one. */
	const struct tw_kind *kind;
	/** Passed on, not looked at. */
	void *arg;
};

/**
 * Schedules a timeout for each item of an array, its delay counted from the begin of the call.
 *
 * Items stand for themselves: one that is refused has no effect on those after it (where the engine is
 * over or cannot be started, all after it are refused by the same code). Where the caller is not the
 * worker of the engine, up to 1,024 items become visible to the worker at once, and so on for the next
 * ones; a callback may run before the call has returned. A call that is refused as a whole does nothing.
 *
 * The callback of an item may rely on `ret_handles[i]` and `ret_errors[i]` of this item: they are written
 * before it can run, and never after. Those of later items may not be written yet.
 *
 * Units: items, 1 to TW_BATCH_MAX; times as in tw_schedule, counted from one reading of the clock.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: for each item as tw_schedule; a thread that gives way does so between 1,024 items.
 * Lifetime: `items` during the call only; kinds and arguments as in tw_schedule. While it works the call is
 *   one of those that a stop of the engine waits for, 1,024 items at most at a time.
 * Returns: how many were scheduled, 0 or more; -EINVAL (engine or `items` NULL, no item); -ERANGE (more
 *   than TW_BATCH_MAX); -ECHILD. With one of these codes nothing is scheduled or written. Else, of each
 *   item, where the arrays are given, `ret_handles[i]` is its handle, or one of zeros, and `ret_errors[i]`
 *   is 0 or the code that tw_schedule would have returned: -EINVAL, -E2BIG (kind); -ERANGE (time
 *   INT64_MIN); -EAGAIN (limit); -ENOMEM; -ESHUTDOWN; -EPERM (a kind that is only the owner's); what making
 *   the worker's thread returned.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_many(struct tw_engine *engine, const struct tw_item *items, size_t count,
			    struct tw_handle *ret_handles, int *ret_errors);

/**
 * As tw_schedule_many, each item for a point of the engine's time; does not read the clock. An item's
 * handle and code are written before its callback can run, as there.
 *
 * Units: items, 1 to TW_BATCH_MAX; times as in tw_schedule_at.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule_many.
 * Lifetime: as tw_schedule_many.
 * Returns: as tw_schedule_many.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_many_at(struct tw_engine *engine, const struct tw_item *items, size_t count,
			       struct tw_handle *ret_handles, int *ret_errors);

/**
 * Cancels the timeouts of an array of handles, in its order, and tells of each what it found.
 *
 * The handles may be of any engines, and in any state. One that stands there twice is cancelled by the
 * first, and the second finds it so (TW_CANCEL_CANCELLED, or TW_CANCEL_STALE where its memory serves again).
 * Finalisers run in the same order, each before the next handle is looked at.
 *
 * Units: handles, 1 to TW_BATCH_MAX.
 * Threads: any.
 * In callback: yes, as tw_cancel.
 * Progress: for each handle as tw_cancel.
 * Lifetime: as tw_cancel; `handles` during the call only, and a finaliser must not change it.
 * Returns: how many this call cancelled (TW_CANCEL_DONE, TW_CANCEL_STOPPED), 0 or more; -EINVAL (`handles`
 *   NULL, no handle); -ERANGE (more than TW_BATCH_MAX); -ECHILD. With one of these codes nothing is
 *   cancelled or written. Else, of each handle, where `ret_outcomes` is given, `ret_outcomes[i]` is what
 *   tw_cancel would have returned: an enum tw_cancel_outcome, -EINVAL (a handle of zeros), -EPERM, -ECHILD
 *   (it stayed with the parent of a child that has taken the library over).
 * Since: 0.1.0.
 */
TW_API int tw_cancel_many(const struct tw_handle *handles, size_t count, int *ret_outcomes);

TW_END_DECLS

#endif
