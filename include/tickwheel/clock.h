/* SPDX-License-Identifier: MIT */
/**
 * @file clock.h
 * The clock of an engine. It is CLOCK_MONOTONIC, unless you give the engine another clock of the
 * system, or a virtual clock, which you move yourself. docs/clocks.md compares the clocks.
 *
 * No clock ever steps back, not even between readings of two threads. None of these clocks is the
 * wall clock; wall.h has timeouts that follow the wall clock.
 */
#ifndef TICKWHEEL_CLOCK_H
#define TICKWHEEL_CLOCK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** A clock, made by tw_clock_create or tw_clock_create_virtual and freed by tw_clock_destroy. */
struct tw_clock;
struct tw_engine;

/** The types of clocks. */
enum tw_clock_type {
	/** CLOCK_MONOTONIC, the time of an engine without the option `clock`. It stands still while
	 * the machine is suspended. */
	TW_CLOCK_MONOTONIC = 0,
	/** CLOCK_BOOTTIME, which continues while the machine is suspended. */
	TW_CLOCK_BOOTTIME = 1,
	/**
	 * CLOCK_MONOTONIC_COARSE, which is the cheapest to read, and advances in steps of some
	 * milliseconds. The kernel advances it at each kernel tick. If a hypervisor delays that
	 * tick by more than one step, a timeout may be early by the part of the delay beyond one
	 * step.
	 */
	TW_CLOCK_COARSE = 2,
	/** The processor's time stamp counter, adjusted to CLOCK_MONOTONIC. It is used on x86-64 if
	 * the kernel keeps its own time by this counter; otherwise the clock is CLOCK_MONOTONIC. */
	TW_CLOCK_TSC = 3,
	/** A virtual clock: made by tw_clock_create_virtual, and moved by tw_clock_set. */
	TW_CLOCK_VIRTUAL = 4,
};

/**
 * Creates a clock of the system. Any number of engines may use it.
 *
 * A reading may be behind the true time of the clock, but never ahead of it. tw_schedule adds the
 * largest possible lag (tw_clock_lag) to every delay, so that no timeout is early. If the time
 * stamp counter cannot be trusted, TW_CLOCK_TSC is CLOCK_MONOTONIC. If the counter proves to be
 * wrong later (for instance because it ran on in a suspend), the clock is CLOCK_MONOTONIC from that
 * moment on. In both cases the log hook gets a message, and tw_clock_type returns
 * TW_CLOCK_MONOTONIC.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates; with TW_CLOCK_TSC it takes a millisecond to measure the counter.
 * Lifetime: until tw_clock_destroy, which must come after the destroy of its engines. With
 *   TW_CLOCK_BOOTTIME each engine holds two file descriptors, from its creation to its destroy.
 * Returns: 0 and `*ret_clock`; -EINVAL (NULL, TW_CLOCK_VIRTUAL, an unknown type); -EOPNOTSUPP (the
 *   system has no such clock); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_clock_create(enum tw_clock_type type, struct tw_clock **ret_clock);

/**
 * Creates a virtual clock, which stands still until tw_clock_set moves it. Only one engine may have
 * it as its option `clock`.
 *
 * Units: `now_ns`, nanoseconds, 0 or more.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_clock_destroy, which must come after the destroy of its engine.
 * Returns: 0 and `*ret_clock`; -EINVAL (NULL, negative time, INT64_MAX); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_clock_create_virtual(int64_t now_ns, struct tw_clock **ret_clock);

/**
 * Moves a virtual clock forward and wakes the worker that uses it. The call does not wait for the
 * timeouts that become due; tw_engine_flush does.
 *
 * Units: nanoseconds of the clock.
 * Threads: any, one at a time.
 * In callback: yes.
 * Progress: wait-free, one system call if the worker sleeps.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, a clock that is not virtual, INT64_MAX, or time would step back).
 * Since: 0.1.0.
 */
TW_API int tw_clock_set(struct tw_clock *clock, int64_t now_ns);

/**
 * Moves the virtual clock of an engine to a time, and runs each timeout that is due until then at
 * its own time. The clock advances to the next time at which a timeout is due, the engine runs the
 * timeout, and so on. If a callback schedules another timeout that is due by `until_ns`, the call
 * runs that one, too.
 *
 * Meant for tests. In loop mode the call polls, and callbacks run in it. Otherwise they run on the
 * engine's worker, for which the call waits. With an executor the call waits until the timeouts are
 * handed over. If a callback schedules a delay of 0 in each of its runs, the call never ends.
 *
 * Units: `until_ns`, nanoseconds of the engine's clock. In an engine with a worker, a timeout runs
 *   when its tick is over. So the call runs the timeouts with a deadline before the last tick
 *   boundary that is not after `until_ns`. In loop mode it runs all timeouts with deadlines up to
 *   `until_ns`.
 * Threads: any, one at a time, and no other thread may move the clock meanwhile. In loop mode as
 *   tw_engine_poll.
 * In callback: no (-EDEADLK) in a callback of this engine; in another engine's callback, yes.
 * Progress: that of the callbacks.
 * Lifetime: none.
 * Returns: 0, and the clock is at `until_ns`; -EINVAL (NULL, a clock that is not virtual, a
 *   negative time, TW_NEVER, a time before the clock's); -EDEADLK; -ESHUTDOWN; -EBUSY (loop mode:
 *   as tw_engine_poll); -ECHILD; from the first call also the codes that tw_engine_start returns.
 *   On failure the clock may have moved, but not beyond `until_ns`.
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
 * Returns the type of a clock, as it is now.
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
 * Returns the lag of a clock: how far a reading may be behind the clock's true time. tw_schedule
 * adds the lag to delays.
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
 * Lifetime: the clock exists until the call returns 0.
 * Returns: 0; -EBUSY while an engine has the clock.
 * Since: 0.1.0.
 */
TW_API int tw_clock_destroy(struct tw_clock *clock);

TW_END_DECLS

#endif
