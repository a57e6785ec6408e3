/* SPDX-License-Identifier: MIT */
/**
 * @file timeout.h
 * Scheduling, cancelling, rescheduling and inspecting one timeout.
 *
 * A timeout is INIT until exactly one of three things ends it: it expires (its callback runs), it
 * is cancelled, or tw_engine_stop hands it back. Its handle is a value that may be copied, kept and
 * used for ever. After the timeout's end the handle names nothing; it never names another timeout.
 * Passing a handle to another thread needs the usual synchronization, such as a release store and
 * an acquire load.
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
 * As a delay or a deadline, it means that the timeout never expires by itself. The timeout is
 * pending until it is cancelled or handed back, or until a reschedule gives it a deadline.
 */
#define TW_NEVER INT64_MAX

/**
 * Converts `n` microseconds to nanoseconds. `n` may be an integer or a fraction (`TW_MS(1.5)`). The
 * result is a constant if `n` is an integer constant. The result must fit 63 bits, which is 292
 * years.
 */
#define TW_US(n) ((int64_t)((n)*INT64_C(1000)))
/** Converts `n` milliseconds to nanoseconds, like TW_US. */
#define TW_MS(n) ((int64_t)((n)*INT64_C(1000000)))
/** Converts `n` seconds to nanoseconds, like TW_US. */
#define TW_S(n) ((int64_t)((n)*INT64_C(1000000000)))
/** Converts `n` minutes to nanoseconds, like TW_US. */
#define TW_MINUTES(n) ((int64_t)((n)*INT64_C(60000000000)))
/** Converts `n` hours to nanoseconds, like TW_US. */
#define TW_HOURS(n) ((int64_t)((n)*INT64_C(3600000000000)))

/** How a timeout ended. */
enum tw_end {
	/** The timeout expired, and its callback, or the late hook instead, has run. */
	TW_END_EXPIRED = 0,
	/** The timeout was cancelled. */
	TW_END_CANCELLED = 1,
	/** tw_engine_stop handed the timeout back, or TW_REINIT_FINALISE ended it in a forked
	 * child. */
	TW_END_UNEXPIRED = 2,
	/** The timeout expired, the executor rejected it, and the drop hook ran instead of the
	 * callback. */
	TW_END_DROPPED = 3,
};

/**
 * The callback of a timeout. Runs on the engine's worker. If the dispatch hook accepted the
 * timeout, the callback runs in the thread that calls tw_due_run instead.
 *
 * `self` is the timeout's own handle. The callback may run before the call that schedules it has
 * returned, but not before that call has written its `*ret_handle`. The callback may call every
 * function that says "In callback: yes", and may free `arg`. It may block, but on the worker
 * everything else of the engine then waits. It must return: a longjmp or an exception out of it is
 * undefined behaviour. If it ends the worker's thread (pthread_exit), the engine has failed
 * (TW_ENGINE_FAILED). tw_engine_stop then hands back the timeouts that are left.
 */
typedef void tw_callback(struct tw_handle self, void *arg);

/**
 * The optional finaliser of a timeout. Runs exactly once, however the timeout ended. After a cancel
 * it runs on the thread that cancelled, before the cancel returns. After the callback it runs on
 * the callback's thread. If tw_engine_stop hands the timeout back, the finaliser runs after the
 * hand-back hook, on the same thread. If a kind has a finaliser, only the finaliser may release
 * `arg`.
 */
typedef void tw_finaliser(void *arg, enum tw_end end);

/** Bits of a kind's `flags`. */
enum tw_kind_flag {
	/**
	 * Only the engine's owner may schedule, reschedule and cancel timeouts of this kind. The
	 * owner is the thread inside a bracket of the loop (loop.h), or a callback on the worker.
	 * The calls on such a timeout need no atomic operation. Other threads get -EPERM, but may
	 * read such timeouts (tw_timeout_get, tw_timeout_state).
	 */
	TW_KIND_FLAG_OWNER_ONLY = 1,
	/**
	 * The callback runs on the worker (in loop mode: in the poll), even if the engine has a
	 * dispatch hook. Meant for callbacks so short that handing them over would cost more. A
	 * schedule and a cancel of such a timeout together cost about 20 ns more. An engine with a
	 * dispatch hook claims up to 244 due timeouts before it runs the first of them. So if the
	 * callback of one of them cancels another one, the cancel returns TW_CANCEL_RUNNING.
	 */
	TW_KIND_FLAG_INLINE = 2,
};

/**
 * The common part of all timeouts of one kind. It must stay unchanged and alive until all timeouts
 * of the kind have ended.
 */
struct tw_kind {
	/** sizeof(struct tw_kind); TW_KIND sets it. */
	uint32_t size;
	/** Bits of enum tw_kind_flag. */
	uint32_t flags;
	/** Required. */
	tw_callback *callback;
	/** Optional. If it is NULL, the caller may use and release `arg` as soon as the timeout has
	 * ended. */
	tw_finaliser *finaliser;
	/**
	 * How much later than its deadline a timeout of this kind may fire, so that one wake-up of
	 * the worker serves several timeouts. Among the ticks in this range the engine chooses one
	 * that other timeouts are likely to use, too. Nanoseconds, below 2^63; 0: as soon as
	 * possible.
	 */
	uint64_t slack_ns;
	/** A pointer of the program's own, the same for all timeouts of the kind. A callback reads
	 * it with tw_run_get. */
	void *context;
};

/**
 * Initialises a struct tw_kind from designated fields; all other fields are 0. For C, and for C++20
 * and later: `TW_KIND_WITH(.callback = on_ping, .flags = TW_KIND_FLAG_OWNER_ONLY, .context = &peer)`
 */
/* clang-format off */
#define TW_KIND_WITH(...) \
	{ .size = (uint32_t)sizeof(struct tw_kind), __VA_ARGS__ }
/** Initialises a struct tw_kind: `static const struct tw_kind ping = TW_KIND(on_ping, NULL);` */
#define TW_KIND(callback, finaliser) TW_KIND_SLACK((callback), (finaliser), 0)
/**
 * The same as TW_KIND, with slack:
 * `static const struct tw_kind gc = TW_KIND_SLACK(on_gc, NULL, TW_S(1));`
 */
#define TW_KIND_SLACK(callback, finaliser, slack_ns) \
	{ (uint32_t)sizeof(struct tw_kind), 0, (callback), (finaliser), (slack_ns), NULL }
/** The same as TW_KIND, for a kind that only the engine's owner may use
 * (TW_KIND_FLAG_OWNER_ONLY). */
#define TW_KIND_OWNER_ONLY(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_OWNER_ONLY, (callback), (finaliser), 0, NULL }
/** The same as TW_KIND, for a kind whose callback runs on the worker even if the engine has a
 * dispatch hook (TW_KIND_FLAG_INLINE). */
#define TW_KIND_INLINE(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_INLINE, (callback), (finaliser), 0, NULL }
/* clang-format on */

/** What tw_cancel found. */
enum tw_cancel_outcome {
	/** This call has cancelled the timeout. The callback will not run. The caller may use and
	 * release `arg`. But if the timeout's kind has a finaliser, the finaliser has run, and has
	 * released `arg`. */
	TW_CANCEL_DONE = 0,
	/** The timeout had ended before: another cancel came first, or tw_engine_stop handed it
	 * back. */
	TW_CANCEL_CANCELLED = 1,
	/** The timeout had expired before, and its callback has ended. For `arg` the same holds as
	 * after TW_CANCEL_DONE. */
	TW_CANCEL_EXPIRED = 2,
	/** The timeout has expired, or it is periodic and an earlier call has stopped it. Its
	 * callback runs now, or is about to run on the worker or in an executor. */
	TW_CANCEL_RUNNING = 3,
	/** The timeout had ended before, and its memory now serves another timeout. How it ended is
	 * no longer known. */
	TW_CANCEL_STALE = 4,
	/**
	 * The timeout is periodic, and this call has stopped it while a run is under way or about
	 * to begin. That run may continue, and no other begins. `arg` is in use until the run has
	 * ended. If there is a finaliser, it runs after the run, on the run's thread.
	 */
	TW_CANCEL_STOPPED = 5,
};

/** What tw_reschedule found. */
enum tw_reschedule_outcome {
	/** The timeout has the new deadline. */
	TW_RESCHEDULE_DONE = 0,
	/** Too late: the timeout was cancelled, or tw_engine_stop handed it back. */
	TW_RESCHEDULE_CANCELLED = 1,
	/** Too late: the timeout has expired, and its callback has ended. */
	TW_RESCHEDULE_EXPIRED = 2,
	/** Too late: the timeout has expired, and its callback runs now, or is about to run on the
	 * worker or in an executor. */
	TW_RESCHEDULE_RUNNING = 3,
};

/** The states of a timeout. */
enum tw_state {
	/** The timeout is pending, or it is periodic and runs. */
	TW_STATE_INIT = 0,
	/** The timeout was cancelled, or tw_engine_stop handed it back. */
	TW_STATE_CANCELLED = 1,
	/** The timeout expired. Its callback has run, runs now, or is about to run. */
	TW_STATE_EXPIRED = 2,
};

/** The data of a timeout, which tw_timeout_get fills in. */
struct tw_timeout {
	/** Set by the caller to sizeof(struct tw_timeout). */
	size_t size;
	/** The engine; valid as long as the engine exists. */
	struct tw_engine *engine;
	/** The kind with which the timeout was scheduled. */
	const struct tw_kind *kind;
	/** The argument with which the timeout was scheduled. */
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
 * The callback runs at the first tick boundary after the deadline. It is never early. It may be
 * late by up to one tick, plus the slack of its kind, plus the time that the system and earlier
 * callbacks take. In loop mode it runs in the first poll that is not before the deadline
 * (tw_engine_poll). The call starts the engine if it is not started yet. If the call fails, the
 * callback and the finaliser are never called.
 *
 * The callback may rely on `*ret_handle`, because the call writes it before the callback can run,
 * and never afterwards. So `*ret_handle` may lie in an object that the callback, the finaliser or
 * the hand-back hook frees. On failure `*ret_handle` is not changed.
 *
 * Units: nanoseconds. 0 or less: the timeout runs in the worker's next turn, and its deadline is
 *   the last moment before the present tick. If the delay is TW_NEVER, or too large to represent,
 *   the timeout never expires by itself.
 * Threads: any.
 * In callback: yes. If the engine has a `pending_limit`, the running timeout occupies one place.
 *   The first schedule on the same engine inside the callback takes over this place, so the limit
 *   does not reject it. (In an attempt of a retried task, the task's next wait has already taken
 *   over the place.)
 * Progress: wait-free, or lock-free if the engine has a `pending_limit`. There are four exceptions.
 *   If the thread's stock of memory is empty, refilling it is lock-free, and makes a system call at
 *   times. The thread's first call to an engine allocates its ring. The first schedule on an engine
 *   starts the worker, but does not wait for it. If cancelled timeouts pile up because the worker
 *   cannot keep up, every 1,024th call of a thread pauses. If these timeouts take 16 MiB or more,
 *   the thread yields its processor; from 64 MiB on it sleeps 1 to 10 ms. If 10 or more threads use
 *   the engine, this sleep is multiplied by a fifth of their number, up to 1 s. The pause is never
 *   longer, whatever the worker does.
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
 *   worker's next turn. TW_NEVER: the timeout never expires by itself.
 * Order: timeouts run tick by tick, in no particular order inside a tick. With TW_ENGINE_ORDERED or
 *   TW_ENGINE_LOOP they run in the order of deadlines. Timeouts of one thread with equal deadlines
 *   then run in the order in which the thread scheduled them, unless memory runs out. If a timeout
 *   reaches the wheel after its tick, it runs at the next opportunity. Such late timeouts do not
 *   run by deadline, but in the order in which their thread scheduled them. An engine without
 *   either flag has four exceptions. If more than 65,536 calls of a thread wait for the worker,
 *   later calls may overtake earlier ones. If a thread cancels timeouts before they reach the
 *   wheel, the timeouts that it schedules next may run as early as the cancelled ones would have.
 *   If a late timeout is cancelled, the last of the late timeouts takes its place. If the worker
 *   stalls for a whole revolution of a hashed wheel, the overdue timeouts run in the order of its
 *   slots.
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
 * Cancels a timeout, and reports exactly whether this call cancelled it.
 *
 * The call finds the engine by the handle, so the timeout may be of any engine. If the call returns
 * TW_CANCEL_DONE, the finaliser has run, and the library no longer touches `arg`.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes. For the callback's own timeout it returns TW_CANCEL_RUNNING, or
 *   TW_CANCEL_STOPPED if the timeout is periodic.
 * Progress: wait-free; lock-free while other threads reschedule the same timeout.
 * Lifetime: the handle stays safe to use for ever, even after tw_engine_destroy.
 * Returns: an enum tw_cancel_outcome; -EINVAL for a handle of zeros; -EPERM (only the owner may
 *   cancel it, and the caller is another thread); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_cancel(struct tw_handle handle);

/**
 * Cancels a timeout like tw_cancel, and waits until a running callback (and the finaliser) has
 * ended.
 *
 * Units: `timeout_ns`, the longest time to wait, in nanoseconds; TW_NEVER: without bound; 0 or
 *   less: do not wait.
 * Threads: any.
 * In callback: yes. For the callback's own timeout, and on the worker of the timeout's engine, it
 *   does not wait and returns as tw_cancel. If two callbacks on different threads wait for each
 *   other, they deadlock. A callback in an executor also deadlocks if it waits for another callback
 *   that only its own thread would run.
 * Progress: blocks.
 * Lifetime: as tw_cancel.
 * Returns: as tw_cancel, with TW_CANCEL_EXPIRED, TW_CANCEL_CANCELLED or TW_CANCEL_STALE after
 *   waiting; TW_CANCEL_DONE after waiting for the last run of a periodic timeout that this call
 *   stopped; -ETIMEDOUT: the callback still runs (if the timeout is periodic, for the last time).
 * Since: 0.1.0.
 */
TW_API int tw_cancel_wait(struct tw_handle handle, int64_t timeout_ns);

/**
 * Gives a pending timeout another deadline, `delay_ns` from now, and reports exactly whether it
 * did.
 *
 * After TW_RESCHEDULE_DONE the callback does not run for a deadline earlier than the new one,
 * unless a later reschedule sets an earlier one. Handle, argument and kind stay the same. The new
 * deadline is used as it is, without the slack of the kind. If the new deadline is later, the call
 * is one compare-and-swap and does not notify the worker. The worker may therefore wake up once
 * more at the old deadline.
 *
 * Units: as tw_schedule; 0 or less: the timeout runs in the worker's next turn; TW_NEVER: it never
 *   expires by itself.
 * Threads: any. If two calls reschedule one timeout at once, the later one counts.
 * In callback: yes. For the callback's own timeout it returns TW_RESCHEDULE_RUNNING: schedule a new
 *   timeout instead, or call tw_period_next if the timeout is periodic.
 * Progress: lock-free: a step is repeated only if another thread's step on the same timeout has
 *   succeeded. If the worker sleeps beyond the new deadline, a system call wakes it.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_reschedule_outcome; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN);
 *   -ESTALE: the timeout had ended before, and its memory now serves another one; -EPERM (only the
 *   owner may reschedule it, and the caller is another thread); -ECHILD.
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
 * Reads engine, kind, argument, deadline and state of a timeout. All of them are values of one
 * moment. If the timeout is periodic and has ended, the argument is NULL.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; lock-free while the timeout is periodic and runs.
 * Lifetime: the program or the finaliser may release `arg` as soon as the timeout ends. Therefore
 *   use `arg` only if the timeout cannot end meanwhile.
 * Returns: 0; -EINVAL (zeros, NULL, `size` too small or over 4,096); -ESTALE; -ECHILD. If `size` is
 *   larger than this library's, up to 4,096, it is accepted and the tail is zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_get(struct tw_handle handle, struct tw_timeout *ret_timeout);

/**
 * Writes one line about a timeout, for logs: its identity, state, deadline, kind and argument. The
 * text may change with any version.
 *
 * Units: `bytes`: the size of the buffer. The deadline is in seconds of the engine's clock.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_timeout_get.
 * Lifetime: none. The kind and the argument are printed as addresses, and not used.
 * Returns: the length of the whole text, as snprintf does; -EINVAL (`buffer` is NULL, and `bytes`
 *   is not 0). If the length is not less than `bytes`, the text in the buffer is cut. If the handle
 *   is zeros, or names an ended timeout or one of a forked process's parent, the text says so.
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
	/** The deadline of this run, in the engine's time. */
	int64_t deadline_ns;
	/** How late the run is now: the engine's time at the call of tw_run_get, minus
	 * `deadline_ns`. */
	int64_t late_ns;
};

/**
 * Returns the engine, kind, context, deadline and lateness of the innermost callback that runs on
 * the calling thread. With it a callback finds its engine and context without global variables.
 *
 * It also works in functions that a callback calls, in a finaliser after a callback, in a late
 * hook, and in a drop hook. In the callbacks of keyed timeouts and retries, the kind, the context
 * and the argument belong to the library.
 *
 * Units: nanoseconds of the engine's clock.
 * Threads: the one that runs the callback: the worker, a polling thread, or an executor's.
 * In callback: yes, and only there.
 * Progress: wait-free; reads the clock.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, or `size` too small or over 4,096); -EPERM: no callback runs on the
 *   calling thread. That is also the case in a finaliser after a cancel and in a hand-back.
 * Since: 0.1.0.
 */
TW_API int tw_run_get(struct tw_run *ret_run);

/**
 * Returns whether a handle names a timeout, pending or ended; false only for TW_HANDLE_NONE.
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
 * Returns whether two handles name the same timeout.
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
