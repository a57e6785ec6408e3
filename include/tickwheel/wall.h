/* SPDX-License-Identifier: MIT */
/**
 * @file wall.h
 * Timeouts at a time of the wall clock, for deadlines that people set: an appointment, the end of a
 * day, the expiry date of a certificate.
 *
 * All other deadlines count by the engine's clock, which no step of the wall clock can touch. A
 * timeout of this header is the opposite: its deadline is a date. If the wall clock is set to
 * another time, the timeout still runs at its date. docs/clocks.md has an example.
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
 * It never runs before the wall clock shows the date: the worker compares the two just before the
 * run. If the wall clock is set forward beyond the date, the timeout runs at once. If it is set
 * back, the timeout waits for the date once more. A run that has begun is not repeated.
 *
 * The first wall timeout of an engine makes a timer descriptor of the kernel, which becomes readable
 * when the wall clock is set, and a thread that waits for it and wakes the worker or the loop. Both
 * stay until tw_engine_destroy. An engine with a virtual clock needs neither: tw_clock_set_wall
 * moves its wall clock.
 *
 * tw_cancel, tw_cancel_wait, tw_timeout_state and tw_timeout_get work on the handle as on any other.
 * tw_timeout_get reports the deadline in the engine's time, by the present difference of the two
 * clocks. A cancel while the timeout waits for its executor returns TW_CANCEL_STOPPED, and its
 * callback does not run. tw_reschedule and tw_reschedule_at give the timeout a deadline by the
 * engine's clock; from then on the wall clock no longer matters to it.
 *
 * Units: `wall_ns`: nanoseconds since 1970 of CLOCK_REALTIME. A date in the past, also one before
 *   1970: in the worker's next turn. TW_NEVER: never expires by itself.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free; the first one of an engine makes a descriptor and a thread. If the worker
 *   sleeps, each call wakes it.
 * Lifetime: as tw_schedule. The timeout takes twice the memory, and 8 to 16 bytes more.
 * Returns: as tw_schedule, and -EINVAL also for an owner-only kind; -ENOMEM also if the descriptor
 *   or the thread cannot be made; -EOPNOTSUPP (the system has no such descriptor). After each of
 *   these, the next call tries again.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_wall(struct tw_engine *engine, int64_t wall_ns, const struct tw_kind *kind,
			    void *arg, struct tw_handle *ret_handle);

/**
 * Steps the wall clock that belongs to a virtual clock, forward or back, for tests. The engine's
 * time does not change. tw_clock_set moves both by the same distance. Until the first call both show
 * the same time.
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
