/* SPDX-License-Identifier: MIT */
/**
 * @file periodic.h
 * Periodic timeouts: one handle for a chain of runs.
 *
 * A chain is pending until it is cancelled, handed back by stop, or has completed all its runs. Its
 * runs never overlap, not even in executors, because the wait for a run begins only when the run
 * before has ended. Nothing is allocated between runs. tw_cancel, tw_cancel_wait, tw_reschedule,
 * tw_timeout_state and tw_timeout_get work on the chain's handle as on any other; docs/periodic.md
 * says what their results mean for a chain.
 */
#ifndef TICKWHEEL_PERIODIC_H
#define TICKWHEEL_PERIODIC_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;

/** The time from which a period is counted. */
enum tw_period_mode {
	/** The period is counted from the time for which the run before was scheduled. So the runs
	 * are on a grid, which does not shift with lateness, jitter or the callback's duration. */
	TW_PERIOD_FIXED_RATE = 0,
	/** The period is counted from the end of the run before: it is the pause between two
	 * runs. */
	TW_PERIOD_FIXED_DELAY = 1,
};

/**
 * What happens to missed points of the grid of TW_PERIOD_FIXED_RATE. A point is missed if its tick
 * is already over when the previous run ends. That happens if the worker was delayed, or if the
 * callback took longer than the period.
 */
enum tw_period_missed {
	/** Each missed point still gets its run, one run after the other, until the chain has
	 * caught up. */
	TW_MISSED_BURST = 0,
	/** Missed points get no run: the next run is at the next point of the same grid. */
	TW_MISSED_SKIP = 1,
	/** The grid shifts: the next run is one period after the end of the late run. */
	TW_MISSED_DELAY = 2,
};

/**
 * When a periodic timeout runs. TW_PERIOD_RATE and TW_PERIOD_DELAY initialise this struct; change
 * what you need.
 */
struct tw_period {
	/** sizeof(struct tw_period). */
	size_t size;
	/** The time from the call to the first run, without jitter. Nanoseconds; a negative time
	 * counts as 0. */
	int64_t first_ns;
	/** The period in nanoseconds, at least 1. */
	int64_t period_ns;
	/** An enum tw_period_mode. */
	uint32_t mode;
	/** An enum tw_period_missed; it has no effect with TW_PERIOD_FIXED_DELAY. */
	uint32_t missed;
	/**
	 * Jitter: each run, including the first one, is delayed by a random part of its interval.
	 * This field is the largest such part, in parts per million, at most 1,000,000. The
	 * interval of the first run counts as one period. The delay is uniformly distributed, and
	 * chosen again for each run. It does not shift later runs, because they are counted from
	 * the time without jitter. 0: no jitter.
	 */
	uint32_t jitter_ppm;
	/** Must be 0. */
	uint32_t reserved;
	/**
	 * The seed of the jitter: the same seed gives the same delays. 0: a different seed for each
	 * chain.
	 */
	uint64_t seed;
	/** The number of runs after which the chain ends; 0: only a cancel or a stop ends it. */
	uint64_t runs;
};

/** Initialises a struct tw_period: the first run after one period, then one run each period. */
/* clang-format off */
#define TW_PERIOD_RATE(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_RATE)
/** Like TW_PERIOD_RATE, but each period is counted from the end of the run before. */
#define TW_PERIOD_DELAY(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_DELAY)
/** Initialises a struct tw_period with this enum tw_period_mode. */
#define TW_PERIOD_OF(period_ns, mode) \
	{ sizeof(struct tw_period), (period_ns), (period_ns), (mode), TW_MISSED_BURST, 0, 0, 0, 0 }
/* clang-format on */

/**
 * Schedules a periodic timeout.
 *
 * Each run begins like that of a timeout of tw_schedule: at the first tick boundary after its
 * deadline, never early. The callback receives the chain's handle each time. The finaliser of
 * `kind` runs once, when the chain has ended: after the last run, or when the chain is handed back.
 * After the last run it gets TW_END_EXPIRED if the chain has completed all its runs, and
 * TW_END_CANCELLED if the chain was cancelled. A chain counts as one pending timeout from this call
 * to its end, also while it runs. If the time of the next run does not fit 2^63 ns, there is no
 * next run: the chain is pending until it is cancelled, rescheduled or handed back.
 *
 * The callback may rely on `*ret_handle`, because the call writes it before the first run can
 * begin, and never afterwards. On failure it is not changed.
 *
 * Units: see the struct. Slack of the kind applies to each run.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: `period` during the call; `kind` until the chain has ended; otherwise as tw_schedule.
 * Returns: 0 and `*ret_handle` (may be NULL); -EINVAL (engine; `period`: NULL, its size, a period
 *   below 1, an unknown mode or policy, jitter above 1,000,000, `reserved`; `kind` as in
 *   tw_schedule, or one that only the owner may use); -E2BIG (kind, or `period` of a newer header
 *   with fields set, or a size over 4,096); -ERANGE (first or period INT64_MIN); -EAGAIN (limit);
 *   -ENOMEM; -ESHUTDOWN; -ECHILD; from the first call also the codes that tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_schedule_periodic(struct tw_engine *engine,
						    const struct tw_period *period,
						    const struct tw_kind *kind, void *arg,
						    struct tw_handle *ret_handle);

/**
 * Sets the next interval of a periodic timeout, from inside one of its runs. The interval is
 * `delay_ns`, once, instead of the period.
 *
 * With TW_PERIOD_FIXED_RATE the interval is counted from the time for which this run was scheduled.
 * With TW_PERIOD_FIXED_DELAY it is counted from the end of this run. The policy for missed runs
 * applies to this interval, too. If a run makes several calls, the last one counts. If the callback
 * makes this call in each run, the intervals may differ, for example grow. After a run without the
 * call, the period applies again. If the chain ends with this run, the call has no effect.
 *
 * Units: nanoseconds; negative is 0; TW_NEVER: no further run by itself, but the chain stays
 *   pending.
 * Threads: the one that runs the callback.
 * In callback: yes, and only there, with the handle of the callback's own timeout.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN); -EPERM: not inside a run of that
 *   timeout, or it is not periodic; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_period_next(struct tw_handle self, int64_t delay_ns);

/**
 * Changes the period of a periodic timeout for good, from inside one of its runs. The interval
 * after this run is the first one with the new period.
 *
 * Other threads cannot change the period, because only the thread that runs the callback may write
 * it. They can cancel the timeout and schedule another one. If a run also calls tw_period_next, the
 * last of these calls sets the interval after this run.
 *
 * Units: nanoseconds, 1 or more. TW_NEVER: no further run by itself, but the chain stays pending.
 * Threads: the one that runs the callback.
 * In callback: yes, and only there, with the handle of the callback's own timeout.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (a handle of zeros, a period below 1); -ERANGE (INT64_MIN); -EPERM: not
 *   inside a run of that timeout, or it is not periodic; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_period_set(struct tw_handle self, int64_t period_ns);

TW_END_DECLS

#endif
