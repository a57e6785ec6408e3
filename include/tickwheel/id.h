/* SPDX-License-Identifier: MIT */
/**
 * @file id.h
 * Timeouts named by a single number of 64 bits, for programs that cannot store a handle of 16
 * bytes.
 *
 * An id fits where a handle does not: in the `long` of a virtual machine, in the timer id of a
 * framework, in a field of a protocol. An id is as safe as a handle: after the timeout's end it
 * names nothing, and it never names another timeout.
 *
 * An id has 32 bits for the number of the timeout's block of memory, and 32 bits for how many
 * timeouts this block has served. When a block has served 2^32 timeouts, the next schedule by id
 * that gets this block sets it aside for ever. So 64 bytes are lost for every 2^32 timeouts. The
 * number of a block allows 2^32 timeouts at once (256 GiB). If there are more, every schedule
 * returns -ENOMEM, as it does if there is no memory.
 */
#ifndef TICKWHEEL_ID_H
#define TICKWHEEL_ID_H

#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;
struct tw_period;

/** The id of a timeout, never 0. Two timeouts of a process never have the same id. */
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
 * Lifetime: as tw_schedule. The call writes `*ret_id` before the callback can run.
 * Returns: as tw_schedule; -EINVAL also for NULL as `ret_id`.
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
 * Returns: as tw_schedule_at; -EINVAL also for NULL as `ret_id`.
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
 * Lifetime: as tw_schedule_periodic. The call writes `*ret_id` before the first run can begin.
 * Returns: as tw_schedule_periodic; -EINVAL also for NULL as `ret_id`.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_id_schedule_periodic(struct tw_engine *engine,
						       const struct tw_period *period,
						       const struct tw_kind *kind, void *arg,
						       tw_id *ret_id);

/**
 * Cancels the timeout that an id names. Otherwise the same as tw_cancel.
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
 * Reschedules the timeout that an id names. Otherwise the same as tw_reschedule.
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
 * Reschedules the timeout that an id names, to a time. Otherwise the same as tw_reschedule_at.
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
 * Returns the state of the timeout that an id names. Otherwise the same as tw_timeout_state.
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
 * Returns the handle of the timeout that an id names. All functions that take a handle can then be
 * called.
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
 * Returns: the id, also if the timeout has ended; TW_ID_NONE for a handle of zeros, and for a
 *   timeout that was scheduled by handle in a block that had already served 2^32 timeouts.
 * Since: 0.1.0.
 */
TW_API tw_id tw_id_of(struct tw_handle handle);

TW_END_DECLS

#endif
