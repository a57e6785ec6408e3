/* SPDX-License-Identifier: MIT */
/**
 * @file uv_timer.h
 * Timers with the calls of libuv's uv_timer_t, kept in a tickwheel engine. They are in the library
 * tickwheel-uv-timer (pkg-config tickwheel-uv-timer), which exists if tickwheel was built with the
 * feature `uv_timer`.
 *
 *     struct tw_uv_timers *timers;
 *     tw_uv_timers_create(loop, &timers);
 *     tw_uv_timer_init(timers, timer);
 *     tw_uv_timer_start(timer, on_timeout, 5000, 0);
 *     ...
 *     tw_uv_timer_close(timer, on_close);
 *
 * One real timer of the loop serves all of these timers, so the program runs the loop and its other
 * handles as before. Times are milliseconds of the loop's cached time (uv_now). Timers run in the
 * order of their times. Timers of the same time run in the order in which they were started, as in
 * libuv. docs/hosts.md names the differences.
 *
 * Like most functions of libuv, these may be called only by the thread that uses the loop at that
 * time. No other thread may call them while the loop runs.
 */
#ifndef TICKWHEEL_UV_TIMER_H
#define TICKWHEEL_UV_TIMER_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** The timers of one loop, made by tw_uv_timers_create and freed after tw_uv_timers_close. */
struct tw_uv_timers;
struct uv_loop_s;

/**
 * A timer. The program owns its memory, and must not move or free it from tw_uv_timer_init until
 * its close callback.
 */
struct tw_uv_timer {
	/** A pointer of the program's own, as in every handle of libuv. tw_uv_timer_init leaves it
	 * as it is. */
	void *data;
	/** For the library only. All zeros: a timer that was never initialised. */
	uint64_t hidden[11];
};

/** A callback of a timer: called when the timer is due, or when it is closed. It must return. */
typedef void tw_uv_timer_callback(struct tw_uv_timer *timer);

/**
 * Creates the object that holds the timers of a loop: an engine, and three handles of libuv that do
 * not keep the loop alive.
 *
 * If a program walks over all handles (uv_walk), it finds a uv_timer_t, a uv_prepare_t and a
 * uv_check_t of this object. Their field `data` points to the `struct tw_uv_timers`. Only
 * tw_uv_timers_close should close them.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_uv_timers_close; the loop must live longer.
 * Returns: 0 and `*ret_timers`; -EINVAL (NULL); -ENOMEM; -EDEADLK (in a child that was forked
 *   in a callback).
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_uv_timers_create(struct uv_loop_s *loop,
						 struct tw_uv_timers **ret_timers);

/**
 * Frees the object that holds the timers of a loop. All its timers must have been closed before.
 * The loop must then run once more, to close the three handles.
 *
 * If the program has closed these handles itself, by uv_walk, the loop must have run their close
 * callbacks before this call.
 *
 * Units: none.
 * Threads: the loop's, once.
 * In callback: yes, also in the close callback of the last timer.
 * Progress: waits for other threads' calls of the library that are under way.
 * Lifetime: the object must not be used after the call has returned 0.
 * Returns: 0 (also for NULL); -EBUSY: a timer is not closed, or its close callback has not been
 *   called yet.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timers_close(struct tw_uv_timers *timers);

/**
 * Initialises a timer, as uv_timer_init does. The timer keeps the loop alive while it is active.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: until the close callback of the timer.
 * Returns: 0; -EINVAL (NULL); -ESHUTDOWN (the handles of the loop's timers are closed).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_init(struct tw_uv_timers *timers, struct tw_uv_timer *timer);

/**
 * Starts a timer, or starts it again, as uv_timer_start does.
 *
 * With a timeout of 0 the callback runs in the next iteration of the loop. There is one exception:
 * with libuv before 1.48, a timer that another timer's callback starts with 0 runs in the same
 * iteration, as libuv's own timers do.
 *
 * Units: milliseconds. `timeout` counts from the loop's cached time, `repeat` from the time at
 *   which the callback runs; a `repeat` of 0: the timer does not repeat.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free, except that memory is allocated at times.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, a timer that was never initialised, one that is closing or closed);
 *   -ENOMEM (then the timer is stopped); -ESHUTDOWN (the handles of the loop's timers are closed);
 *   -EBUSY (another thread is inside the loop); -ECHILD (in a forked child).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_start(struct tw_uv_timer *timer, tw_uv_timer_callback *callback,
				    uint64_t timeout, uint64_t repeat);

/**
 * Stops a timer. Its callback does not run any more.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if it was not active, or is closed; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_stop(struct tw_uv_timer *timer);

/**
 * Starts a repeating timer again, with its repeat as the timeout, as uv_timer_again does. A timer
 * without a repeat stays as it is.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: as tw_uv_timer_start.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, or it was never started); -ENOMEM, -ESHUTDOWN, -EBUSY, -ECHILD (as
 *   tw_uv_timer_start). A timer that is closing: 0, and nothing happens.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_again(struct tw_uv_timer *timer);

/**
 * Sets the repeat of a timer. The new value applies from the next run on.
 *
 * Units: milliseconds; 0: does not repeat.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_set_repeat(struct tw_uv_timer *timer, uint64_t repeat);

/**
 * Returns the repeat of a timer.
 *
 * Units: milliseconds.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the repeat; 0 for none, and for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API uint64_t tw_uv_timer_get_repeat(const struct tw_uv_timer *timer);

/**
 * Returns the time until a timer is due.
 *
 * Units: milliseconds from the loop's cached time.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the time; 0 if the timer is due. For a timer that is not active, the result is computed
 *   from its last start, as with libuv. It is 0 for NULL, for a timer that was never started, and
 *   for one that is closed.
 * Since: 0.1.0.
 */
TW_BESIDE_API uint64_t tw_uv_timer_get_due_in(const struct tw_uv_timer *timer);

/**
 * Returns whether a timer is active: it was started, and has neither been stopped nor run for the
 * last time.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes; the callback's own timer is active if it repeats.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0; 0 for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_is_active(const struct tw_uv_timer *timer);

/**
 * Returns whether a timer is closing or closed.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0; 0 for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_is_closing(const struct tw_uv_timer *timer);

/**
 * Makes a timer keep the loop alive while it is active, as every timer does at first.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if the timer already keeps the loop alive; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_ref(struct tw_uv_timer *timer);

/**
 * Makes a timer not keep the loop alive: the loop may end while the timer is active.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if the timer already does not keep the loop alive; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_unref(struct tw_uv_timer *timer);

/**
 * Returns whether a timer keeps the loop alive while it is active.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0; 0 for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_has_ref(const struct tw_uv_timer *timer);

/**
 * Stops a timer for good. The loop calls `closed` in the same iteration, when it closes handles.
 * From then on the program may free or reuse the timer's memory.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes, also in the timer's own.
 * Progress: wait-free.
 * Lifetime: the memory must stay until `closed` is called; `closed` may be NULL.
 * Returns: 0; -EINVAL (NULL, never initialised, or closed before: `closed` is not called);
 *   -ESHUTDOWN (the handles of the loop's timers were closed before: the timer is closed, the
 *   program may free its memory, and `closed` is not called).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_close(struct tw_uv_timer *timer, tw_uv_timer_callback *closed);

TW_END_DECLS

#endif
