/* SPDX-License-Identifier: MIT */
/**
 * @file periodic.h
 * Periodic timeouts: one handle for a chain of runs.
 *
 * A chain is pending until it is cancelled, handed back by stop, or has completed all its runs. Its
 * runs never overlap, not in executors either, because the next one begins to wait when the last
 * one has ended. Nothing is allocated between runs. tw_cancel, tw_cancel_wait, tw_reschedule,
 * tw_timeout_state and tw_timeout_get work on its handle as on any other; docs/periodic.md says
 * what they mean here.
 */
#ifndef TICKWHEEL_PERIODIC_H
#define TICKWHEEL_PERIODIC_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;

/** From which time a period is counted. */
enum tw_period_mode {
	/** The period is counted from the time for which the run was scheduled. The runs are on a
	 * grid, which does not move with lateness, jitter or the callback's duration. */
	TW_PERIOD_FIXED_RATE = 0,
	/** The period is counted from the end of the run: this much time lies between two runs. */
	TW_PERIOD_FIXED_DELAY = 1,
};

/**
 * What happens to missed points of the grid, at a fixed rate. A point is missed if its tick is over
 * when the run before it ends, because the worker was held up, or the callback took longer than the
 * period.
 */
enum tw_period_missed {
	/** Each is made up for, one run after the other, until the chain has caught up. */
	TW_MISSED_BURST = 0,
	/** They are left out: the next run is at the next point of the same grid. */
	TW_MISSED_SKIP = 1,
	/** The grid moves: the next run is a period after the end of this one. */
	TW_MISSED_DELAY = 2,
};

/**
 * When a periodic timeout runs. TW_PERIOD_RATE and TW_PERIOD_DELAY make one; change what you need.
 */
struct tw_period {
	/** sizeof(struct tw_period). */
	size_t size;
	/** How long after the call the first run is scheduled. Nanoseconds; negative is 0. */
	int64_t first_ns;
	/** At least 1. */
	int64_t period_ns;
	/** An enum tw_period_mode. */
	uint32_t mode;
	/** An enum tw_period_missed; of no effect with a fixed delay. */
	uint32_t missed;
	/**
	 * Jitter: each run, the first one too, is due later than it is scheduled, by up to this
	 * part of its interval. In parts per million, at most 1,000,000; the interval of the first
	 * run is the period. The jitter is evenly spread and new each time. Later runs are counted
	 * from the scheduled time. 0: none.
	 */
	uint32_t jitter_ppm;
	/** Must be 0. */
	uint32_t reserved;
	/**
	 * For the jitter: the same seed gives the same times. 0: a different seed for each chain.
	 */
	uint64_t seed;
	/** How many runs the chain has before it ends; 0: it ends only by cancel or stop. */
	uint64_t runs;
};

/** Initialises a struct tw_period: the first run after one period, then one run each period. */
/* clang-format off */
#define TW_PERIOD_RATE(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_RATE)
/** The same, with the period counted from the end of a run. */
#define TW_PERIOD_DELAY(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_DELAY)
/** Either of the two, by `mode`. */
#define TW_PERIOD_OF(period_ns, mode) \
	{ sizeof(struct tw_period), (period_ns), (period_ns), (mode), TW_MISSED_BURST, 0, 0, 0, 0 }
/* clang-format on */

/**
 * Schedules a periodic timeout.
 *
 * Each run is like a timeout of tw_schedule: at the first tick boundary after its deadline, never
 * early. The callback receives the chain's handle each time. The finaliser of `kind` runs once,
 * when the chain has ended: after the last run, or when the chain is handed back. After the last
 * run it gets TW_END_EXPIRED if the chain has completed all its runs, and TW_END_CANCELLED if the
 * chain was cancelled. A chain counts as one pending timeout from this call to its end, also while
 * it runs. A time that does not fit 2^63 ns never comes. Then the chain is pending until it is
 * cancelled, rescheduled or handed back.
 *
 * The callback may rely on `*ret_handle`, because the call writes it before the first run can
 * begin, and never afterwards. On failure it is not changed.
 *
 * Units: see the struct. Slack of the kind applies to each run.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: `period` during the call; everything else as tw_schedule, `kind` until the chain has
 *   ended.
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
 * Sets the next interval of a periodic timeout, in one of its runs: `delay_ns`, once, instead of
 * the period.
 *
 * At a fixed rate the interval is counted from the time for which this run was scheduled, with a
 * fixed delay from the run's end. The policy for missed runs applies to it, too. If it is called
 * several times in a run, the last call counts. A chain that calls it in each run can have
 * intervals that grow; without the call the period applies again. If the chain ends with this run,
 * the call has no effect.
 *
 * Units: nanoseconds; negative is 0; TW_NEVER: no further run by itself, but the chain stays
 *   pending.
 * Threads: the one that runs the callback.
 * In callback: only there, for its own handle.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN); -EPERM: not inside a run of that
 *   timeout, or it is not periodic; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_period_next(struct tw_handle self, int64_t delay_ns);

/**
 * Changes the period of a periodic timeout for good, in one of its runs. The interval after this
 * run is the first one with the new period.
 *
 * To change it from elsewhere, cancel the timeout and schedule another one: only the thread that
 * runs a periodic timeout owns its period. If a run calls tw_period_next, too, the last of the
 * calls sets the interval after this run.
 *
 * Units: nanoseconds, 1 or more. TW_NEVER: no further run by itself, but the chain stays pending.
 * Threads: the one that runs the callback.
 * In callback: only there, for its own handle.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (a handle of zeros, a period below 1); -ERANGE (INT64_MIN); -EPERM: not
 *   inside a run of that timeout, or it is not periodic; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_period_set(struct tw_handle self, int64_t period_ns);

TW_END_DECLS

#endif
