/* SPDX-License-Identifier: MIT */
/**
 * @file periodic.h
 * Periodic timeouts: one handle for a chain of runs.
 *
 * A chain is pending until it is cancelled, handed back by stop, or has run as often as it was to. Its
 * runs never overlap, in executors neither: the next one begins to wait when the last one has ended.
 * Nothing is allocated between them. tw_cancel, tw_cancel_wait, tw_reschedule, tw_timeout_state and
 * tw_timeout_get work on its handle as on any other; docs/periodic.md has what they mean here.
 */
#ifndef TICKWHEEL_PERIODIC_H
#define TICKWHEEL_PERIODIC_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;

/** What a period is counted from. */
enum tw_period_mode {
	/** From the time that the run was scheduled for: the runs are on a grid, which neither lateness
	 * nor jitter nor the callback's duration moves. */
	TW_PERIOD_FIXED_RATE = 0,
	/** From the end of the run: so much time lies between two of them. */
	TW_PERIOD_FIXED_DELAY = 1,
};

/**
 * At a fixed rate, what becomes of points of the grid whose tick is over when a run ends: because the
 * worker was held up, or the callback took longer than the period.
 */
enum tw_period_missed {
	/** Each is made up for, one run after the other, until the chain has caught up. */
	TW_MISSED_BURST = 0,
	/** They are left out: the next run is at the next point of the same grid. */
	TW_MISSED_SKIP = 1,
	/** The grid moves: the next run is a period after the end of this one. */
	TW_MISSED_DELAY = 2,
};

/** When a periodic timeout runs. TW_PERIOD_RATE and TW_PERIOD_DELAY make one; change what you need. */
struct tw_period {
	/** sizeof(struct tw_period). */
	size_t size;
	/** The first run is scheduled so long after the call. Nanoseconds; negative is 0. */
	int64_t first_ns;
	/** At least 1. */
	int64_t period_ns;
	/** An enum tw_period_mode. */
	uint32_t mode;
	/** An enum tw_period_missed; of no effect with a fixed delay. */
	uint32_t missed;
	/**
	 * Each run, the first one too, is due up to this part of its interval (in parts per million, at
	 * most 1,000,000; the first one's is the period) later than it is scheduled; evenly spread, and
	 * anew each time. What follows counts from the scheduled time. 0: none.
	 */
	uint32_t jitter_ppm;
	/** Must be 0. */
	uint32_t reserved;
	/** For the jitter: the same seed gives the same times. 0: another one for each chain. */
	uint64_t seed;
	/** The chain ends after so many runs; 0: only by cancel or stop. */
	uint64_t runs;
};

/** Initialises a struct tw_period: first run after a period, then each period. */
/* clang-format off */
#define TW_PERIOD_RATE(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_RATE)
/** The same, the period counted from the end of a run. */
#define TW_PERIOD_DELAY(period_ns) TW_PERIOD_OF((period_ns), TW_PERIOD_FIXED_DELAY)
/** Either. */
#define TW_PERIOD_OF(period_ns, mode) \
	{ sizeof(struct tw_period), (period_ns), (period_ns), (mode), TW_MISSED_BURST, 0, 0, 0, 0 }
/* clang-format on */

/**
 * Schedules a periodic timeout.
 *
 * Each run is a timeout as tw_schedule makes it: at the first tick boundary after its deadline, never
 * early. The callback gets the chain's handle each time. The finaliser of `kind` runs once, when the
 * chain has ended: after the last run, with TW_END_EXPIRED where it has run as often as it was to, with
 * TW_END_CANCELLED where it was cancelled; or when it is handed back. A chain counts as one pending
 * timeout from here to its end, also while it runs. A time that does not fit 2^63 ns never comes: the
 * chain is pending until it is cancelled, rescheduled or handed back.
 *
 * The callback may rely on `*ret_handle`: it is written before the first run can begin, and never after.
 * On failure it is untouched.
 *
 * Units: see the struct. Slack of the kind holds for each run.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: `period` during the call; all else as tw_schedule, `kind` until the chain has ended.
 * Returns: 0 and `*ret_handle` (may be NULL); -EINVAL (engine; `period`: NULL, its size, a period below
 *   1, an unknown mode or policy, jitter above 1,000,000, `reserved`; `kind` as in tw_schedule, or
 *   only the owner's); -E2BIG (kind, or `period` of a newer header with fields set, or a size over
 *   4,096); -ERANGE (first or period INT64_MIN); -EAGAIN (limit); -ENOMEM; -ESHUTDOWN; -ECHILD; from
 *   the first call also what tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_periodic(struct tw_engine *engine, const struct tw_period *period,
				const struct tw_kind *kind, void *arg,
				struct tw_handle *ret_handle);

/**
 * Sets, in a run of a periodic timeout, its next interval: `delay_ns`, this once, in place of the period.
 *
 * At a fixed rate it is counted from the time that this run was scheduled for, with a fixed delay from
 * its end, and the policy for missed runs holds for it too. The last call in a run counts. Called each
 * time, it makes intervals that grow; without it the period holds again. Where the chain ends with this
 * run, it has no effect.
 *
 * Units: nanoseconds; negative is 0; TW_NEVER: no further run by itself, pending all the same.
 * Threads: the one that runs the callback.
 * In callback: only there, for its own handle.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN); -EPERM: not inside a run of that
 *   timeout, or it is not periodic; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_period_next(struct tw_handle self, int64_t delay_ns);

TW_END_DECLS

#endif
