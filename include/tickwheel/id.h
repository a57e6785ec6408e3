/* SPDX-License-Identifier: MIT */
/**
 * @file id.h
 * Timeouts named by one word of 64 bits, for programs that have no room for a handle.
 *
 * A virtual machine's `long`, the TimerId of a framework, a field of a protocol: an id is a number
 * that fits there. It is as safe as a handle: after the timeout's end it names nothing, for ever,
 * and never another timeout.
 *
 * An id has 32 bits for the timeout's memory and 32 for the number of times that this memory has
 * served. If the second number is used up, the schedule by id sets the memory aside for good: 64
 * bytes after 2^32 timeouts. The first number allows 2^32 timeouts at once (256 GiB); beyond that
 * every schedule returns -ENOMEM, as it does without memory.
 */
#ifndef TICKWHEEL_ID_H
#define TICKWHEEL_ID_H

#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;
struct tw_period;

/** Names a timeout. Not 0. Two timeouts of a process never have the same id. */
typedef uint64_t tw_id;

/** The id of no timeout. */
#define TW_ID_NONE UINT64_C(0)

/**
 * Schedules a timeout after a delay, and returns its id. Otherwise the same as tw_schedule.
 *
 * Units: as tw_schedule.
 * Threads: as tw_schedule.
 * In callback: yes.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule. `*ret_id` is written before the callback can run.
 * Returns: as tw_schedule, of which -EINVAL also for NULL as `ret_id`.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_id_schedule(struct tw_engine *engine, int64_t delay_ns,
					      const struct tw_kind *kind, void *arg, tw_id *ret_id);

/**
 * Schedules a timeout at a time, and returns its id. Otherwise the same as tw_schedule_at.
 *
 * Units: as tw_schedule_at.
 * Threads: as tw_schedule_at.
 * In callback: yes.
 * Progress: as tw_schedule_at.
 * Lifetime: as tw_id_schedule.
 * Returns: as tw_schedule_at, of which -EINVAL also for NULL as `ret_id`.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_id_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
						 const struct tw_kind *kind, void *arg,
						 tw_id *ret_id);

/**
 * Schedules a periodic timeout, and returns its id. Otherwise the same as tw_schedule_periodic.
 *
 * Units: as tw_schedule_periodic.
 * Threads: as tw_schedule_periodic.
 * In callback: yes.
 * Progress: as tw_schedule_periodic.
 * Lifetime: as tw_schedule_periodic. `*ret_id` is written before the first run can begin.
 * Returns: as tw_schedule_periodic, of which -EINVAL also for NULL as `ret_id`.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_id_schedule_periodic(struct tw_engine *engine,
						       const struct tw_period *period,
						       const struct tw_kind *kind, void *arg,
						       tw_id *ret_id);

/**
 * The same as tw_cancel, by id.
 *
 * Units: none.
 * Threads: as tw_cancel.
 * In callback: yes.
 * Progress: as tw_cancel.
 * Lifetime: as tw_cancel.
 * Returns: as tw_cancel; -EINVAL for TW_ID_NONE and for numbers that cannot be ids.
 * Since: 0.1.0.
 */
TW_API int tw_id_cancel(tw_id id);

/**
 * The same as tw_reschedule, by id.
 *
 * Units: as tw_reschedule.
 * Threads: as tw_reschedule.
 * In callback: yes.
 * Progress: as tw_reschedule.
 * Lifetime: as tw_reschedule.
 * Returns: as tw_reschedule; -EINVAL as tw_id_cancel.
 * Since: 0.1.0.
 */
TW_API int tw_id_reschedule(tw_id id, int64_t delay_ns);

/**
 * The same as tw_reschedule_at, by id.
 *
 * Units: as tw_reschedule_at.
 * Threads: as tw_reschedule_at.
 * In callback: yes.
 * Progress: as tw_reschedule_at.
 * Lifetime: as tw_reschedule_at.
 * Returns: as tw_reschedule_at; -EINVAL as tw_id_cancel.
 * Since: 0.1.0.
 */
TW_API int tw_id_reschedule_at(tw_id id, int64_t deadline_ns);

/**
 * The same as tw_timeout_state, by id.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: as tw_cancel.
 * Returns: as tw_timeout_state; -EINVAL as tw_id_cancel.
 * Since: 0.1.0.
 */
TW_API int tw_id_state(tw_id id);

/**
 * Returns the handle of the timeout that an id names. With it every other function can be called.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: as that of any handle: it may be kept for ever.
 * Returns: the handle, also if the timeout has ended; TW_HANDLE_NONE for TW_ID_NONE and for numbers
 *   that cannot be ids.
 * Since: 0.1.0.
 */
TW_API struct tw_handle tw_id_handle(tw_id id);

/**
 * Returns the id of a timeout, such as the one of a callback's own timeout.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the id, also if the timeout has ended; TW_ID_NONE for a handle of zeros. Also TW_ID_NONE
 *   if the timeout was scheduled by handle, in memory that has served 2^32 times.
 * Since: 0.1.0.
 */
TW_API tw_id tw_id_of(struct tw_handle handle);

TW_END_DECLS

#endif
