/* SPDX-License-Identifier: MIT */
/**
 * @file wall.h
 * Timeouts at a time of the wall clock, for deadlines that people set: an appointment, the end of a
 * day, the expiry date of a certificate.
 *
 * All other deadlines count by the engine's clock, which a step of the wall clock does not affect.
 * The deadline of a timeout of this header is a date instead. If the wall clock is set to another
 * time, the timeout still runs at its date. docs/clocks.md has an example.
 *
 *     tw_schedule_wall(engine, INT64_C(1767225600) * TW_S(1), &kind, arg, NULL);
 */
#ifndef TICKWHEEL_WALL_H
#define TICKWHEEL_WALL_H

#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_clock;
struct tw_engine;

/**
 * Schedules a timeout at a date.
 *
 * The timeout never runs before the wall clock shows the date: the worker compares the two just
 * before the run. If the wall clock is set forward beyond the date, the timeout runs at once. If
 * the wall clock is set back, the timeout waits until the clock shows the date again. A run that
 * has begun is not repeated.
 *
 * The first timeout with a date on an engine creates two things, which stay until
 * tw_engine_destroy. One is a timer descriptor of the kernel, which becomes readable when the wall
 * clock is set. The other is a thread that waits for the descriptor, and wakes the worker or the
 * loop. An engine with a virtual clock needs neither: tw_clock_set_wall moves its wall clock.
 *
 * tw_cancel, tw_cancel_wait, tw_timeout_state and tw_timeout_get work on the handle as on any
 * other. tw_timeout_get reports the deadline in the engine's time, computed with the present
 * difference of the two clocks. If the timeout is cancelled while it waits in an executor, the
 * cancel returns TW_CANCEL_STOPPED, and the callback does not run. tw_reschedule and
 * tw_reschedule_at give the timeout a deadline by the engine's clock; from then on the wall clock
 * has no effect on it.
 *
 * Units: `wall_ns`: nanoseconds since 1970 of CLOCK_REALTIME. With a date in the past, also one
 *   before 1970, the timeout runs in the worker's next turn. TW_NEVER: it never expires by itself.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free; the first call for an engine creates the descriptor and the thread. If the
 *   worker sleeps, each call wakes it.
 * Lifetime: as tw_schedule. The timeout takes twice the memory of another one, and 8 to 16 bytes
 *   more.
 * Returns: as tw_schedule; -EINVAL also for an owner-only kind; -ENOMEM also if the descriptor or
 *   the thread cannot be created; -EOPNOTSUPP (the system has no such descriptor). If the
 *   descriptor or the thread could not be created, the next call tries again.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_wall(struct tw_engine *engine, int64_t wall_ns, const struct tw_kind *kind,
			    void *arg, struct tw_handle *ret_handle);

/**
 * Sets the wall clock that belongs to a virtual clock, forward or back, for tests. The engine's
 * time does not change. tw_clock_set moves both clocks by the same distance. Until the first call
 * of tw_clock_set_wall both clocks show the same time.
 *
 * Units: nanoseconds since 1970, 0 or more.
 * Threads: any, one at a time, and not at the same time as tw_clock_set.
 * In callback: yes.
 * Progress: wait-free, one system call if the worker sleeps.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, a clock of the system, a negative time, INT64_MAX).
 * Since: 0.1.0.
 */
TW_API int tw_clock_set_wall(struct tw_clock *clock, int64_t wall_ns);

TW_END_DECLS

#endif
