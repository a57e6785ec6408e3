/* SPDX-License-Identifier: MIT */
/**
 * @file timeout.h
 * Scheduling, cancelling and asking about one timeout.
 *
 * A timeout is INIT until exactly one of three things ends it: it expires (its callback runs), it
 * is cancelled, or tw_engine_stop hands it back. Its handle is a value that may be copied, kept and
 * used for ever. After the end it names nothing, and never another timeout. Passing a handle to
 * another thread needs the usual synchronization, by release and acquire.
 */
#ifndef TICKWHEEL_TIMEOUT_H
#define TICKWHEEL_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Names a timeout. A handle of zeros names none. The fields are for the library only. */
struct tw_handle {
	void *node;
	uint64_t generation;
};

/** The handle of no timeout. */
#define TW_HANDLE_NONE TW_VALUE(tw_handle, 0, 0)

/**
 * As a delay or a deadline: the timeout never expires by itself, and is pending until it is
 * cancelled or handed back.
 */
#define TW_NEVER INT64_MAX

/**
 * So many microseconds, in nanoseconds. `n` may be an integer or a fraction (`TW_MS(1.5)`); the
 * result is a constant if `n` is an integer constant. It must fit 63 bits, which is 292 years.
 */
#define TW_US(n) ((int64_t)((n)*INT64_C(1000)))
/** So many milliseconds, in nanoseconds. */
#define TW_MS(n) ((int64_t)((n)*INT64_C(1000000)))
/** So many seconds, in nanoseconds. */
#define TW_S(n) ((int64_t)((n)*INT64_C(1000000000)))
/** So many minutes, in nanoseconds. */
#define TW_MINUTES(n) ((int64_t)((n)*INT64_C(60000000000)))
/** So many hours, in nanoseconds. */
#define TW_HOURS(n) ((int64_t)((n)*INT64_C(3600000000000)))

/** How a timeout ended. */
enum tw_end {
	TW_END_EXPIRED = 0,
	TW_END_CANCELLED = 1,
	TW_END_UNEXPIRED = 2,
	/** It expired, the executor rejected it, and the drop hook received it instead of its
	 * callback. */
	TW_END_DROPPED = 3,
};

/**
 * The callback of a timeout. Runs on the engine's worker, or where the dispatch hook ran it.
 *
 * `self` is the timeout's own handle. The callback may run before the schedule has returned. By
 * then the schedule has written its `*ret_handle`. The callback may call every function that says
 * "In callback: yes", and may free `arg`. It may block, but then everything else of the engine
 * waits. It must return: a longjmp or an exception out of it is undefined behaviour. If it ends its
 * thread (pthread_exit), the engine is shut down as after a failure, and tw_engine_stop hands back
 * the timeouts that are left.
 */
typedef void tw_callback(struct tw_handle self, void *arg);

/**
 * The optional finaliser of a timeout. Runs exactly once, however the timeout ended. After a
 * cancel, it runs on the thread that cancelled, before the cancel returns. After the callback, it
 * runs on the callback's thread. After stop's hand-back, it runs where that ran. If there is a
 * finaliser, only the finaliser may release `arg`.
 */
typedef void tw_finaliser(void *arg, enum tw_end end);

/** Bits of a kind's `flags`. */
enum tw_kind_flag {
	/**
	 * Only the engine's owner schedules, reschedules and cancels timeouts of this kind: the
	 * thread in a bracket of the loop (loop.h), or callbacks on the worker. These calls then need no atomic
	 * operation. Other threads get -EPERM, but may ask about such timeouts.
	 */
	TW_KIND_FLAG_OWNER_ONLY = 1,
	/**
	 * Runs on the worker (in loop mode: in the poll), even if the engine has a dispatch hook.
	 * Meant for callbacks so short that handing them over would cost more. A schedule and a
	 * cancel of such a timeout take about 20 ns longer together. Those that are due in one turn are
	 * taken together: in the callback of one, a cancel of another returns TW_CANCEL_RUNNING.
	 */
	TW_KIND_FLAG_INLINE = 2,
};

/**
 * The common part of all timeouts of one kind. Must stay constant, and alive as long as any of
 * them.
 */
struct tw_kind {
	/** sizeof(struct tw_kind); TW_KIND sets it. */
	uint32_t size;
	/** Bits of enum tw_kind_flag. */
	uint32_t flags;
	/** Required. */
	tw_callback *callback;
	/** NULL: the caller owns `arg` as soon as the timeout has ended. */
	tw_finaliser *finaliser;
	/**
	 * How much later than its deadline a timeout of this kind may fire, so that one wake-up of
	 * the worker serves several. Among the ticks in this range the engine chooses one that
	 * other timeouts are likely to use, too. Nanoseconds, below 2^63; 0: as soon as possible.
	 */
	uint64_t slack_ns;
	/** Yours, the same for all timeouts of the kind. A callback gets it by tw_run_get. */
	void *context;
};

/**
 * Initialises a struct tw_kind by the names of its fields. The rest is 0. In C, and in C++ from
 * C++20 on: `TW_KIND_WITH(.callback = on_ping, .flags = TW_KIND_FLAG_OWNER_ONLY, .context = &peer)`
 */
/* clang-format off */
#define TW_KIND_WITH(...) \
	{ .size = (uint32_t)sizeof(struct tw_kind), __VA_ARGS__ }
/** Initialises a struct tw_kind: `static const struct tw_kind ping = TW_KIND(on_ping, NULL);` */
#define TW_KIND(callback, finaliser) TW_KIND_SLACK((callback), (finaliser), 0)
/**
 * The same, with slack: `static const struct tw_kind gc = TW_KIND_SLACK(on_gc, NULL, TW_S(1));`
 */
#define TW_KIND_SLACK(callback, finaliser, slack_ns) \
	{ (uint32_t)sizeof(struct tw_kind), 0, (callback), (finaliser), (slack_ns), NULL }
/** The same as TW_KIND, for a kind that only the owner may use. */
#define TW_KIND_OWNER_ONLY(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_OWNER_ONLY, (callback), (finaliser), 0, NULL }
/** The same as TW_KIND, for a kind that runs on the worker, even if there is an executor. */
#define TW_KIND_INLINE(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_INLINE, (callback), (finaliser), 0, NULL }
/* clang-format on */

/** What tw_cancel found. */
enum tw_cancel_outcome {
	/** This call has cancelled it. The callback will not run. `arg` is the caller's again,
	 * unless its kind has a finaliser; in that case the finaliser has released it. */
	TW_CANCEL_DONE = 0,
	/** It had ended before: another cancel came first, or stop handed it back. */
	TW_CANCEL_CANCELLED = 1,
	/** It had expired before, and its callback has ended. `arg`: as with TW_CANCEL_DONE. */
	TW_CANCEL_EXPIRED = 2,
	/** It has expired, or is periodic and was stopped before. Its callback runs now or is on
	 * its way to an executor. */
	TW_CANCEL_RUNNING = 3,
	/** It had ended before, and its memory now serves another timeout. How it ended is no
	 * longer known. */
	TW_CANCEL_STALE = 4,
	/**
	 * It is periodic, and this call has stopped it while a run is under way or on its way to an
	 * executor. That run may continue, and no other begins. `arg` is in use until the run has
	 * ended. If there is a finaliser, it runs after the run, on the run's thread.
	 */
	TW_CANCEL_STOPPED = 5,
};

/** What tw_reschedule found. */
enum tw_reschedule_outcome {
	/** The deadline is the new one. */
	TW_RESCHEDULE_DONE = 0,
	/** Too late: cancelled, or handed back by stop. */
	TW_RESCHEDULE_CANCELLED = 1,
	/** Too late: expired, and its callback has ended. */
	TW_RESCHEDULE_EXPIRED = 2,
	/** Too late: expired, and its callback runs now or is on its way to an executor. */
	TW_RESCHEDULE_RUNNING = 3,
};

/** The states of a timeout. */
enum tw_state {
	TW_STATE_INIT = 0,
	TW_STATE_CANCELLED = 1,
	TW_STATE_EXPIRED = 2,
};

/** The values that tw_timeout_get returns. */
struct tw_timeout {
	/** Set by the caller to sizeof(struct tw_timeout). */
	size_t size;
	/** The engine; valid as long as the engine exists. */
	struct tw_engine *engine;
	/** As scheduled. */
	const struct tw_kind *kind;
	/** As scheduled. */
	void *arg;
	/**
	 * When the timeout is due, in the engine's time (tw_engine_now), or TW_NEVER. If it was
	 * rescheduled, this is the last new deadline. Otherwise, if its kind has slack, this is the
	 * deadline that the engine has chosen within the slack.
	 */
	int64_t deadline_ns;
	/** INIT, CANCELLED or EXPIRED. */
	enum tw_state state;
};

/**
 * Schedules a timeout `delay_ns` from now.
 *
 * The callback runs at the first tick boundary after the deadline: never early, late by up to one
 * tick, the slack of its kind, and the time that the system and earlier callbacks take. In loop
 * mode it runs in the first poll that is not before the deadline (tw_engine_poll). Starts the
 * engine if it is not started yet. On failure the callback and the finaliser are never called.
 *
 * The callback may rely on `*ret_handle`, because the call writes it before the callback can run,
 * and never afterwards. So it may lie in an object that the callback, the finaliser or the
 * hand-back frees. On failure it is not changed.
 *
 * Units: nanoseconds. 0 or less: the timeout runs in the worker's next turn, and its deadline is
 *   the last moment before the present tick. If the delay is TW_NEVER, or too large to represent,
 *   the timeout never expires by itself.
 * Threads: any.
 * In callback: yes; the first schedule on the same engine inside a callback takes over the pending
 *   place of the timeout that runs, so the limit does not reject it. (In an attempt of a task that
 *   is retried, the task's next wait has already taken over this place.)
 * Progress: wait-free (with a limit of pending timeouts lock-free), with three exceptions: if the
 *   thread's stock of memory must be refilled (lock-free, at times a system call); in the thread's
 *   first call to an engine (allocates its ring); in the first call of all (starts the worker,
 *   never waits for it). If cancelled timeouts pile up because the worker cannot keep up, every
 *   1,024th call of a thread gives way to the worker: from 16 MiB on it yields, from 64 MiB on it
 *   sleeps 1 to 10 ms, and with more than 9 threads longer: as many times as there are threads, over
 *   5, and at most 1 s. Whatever the worker does, it never sleeps longer.
 * Lifetime: `kind` until the timeout has ended; `arg` is passed on, not looked at.
 * Returns: 0 and `*ret_handle` (may be NULL); -EINVAL (engine, kind, its callback, flags, slack);
 *   -E2BIG (a kind of a newer header with fields set that this library does not know, or of a
 *   `size` over 4,096); -ERANGE (delay INT64_MIN: the value of 2^63 as a signed number); -EAGAIN
 *   (the limit of pending timeouts is reached); -ENOMEM; -ESHUTDOWN; -ECHILD; -EPERM (a kind that
 *   only the owner may use); from the first call also the codes that tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_schedule(struct tw_engine *engine, int64_t delay_ns,
					   const struct tw_kind *kind, void *arg,
					   struct tw_handle *ret_handle);

/**
 * Schedules a timeout for a point of the engine's time; does not read the clock. As with
 * tw_schedule, `*ret_handle` is written before the callback can run.
 *
 * Units: nanoseconds of the engine's clock (tw_engine_now). By default this is the time of
 *   CLOCK_MONOTONIC, so no timeout is early if its deadline is computed from CLOCK_MONOTONIC. If
 *   the deadline is so far in the past that its tick boundary has passed, the timeout runs in the
 *   worker's next turn. TW_NEVER: never.
 * Order: timeouts run tick by tick, without order inside a tick. With TW_ENGINE_ORDERED or
 *   TW_ENGINE_LOOP they run by deadline, and equal deadlines in the order in which their thread
 *   scheduled them, while there is memory. A timeout that comes too late for its tick runs at the
 *   next opportunity. Such timeouts run not by deadline, but in the order in which their thread
 *   scheduled them. In an engine without an order there are two exceptions.
 *   While more than 65,536 of a thread's calls wait for the worker, later ones may overtake. If a
 *   thread has cancelled timeouts that had not reached the wheel, one that it schedules afterwards
 *   may run as early as those would have. If the worker stalls for a revolution of its wheel, the
 *   order afterwards is that of slots.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule; -ERANGE for the deadline INT64_MIN.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
					      const struct tw_kind *kind, void *arg,
					      struct tw_handle *ret_handle);

/**
 * Cancels a timeout, and reports precisely whether it did.
 *
 * The handle knows its engine, so this call takes a handle of any engine. On TW_CANCEL_DONE the
 * finaliser has run, and the library does not touch `arg` after the return.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; its own timeout is TW_CANCEL_RUNNING, a periodic one TW_CANCEL_STOPPED.
 * Progress: wait-free; lock-free while other threads reschedule the same timeout.
 * Lifetime: the handle stays safe for ever, after tw_engine_destroy too.
 * Returns: an enum tw_cancel_outcome; -EINVAL for a handle of zeros; -EPERM (only the owner may
 *   cancel it, and the caller is another thread); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_cancel(struct tw_handle handle);

/**
 * Cancels a timeout like tw_cancel, and waits until a running callback (and the finaliser) has
 * ended.
 *
 * Units: `timeout_ns`, the longest time to wait; TW_NEVER without bound; 0 or less: do not wait.
 * Threads: any.
 * In callback: yes. For the callback's own timeout, and on the worker of the timeout's engine, it
 *   does not wait and returns as tw_cancel. Two callbacks of different threads that wait for each
 *   other deadlock. So does a callback in an executor that waits for a callback that only its own
 *   thread would run.
 * Progress: blocks.
 * Lifetime: as tw_cancel.
 * Returns: as tw_cancel, with TW_CANCEL_EXPIRED, TW_CANCEL_CANCELLED or TW_CANCEL_STALE after
 *   waiting; TW_CANCEL_DONE after waiting for the last run of a periodic timeout that this call
 *   stopped; -ETIMEDOUT: the callback still runs (if the timeout is periodic, for the last time).
 * Since: 0.1.0.
 */
TW_API int tw_cancel_wait(struct tw_handle handle, int64_t timeout_ns);

/**
 * Gives a pending timeout another deadline, `delay_ns` from now, and reports precisely whether it
 * did.
 *
 * After TW_RESCHEDULE_DONE the callback does not run for a deadline earlier than the new one,
 * unless a later reschedule sets an earlier one. Handle, argument and kind stay the same. The new
 * deadline is used as it is, without the slack of the kind. If the new deadline is later, the call
 * is one compare-and-swap, and the worker is not notified. Therefore the worker wakes up at the old
 * time at most once.
 *
 * Units: as tw_schedule; 0 or less: in the worker's next turn; TW_NEVER: never expires by itself.
 * Threads: any. If two calls reschedule one timeout at once, the later one counts.
 * In callback: yes; its own timeout is TW_RESCHEDULE_RUNNING: schedule a new one instead (for a
 *   periodic one: tw_period_next).
 * Progress: lock-free, because a step is repeated only if another thread's step on the same timeout
 *   has succeeded. If the worker sleeps beyond the new deadline, the call makes a system call.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_reschedule_outcome; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN);
 *   -ESTALE: it had ended before, and its memory now serves another timeout; -EPERM (only the owner
 *   may reschedule it, and the caller is another thread); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_reschedule(struct tw_handle handle, int64_t delay_ns);

/**
 * Reschedules a timeout to a point of the engine's time; does not read the clock. Otherwise the
 * same as tw_reschedule.
 *
 * Units: as tw_schedule_at. If the deadline is in the past, the timeout runs in the worker's next
 *   turn.
 * Threads: any. If two calls reschedule one timeout at once, the later one counts.
 * In callback: yes, as tw_reschedule.
 * Progress: as tw_reschedule.
 * Lifetime: as tw_cancel.
 * Returns: as tw_reschedule; -ERANGE for the deadline INT64_MIN.
 * Since: 0.1.0.
 */
TW_API int tw_reschedule_at(struct tw_handle handle, int64_t deadline_ns);

/**
 * Returns the state of a timeout.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; the callback's own timeout is TW_STATE_EXPIRED, or TW_STATE_INIT if it is
 *   periodic.
 * Progress: wait-free.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_state; -EINVAL for a handle of zeros; -ESTALE; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_state(struct tw_handle handle);

/**
 * Reads engine, kind, argument, deadline and state of a timeout, all at one moment. If the timeout
 * is periodic and has ended, the argument is NULL.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; lock-free while a periodic one runs.
 * Lifetime: the owner of `arg` may release it as soon as the timeout ends. Therefore use it only if
 *   that cannot happen meanwhile.
 * Returns: 0; -EINVAL (zeros, NULL, `size` too small or over 4,096); -ESTALE; -ECHILD. If `size` is
 *   larger than this library's, up to 4,096, it is accepted and the tail is zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_get(struct tw_handle handle, struct tw_timeout *ret_timeout);

/**
 * Writes one line about a timeout, for logs: which one it is, its state, deadline, kind and
 * argument. The text may change with any version.
 *
 * Units: `bytes`: the size of the buffer. The deadline is in seconds of the engine's clock.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_timeout_get.
 * Lifetime: none. The kind and the argument are printed as addresses, and not used.
 * Returns: the length of the whole text, as snprintf. If it is not less than `bytes`, the text is
 *   cut. -EINVAL (NULL as `buffer`, and `bytes` not 0). A handle of zeros, of an ended timeout, or
 *   of the parent of a forked process has a text that says so.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_text(struct tw_handle handle, char *buffer, size_t bytes);

/** The callback that runs on a thread, as tw_run_get returns it. */
struct tw_run {
	/** Set by the caller to sizeof(struct tw_run). */
	size_t size;
	/** The engine whose timeout runs. */
	struct tw_engine *engine;
	/** The timeout's kind. */
	const struct tw_kind *kind;
	/** The `context` of that kind. */
	void *context;
	/** The timeout's handle, which the callback gets as `self`. */
	struct tw_handle handle;
	/** The timeout's argument. */
	void *arg;
	/** For when this run was due, in the engine's time. Of a periodic timeout: this run. */
	int64_t deadline_ns;
	/** How long ago that was: the engine's time at this call minus the deadline. */
	int64_t late_ns;
};

/**
 * Returns the innermost callback that runs on the calling thread: its engine, kind, context,
 * deadline and lateness. So callbacks need no globals.
 *
 * It also works in functions that a callback calls, in a finaliser that follows a callback, and in
 * a late hook or a drop hook. In the callbacks of keyed timeouts and retries, the kind, the context
 * and the argument are the library's.
 *
 * Units: nanoseconds of the engine's clock.
 * Threads: the one that runs the callback: the worker, a polling thread, or an executor's.
 * In callback: only there.
 * Progress: wait-free; reads the clock.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, or `size` too small or over 4,096); -EPERM: no callback runs on the
 *   calling thread (in a finaliser after a cancel, in a hand-back, or outside).
 * Since: 0.1.0.
 */
TW_API int tw_run_get(struct tw_run *ret_run);

/**
 * Whether a handle names a timeout, pending or ended: whether it is not TW_HANDLE_NONE.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0.
 * Since: 0.1.0.
 */
TW_API int tw_handle_is_set(struct tw_handle handle);

/**
 * Whether two handles name the same timeout.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0. Two handles of zeros are equal.
 * Since: 0.1.0.
 */
TW_API int tw_handle_equal(struct tw_handle left, struct tw_handle right);

TW_END_DECLS

#endif
