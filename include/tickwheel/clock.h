/* SPDX-License-Identifier: MIT */
/**
 * @file clock.h
 * The time that an engine lives by: CLOCK_MONOTONIC unless you give it another clock, of the system
 * or one that you move. docs/clocks.md compares them.
 *
 * No clock ever steps back, not from one thread to another either. None of them is the wall clock.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_clock;

/** What a clock counts. */
enum tw_clock_type {
	/** CLOCK_MONOTONIC, as without a clock: stands still while the machine is suspended. */
	TW_CLOCK_MONOTONIC = 0,
	/** CLOCK_BOOTTIME: goes on while the machine is suspended. */
	TW_CLOCK_BOOTTIME = 1,
	/** CLOCK_MONOTONIC_COARSE: the cheapest to read, in steps of some milliseconds. */
	TW_CLOCK_COARSE = 2,
	/** The processor's time stamp counter, kept to CLOCK_MONOTONIC: x86-64, where the kernel
	 * keeps its own time by it; otherwise CLOCK_MONOTONIC. */
	TW_CLOCK_TSC = 3,
	/** Moved by tw_clock_set; made by tw_clock_create_virtual. */
	TW_CLOCK_VIRTUAL = 4,
};

/**
 * Makes a clock of the system's. Any number of engines may live by it.
 *
 * A reading may be behind the time that the clock stands for, never ahead of it; what it may be
 * behind (tw_clock_lag) is added to every delay of tw_schedule, so that no timeout is early.
 * TW_CLOCK_TSC: where the counter cannot be trusted, and from the moment on in which it turns out
 * that it cannot (a suspend in which it ran on, for instance), the clock is CLOCK_MONOTONIC; the log
 * hook is told, and tw_clock_type says so.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates; TW_CLOCK_TSC: takes a millisecond, to measure.
 * Lifetime: until tw_clock_destroy, after its engines. With TW_CLOCK_BOOTTIME each engine has two
 *   file descriptors, from its create to its destroy.
 * Returns: 0 and `*ret_clock`; -EINVAL (NULL, TW_CLOCK_VIRTUAL, an unknown type); -EOPNOTSUPP (the
 *   system has no such clock); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API int tw_clock_create(enum tw_clock_type type, struct tw_clock **ret_clock);

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
 * What the clock reads.
 *
 * Units: nanoseconds.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; TW_CLOCK_TSC: lock-free.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int64_t tw_clock_now(struct tw_clock *clock);

/**
 * What the clock counts now.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: an enum tw_clock_type, TW_CLOCK_MONOTONIC for a TW_CLOCK_TSC that has fallen back;
 *   -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int tw_clock_type(struct tw_clock *clock);

/**
 * How far a reading may be behind the time that the clock stands for; so much is added to delays.
 *
 * Units: nanoseconds.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more, always the same for one clock; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int64_t tw_clock_lag(struct tw_clock *clock);

/**
 * Frees a clock. NULL is accepted.
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
