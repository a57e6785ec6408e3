/* SPDX-License-Identifier: MIT */
/**
 * @file scaled.h
 * Scaled timeouts: delays that shrink while a server is under pressure. docs/scaled.md shows how
 * they are used.
 *
 * A scaled kind (struct tw_scaled) belongs to an engine, and has a least delay and a most delay.
 * The engine has one factor from 0 to 1, which is 1 at first. Each timeout of a scaled kind is due
 * at `start + least + factor × (most - least)`. The start is the time at which the timeout was
 * scheduled or last touched (tw_scaled_touch). The factor also applies to pending timeouts. If it
 * is lowered, they are due earlier. If it is raised again, those that have not expired are due
 * later. No timeout expires before `start + least`.
 *
 * A timeout of a scaled kind is like any other one. Its handle works with tw_cancel,
 * tw_cancel_wait, tw_timeout_state, tw_timeout_get and the batch calls. Two things differ. First,
 * tw_timeout_get, tw_run_get and the remaining time of a hand-back report the deadline at factor 1,
 * which is start + most; tw_reschedule sets this deadline, too. Second, tw_timeout_get reports the
 * kind's engine only while the timeout is pending or runs. Once the timeout has ended, the call may
 * report the address of an internal engine.
 */
#ifndef TICKWHEEL_SCALED_H
#define TICKWHEEL_SCALED_H

#include <stdint.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

/** A kind of timeouts whose delays are scaled, made by tw_scaled_create. */
struct tw_scaled;

/**
 * Creates a scaled kind on an engine. The call starts the engine if it is not started yet.
 *
 * The kind uses the engine's tick, clock, dispatch hook, policy for rejections, threshold of slow
 * runs, and limit of pending timeouts. The limit applies to each scaled kind separately. The bound
 * on lateness (`late_ns`) and the measurements (`measure`) do not apply to the timeouts of a scaled
 * kind. Each scaled kind has two internal timeouts on the engine. These count as pending there, and
 * the engine's hooks may receive them (tw_scaled_owns), also in the hand-back when the engine is
 * stopped.
 *
 * Units: nanoseconds; 0 or more, below TW_NEVER. The least delay may be equal to the most. A delay
 *   of more than 146 years (INT64_MAX / 2) counts as 146 years.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates about as much as tw_engine_create.
 * Lifetime: until tw_scaled_destroy. tw_engine_destroy returns -EBUSY until then.
 * Returns: 0 and `*ret_scaled`; -EINVAL (NULL, or the least delay is above the most); -ERANGE (a
 *   negative delay, or TW_NEVER); -ENOMEM; -EAGAIN (the engine's limit has no place for the two
 *   timeouts); -ESHUTDOWN; -ECHILD; the codes that tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_scaled_create(struct tw_engine *engine, int64_t least_ns, int64_t most_ns,
				       struct tw_scaled **ret_scaled);

/**
 * Schedules a timeout of a scaled kind, whose delay begins now. Otherwise the same as tw_schedule.
 *
 * The callback runs at the first tick boundary of the engine after the deadline. The deadline
 * changes with the factor until the callback runs. The slack of `kind` is added to the deadline.
 * Timeouts of one scaled kind run in the order of their deadlines.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule, but neither -ERANGE nor -EPERM; -EINVAL also for NULL as `scaled` and
 *   for a kind that only the owner may use; -ESHUTDOWN also if the scaled kind is stopped; -EAGAIN
 *   for the limit of this kind.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_scaled_schedule(struct tw_scaled *scaled,
						  const struct tw_kind *kind, void *arg,
						  struct tw_handle *ret_handle);

/**
 * Restarts a pending timeout: its delay begins again now. Meant for idle timeouts, when a
 * connection is used.
 *
 * The call is one compare-and-swap, and wakes no thread. So it is cheap enough to be made for each
 * request.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes. For the callback's own timeout it returns TW_RESCHEDULE_RUNNING: schedule a new
 *   one instead.
 * Progress: as tw_reschedule.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_reschedule_outcome; -EINVAL (NULL, a handle of zeros); -ESTALE: the timeout
 *   had ended before, and its memory now serves another timeout, or it belongs to another scaled
 *   kind or engine; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_touch(struct tw_scaled *scaled, struct tw_handle handle);

/**
 * Reads the deadline of a timeout by the present factor.
 *
 * Units: nanoseconds of the engine's clock; TW_NEVER if the timeout was rescheduled to TW_NEVER.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_timeout_get.
 * Lifetime: as tw_cancel.
 * Returns: 0 and `*ret_deadline_ns`; -EINVAL (NULL, a handle of zeros); -ESTALE (as
 *   tw_scaled_touch); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_deadline(struct tw_scaled *scaled, struct tw_handle handle,
			      int64_t *ret_deadline_ns);

/**
 * Sets the factor of an engine. It applies to all scaled kinds of the engine, with all their
 * pending timeouts.
 *
 * A lower factor may make many timeouts overdue at once. They run in the order of deadlines, in
 * portions: after at most 0.2 ms, or 2,048 callbacks, the engine's other timeouts run. If the
 * factor is raised again meanwhile, the remaining timeouts are due later again. The call itself
 * visits no timeout.
 *
 * Units: `factor` from 0 (each timeout has its least delay) to 1 (its most delay).
 * Threads: any. If two threads call it at once, the later one counts.
 * In callback: yes.
 * Progress: lock-free, with one step for each scaled kind of the engine; wakes the worker.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, not a number); -ERANGE (below 0, above 1); -ECHILD. After an error the
 *   factor is as before.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_factor_set(struct tw_engine *engine, double factor);

/**
 * Reads the factor of an engine.
 *
 * Units: as tw_scaled_factor_set.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 and `*ret_factor`; -EINVAL (NULL); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_factor_get(struct tw_engine *engine, double *ret_factor);

/**
 * Returns how many timeouts of a scaled kind are pending, as tw_engine_pending does for an engine.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_scaled_pending(struct tw_scaled *scaled);

/**
 * Stops a scaled kind, as tw_engine_stop stops an engine: hands back the timeouts that have not
 * expired, and waits for running callbacks. The engine continues.
 *
 * A stop of the engine also stops its scaled kinds. The hook of that stop then receives their
 * timeouts.
 *
 * Units: as tw_engine_stop.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK) in a callback of this kind. It must not be called on the engine's
 *   worker while a callback of this kind in an executor waits for that worker: both would wait for
 *   ever.
 * Progress: as tw_engine_stop.
 * Lifetime: as tw_engine_stop.
 * Returns: 0; -ETIMEDOUT: stopping continues, call again; -EDEADLK; -EINVAL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_stop(struct tw_scaled *scaled, tw_unexpired_hook *on_unexpired, void *context,
			  int64_t timeout_ns);

/**
 * Frees a scaled kind that is stopped. NULL is accepted.
 *
 * Units: none.
 * Threads: any, once; no thread may use the kind any more. Handles stay safe.
 * In callback: yes, but not in a callback of this kind (-EDEADLK).
 * Progress: waits for a turn of the kind that is under way, and frees memory.
 * Lifetime: the scaled kind exists until the call returns 0. The engine must still exist.
 * Returns: 0; -EBUSY: not stopped; -EDEADLK. In a forked child it frees the child's copy and
 *   returns 0.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_destroy(struct tw_scaled *scaled);

/**
 * Returns whether a timeout that a hook of the engine receives (hand-back, dispatch, late, drop) is
 * one of the two internal timeouts of a scaled kind. If so, its argument belongs to the library.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0.
 * Since: 0.1.0.
 */
TW_API int tw_scaled_owns(const struct tw_kind *kind);

TW_END_DECLS

#endif
