/* SPDX-License-Identifier: MIT */
/**
 * @file uv_timer.h
 * The timers of libuv, by an engine: the calls of uv_timer_t. Library tickwheel-uv-timer (pkg-config
 * tickwheel-uv-timer), available if tickwheel was built with the feature `uv_timer`.
 *
 *     struct tw_uv_timers *timers;
 *     tw_uv_timers_create(loop, &timers);
 *     tw_uv_timer_init(timers, timer);
 *     tw_uv_timer_start(timer, on_timeout, 5000, 0);
 *     ...
 *     tw_uv_timer_close(timer, on_close);
 *
 * One real timer of the loop drives all of them, so the loop runs as before, and its other handles
 * do not notice. Times are milliseconds of the loop's cached time (uv_now). Timers run by their
 * time, and equal times in the order of their starts, as libuv's own do. docs/hosts.md names the
 * differences.
 *
 * All functions belong to the thread that uses the loop at that time, as all of libuv does. None of
 * them may be called from another thread while the loop runs.
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
 * A timer. Its memory is yours: from tw_uv_timer_init until its close callback it must stay where
 * it is.
 */
struct tw_uv_timer {
	/** Yours, as in every handle of libuv. tw_uv_timer_init leaves it as it is. */
	void *data;
	/** For the library only. All zeros: a timer that was never initialised. */
	uint64_t hidden[11];
};

/** A callback of a timer: at its time, or when it is closed. Must return. */
typedef void tw_uv_timer_callback(struct tw_uv_timer *timer);

/**
 * Creates the timers of a loop: an engine and three handles, which do not keep the loop alive.
 *
 * A program that walks over all handles (uv_walk) meets a uv_timer_t, a uv_prepare_t and a
 * uv_check_t. Their data is the `struct tw_uv_timers`. Only tw_uv_timers_close should close them.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_uv_timers_close; the loop must live longer.
 * Returns: 0 and `*ret_timers`; -EINVAL (NULL); -ENOMEM; -ECHILD (in a forked child of a process
 *   that used the library, before tw_fork_reinit).
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_uv_timers_create(struct uv_loop_s *loop,
						 struct tw_uv_timers **ret_timers);

/**
 * Frees the timers of a loop when all of them are closed. The loop must then run once more, to close
 * the handles.
 *
 * If the program has closed these handles itself, by uv_walk, the loop must have run their close
 * callbacks before this call.
 *
 * Units: none.
 * Threads: the loop's, once.
 * In callback: yes, also in the close callback of the last timer.
 * Progress: waits for read-side sections of liburcu-bp that the program has open.
 * Lifetime: ends if the call returns 0.
 * Returns: 0 (also for NULL); -EBUSY: a timer is not closed, or its close callback has not been
 *   called yet.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timers_close(struct tw_uv_timers *timers);

/**
 * Initialises a timer, as uv_timer_init does. It keeps the loop alive whenever it is active.
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
 * With a timeout of 0 the callback runs in the next iteration of the loop. Before libuv 1.48 a timer
 * that a callback of a timer starts with 0 runs in the same iteration, as libuv's own do there.
 *
 * Units: milliseconds; `timeout` from the loop's cached time, `repeat` from the time at which the
 *   callback runs; 0: does not repeat.
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
 * Stops a timer. The callback does not run any more.
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
 * Starts a repeating timer again, with its repeat as the timeout. A timer without a repeat stays as
 * it is.
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
 * Sets the repeat of a timer. It counts from the next run on.
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
 * Returns how long it takes until a timer is due.
 *
 * Units: milliseconds from the loop's cached time.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 if that time has come. Of a timer that is not active, the same by its last start, as
 *   with libuv; 0 for NULL, for one that was never started, and for one that is closed.
 * Since: 0.1.0.
 */
TW_BESIDE_API uint64_t tw_uv_timer_get_due_in(const struct tw_uv_timer *timer);

/**
 * Whether a timer is active: started, and neither stopped nor run out.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes; the timer of the callback is active if it repeats.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0; 0 for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_is_active(const struct tw_uv_timer *timer);

/**
 * Whether a timer is closing or closed.
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
 * Lets an active timer keep the loop alive, as every timer does at first.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if it does already; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_ref(struct tw_uv_timer *timer);

/**
 * Lets the loop end although a timer is active.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if it may end already; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_unref(struct tw_uv_timer *timer);

/**
 * Whether an active timer keeps the loop alive.
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
 * Stops a timer for good. The loop calls `closed` when it closes handles, in the same iteration.
 * Then the memory is yours again.
 *
 * Units: none.
 * Threads: the loop's.
 * In callback: yes, also in the timer's own.
 * Progress: wait-free.
 * Lifetime: the memory must stay until `closed` is called; `closed` may be NULL.
 * Returns: 0; -EINVAL (NULL, never initialised, or closed before: `closed` is not called);
 *   -ESHUTDOWN (the handles of the loop's timers were closed before: the timer is closed, its memory
 *   is yours, and `closed` is not called).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_uv_timer_close(struct tw_uv_timer *timer, tw_uv_timer_callback *closed);

TW_END_DECLS

#endif
