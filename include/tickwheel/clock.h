/* SPDX-License-Identifier: MIT */
/**
 * @file clock.h
 * The clock of an engine: CLOCK_MONOTONIC, unless you give the engine another clock. That may be
 * another clock of the system, or one that you move yourself. docs/clocks.md compares them.
 *
 * No clock ever steps back, not from one thread to another either. None of them is the wall clock;
 * wall.h has timeouts that follow it.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** A clock, made by tw_clock_create or tw_clock_create_virtual and freed by tw_clock_destroy. */
struct tw_clock;
struct tw_engine;

/** The time that a clock counts. */
enum tw_clock_type {
	/** CLOCK_MONOTONIC, as without a clock: stands still while the machine is suspended. */
	TW_CLOCK_MONOTONIC = 0,
	/** CLOCK_BOOTTIME: goes on while the machine is suspended. */
	TW_CLOCK_BOOTTIME = 1,
	/** CLOCK_MONOTONIC_COARSE: the cheapest to read, in steps of some milliseconds. The kernel
	 * moves it at its tick. If a hypervisor holds back that tick by more than a step, a timeout
	 * may come early by the rest of the delay. */
	TW_CLOCK_COARSE = 2,
	/** The processor's time stamp counter, adjusted to CLOCK_MONOTONIC, on x86-64 if the kernel
	 * keeps its own time by it; otherwise CLOCK_MONOTONIC. */
	TW_CLOCK_TSC = 3,
	/** Moved by tw_clock_set; made by tw_clock_create_virtual. */
	TW_CLOCK_VIRTUAL = 4,
};

/**
 * Creates a clock of the system. Any number of engines may use it.
 *
 * A reading may be behind the time that the clock stands for, but never ahead of it. tw_schedule
 * adds the largest possible lag (tw_clock_lag) to every delay, so that no timeout is early. If the
 * time stamp counter cannot be trusted, TW_CLOCK_TSC is CLOCK_MONOTONIC. If the counter proves to
 * be wrong later (for instance because it ran on in a suspend), the clock is CLOCK_MONOTONIC from
 * that moment on. In both cases the log hook is notified, and tw_clock_type reports it.
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
TW_API TW_CHECKED int tw_clock_create(enum tw_clock_type type, struct tw_clock **ret_clock);

/**
 * Creates a clock that stands still until tw_clock_set moves it. Only one engine may use it, by its
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
TW_API TW_CHECKED int tw_clock_create_virtual(int64_t now_ns, struct tw_clock **ret_clock);

/**
 * Moves a virtual clock forward and wakes the worker that uses it. It does not wait for the
 * timeouts that become due; tw_engine_flush does.
 *
 * Units: nanoseconds of the clock.
 * Threads: any, one at a time.
 * In callback: yes.
 * Progress: wait-free, one system call if the worker sleeps.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, INT64_MAX, or time would step back).
 * Since: 0.1.0.
 */
TW_API int tw_clock_set(struct tw_clock *clock, int64_t now_ns);

/**
 * Runs an engine with a virtual clock up to a time, and everything on the way at its own time. The
 * clock goes to each time at which something is due, the engine runs it, and so on. So a callback
 * that schedules another timeout finds it run too, if that is due by then.
 *
 * Meant for tests. In loop mode the call polls, and callbacks run in it. Otherwise they run on the
 * engine's worker, for which the call waits. With an executor the call waits until the timeouts are
 * handed over. If a callback schedules a delay of 0 in each of its runs, the call never ends.
 *
 * Units: `until_ns`, nanoseconds of the engine's clock. With a worker a timeout runs when its tick is
 *   over, so the last one to run has a deadline before the tick boundary that is at or before
 *   `until_ns`. A loop runs all with deadlines up to `until_ns`.
 * Threads: any, one at a time, and no other thread may move the clock meanwhile. In loop mode as
 *   tw_engine_poll.
 * In callback: no (-EDEADLK) in a callback of this engine; in another engine's, yes.
 * Progress: that of the callbacks.
 * Lifetime: none.
 * Returns: 0, and the clock is at `until_ns`; -EINVAL (NULL, a clock that is not virtual, a negative
 *   time, TW_NEVER, a time before the clock's); -EDEADLK; -ESHUTDOWN; -EBUSY (loop mode: as
 *   tw_engine_poll); -ECHILD; from the first call also the codes that tw_engine_start returns. On
 *   failure the clock is at some time before `until_ns`.
 * Since: 0.1.0.
 */
TW_API int tw_engine_run_until(struct tw_engine *engine, int64_t until_ns);

/**
 * Returns the clock's time.
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
 * Returns the type of time that the clock counts now.
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
 * Returns how far a reading may be behind the time that the clock stands for. This lag is added to
 * delays.
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
 * Threads: any; no thread may use the clock any more.
 * In callback: no.
 * Progress: wait-free.
 * Lifetime: ends.
 * Returns: 0; -EBUSY while an engine has it.
 * Since: 0.1.0.
 */
TW_API int tw_clock_destroy(struct tw_clock *clock);

TW_END_DECLS

#endif
