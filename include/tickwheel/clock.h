/* SPDX-License-Identifier: MIT */
/**
 * @file clock.h
 * The time that an engine lives by: CLOCK_MONOTONIC, or a virtual clock that the caller moves.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_clock;

/**
 * Makes a clock that stands still until tw_clock_set moves it. Give it to one engine by its
 * options.
 *
 * Units: `now_ns`, nanoseconds, 0 or more.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_clock_destroy, after the engine.
 * Returns: 0 and `*ret_clock`; -EINVAL (NULL, negative time, INT64_MAX); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API int tw_clock_create_virtual(int64_t now_ns, struct tw_clock **ret_clock);

/**
 * Moves a virtual clock forward and wakes the worker that lives by it; does not wait for what
 * becomes due (tw_engine_settle does).
 *
 * Units: nanoseconds of the clock.
 * Threads: any, one at a time.
 * In callback: yes.
 * Progress: wait-free, one system call when the worker sleeps.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, INT64_MAX, or time would step back).
 * Since: 0.1.0.
 */
TW_API int tw_clock_set(struct tw_clock *clock, int64_t now_ns);

/**
 * Frees a virtual clock. NULL is accepted.
 *
 * Units: none.
 * Threads: any, nobody may use the clock any more.
 * In callback: no.
 * Progress: wait-free.
 * Lifetime: ends.
 * Returns: 0; -EBUSY while an engine has it.
 * Since: 0.1.0.
 */
TW_API int tw_clock_destroy(struct tw_clock *clock);

TW_END_DECLS

#endif
