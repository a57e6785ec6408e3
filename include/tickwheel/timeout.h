/* SPDX-License-Identifier: MIT */
/**
 * @file timeout.h
 * Scheduling, cancelling and asking about one timeout.
 *
 * A timeout is INIT until exactly one of three things ends it: it expires (its callback runs), it
 * is cancelled, or tw_engine_stop hands it back. Its handle is a value that may be copied, kept and
 * used for ever: after the end it names nothing, and never somebody else's timeout. Who passes one to
 * another thread does so as with any data, by release and acquire.
 */
#ifndef TICKWHEEL_TIMEOUT_H
#define TICKWHEEL_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Names a timeout. A handle of zeros names none. Its fields are the library's. */
struct tw_handle {
	void *node;
	uint64_t birth;
};

/** As a delay or a deadline: never expires by itself; pending until cancelled or handed back. */
#define TW_NEVER INT64_MAX

/** How a timeout ended. */
enum tw_end {
	TW_END_EXPIRED = 0,
	TW_END_CANCELLED = 1,
	TW_END_HANDED_BACK = 2,
	/** Expired, refused by the executor, and given to the drop hook in place of its callback. */
	TW_END_DROPPED = 3,
};

/**
 * The callback of a timeout. Runs on the engine's worker, or where the dispatch hook ran it.
 *
 * `self` is the timeout's own handle. The callback may run before the schedule has returned, and the
 * schedule has written its `*ret_handle` by then. The callback may
 * call every function that says "In callback: yes", block (everything else of the engine then
 * waits), and free `arg`. It must return: a longjmp or an exception out of it is undefined
 * behaviour. When it ends its thread (pthread_exit), the engine is shut down as by a failure, and
 * tw_engine_stop hands back what is left.
 */
typedef void tw_callback(struct tw_handle self, void *arg);

/**
 * The optional finaliser of a timeout. Runs exactly once, however the timeout ended: on the thread
 * that cancelled, before the cancel returns; after the callback, on its thread; after stop's
 * hand-back. With a finaliser, it alone releases `arg`.
 */
typedef void tw_finaliser(void *arg, enum tw_end end);

/** Bits of a kind's `flags`. */
enum tw_kind_flag {
	/**
	 * Only the engine's owner schedules, reschedules and cancels timeouts of this kind: the
	 * thread that polls (loop.h), or callbacks on the worker. That costs no atomic operation.
	 * Other threads get -EPERM; they may ask about them. Excepted is what a callback schedules
	 * for the past, or reschedules to it: until it runs, any thread may cancel it.
	 */
	TW_KIND_FLAG_OWNER_ONLY = 1,
	/**
	 * Runs on the worker (in loop mode: in the poll), though the engine has a dispatch hook: for
	 * callbacks that are so short that to hand them over would cost more. Scheduling one takes a
	 * few nanoseconds longer.
	 */
	TW_KIND_FLAG_INLINE = 2,
};

/** What timeouts of one kind have in common. Constant, and alive as long as any of them. */
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
	 * So much later than its deadline a timeout of this kind may fire, so that the worker wakes
	 * up for several at once: of the ticks in question the engine takes one that others are
	 * likely to take too. Nanoseconds, below 2^63; 0: as soon as possible.
	 */
	uint64_t slack_ns;
};

/** Initialises a struct tw_kind: `static const struct tw_kind ping = TW_KIND(on_ping, NULL);` */
/* clang-format off */
#define TW_KIND(callback, finaliser) TW_KIND_SLACK((callback), (finaliser), 0)
/** The same, with slack: `static const struct tw_kind gc = TW_KIND_SLACK(on_gc, NULL, 1000000000);` */
#define TW_KIND_SLACK(callback, finaliser, slack_ns) \
	{ (uint32_t)sizeof(struct tw_kind), 0, (callback), (finaliser), (slack_ns) }
/** The same as TW_KIND, of a kind that is only the owner's. */
#define TW_KIND_OWNER_ONLY(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_OWNER_ONLY, (callback), (finaliser), 0 }
/** The same as TW_KIND, of a kind that runs on the worker, whatever executor there is. */
#define TW_KIND_INLINE(callback, finaliser) \
	{ (uint32_t)sizeof(struct tw_kind), TW_KIND_FLAG_INLINE, (callback), (finaliser), 0 }
/* clang-format on */

/** What tw_cancel found. */
enum tw_cancel_outcome {
	/** Cancelled by this call; the callback will not run, `arg` is the caller's again (unless
	 * its kind has a finaliser: that has released it). */
	TW_CANCEL_DONE = 0,
	/** Ended before by another cancel, or handed back by stop. */
	TW_CANCEL_CANCELLED = 1,
	/** Expired before, and its callback has ended: `arg` as with TW_CANCEL_DONE. */
	TW_CANCEL_EXPIRED = 2,
	/** Expired (or periodic, and stopped before), and its callback runs now or is on its way to an
	 * executor. */
	TW_CANCEL_RUNNING = 3,
	/** Ended before, and its memory serves another timeout by now; how it ended is forgotten.
	 */
	TW_CANCEL_STALE = 4,
	/** Periodic, stopped by this call, while a run of it is under way or on its way to an executor:
	 * that one may go on, no other begins. `arg` is in use until then; its finaliser, if it has one,
	 * runs after it, on its thread. */
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

/** The life of a timeout. */
enum tw_state {
	TW_STATE_INIT = 0,
	TW_STATE_CANCELLED = 1,
	TW_STATE_EXPIRED = 2,
};

/** What tw_timeout_get tells. */
struct tw_timeout {
	/** Set by the caller to sizeof(struct tw_timeout). */
	size_t size;
	/** The engine; valid as long as the engine. */
	struct tw_engine *engine;
	/** As scheduled. */
	const struct tw_kind *kind;
	/** As scheduled. */
	void *arg;
	/** When it is due, in the engine's time (tw_engine_now), or TW_NEVER; as rescheduled last.
	 * Where its kind has slack, that has been made use of. */
	int64_t deadline_ns;
	/** INIT, CANCELLED or EXPIRED. */
	enum tw_state state;
};

/**
 * Schedules a timeout `delay_ns` from now.
 *
 * The callback runs at the first tick boundary after the deadline: never early, late by up to one
 * tick, the slack of its kind, and what the system and the callbacks before it take. Starts the
 * engine if nobody has. On failure the callback and the finaliser are never called.
 *
 * The callback may rely on `*ret_handle`: it is written before the callback can run, and never
 * after. So it may lie in an object that the callback, the finaliser or the hand-back frees. On
 * failure it is untouched.
 *
 * Units: nanoseconds; negative is 0, which runs at the next tick boundary; too large to represent
 *   and TW_NEVER: never expires by itself.
 * Threads: any.
 * In callback: yes; the first schedule on the same engine inside a callback takes over the pending
 *   slot of the timeout that runs, so it is not refused by the limit. (In an attempt of a task that is
 *   retried, the task's next wait has taken it over already.)
 * Progress: wait-free (with a limit of pending timeouts lock-free), save where a thread's stock of
 *   memory is refilled (lock-free, at times a system call), a thread's first call to an engine
 *   (allocates its ring) and the first call of all (starts the worker, never waits for it). When
 *   cancelled timeouts pile up because the worker cannot keep up, every 1,024th call of a thread
 *   gives way to it: from 16 MiB on it yields, from 64 MiB on it sleeps 1 to 10 ms; never longer,
 *   whatever the worker does.
 * Lifetime: `kind` until the timeout has ended; `arg` is passed on, not looked at.
 * Returns: 0 and `*ret_handle` (may be NULL); -EINVAL (engine, kind, its callback, flags, slack);
 *   -E2BIG
 *   (a kind of a newer header with fields set that this library does not know, or of a `size` over
 *   4,096); -ERANGE (delay INT64_MIN: what 2^63 becomes in a signed number); -EAGAIN (the limit of
 *   pending timeouts is reached); -ENOMEM; -ESHUTDOWN; -ECHILD; -EPERM (a kind that is only the
 *   owner's); from the first call also what tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API int tw_schedule(struct tw_engine *engine, int64_t delay_ns, const struct tw_kind *kind,
		       void *arg, struct tw_handle *ret_handle);

/**
 * Schedules a timeout for a point of the engine's time; does not read the clock. `*ret_handle` is
 * written before the callback can run, as by tw_schedule.
 *
 * Units: nanoseconds of the engine's clock (tw_engine_now; by default the time of CLOCK_MONOTONIC,
 *   which fires nothing early where the deadline is computed from CLOCK_MONOTONIC); what is so
 *   far in the past that its tick boundary has passed runs in the worker's next turn, TW_NEVER
 *   never.
 * Order: timeouts run tick by tick, without order inside a tick (unless TW_ENGINE_ORDERED). What
 *   comes too late for its tick runs at the next opportunity, not by deadline but in the order in
 *   which its thread scheduled it, with two exceptions: while more than 65,536 of a thread's calls
 *   wait for the worker, later ones may overtake; and one that is scheduled after its thread has
 *   cancelled others that had not reached the wheel may go as early as they would have. After a
 *   stall of the worker by a revolution of its wheel the order is that of slots (unless
 *   TW_ENGINE_ORDERED).
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule; -ERANGE for the deadline INT64_MIN.
 * Since: 0.1.0.
 */
TW_API int tw_schedule_at(struct tw_engine *engine, int64_t deadline_ns, const struct tw_kind *kind,
			  void *arg, struct tw_handle *ret_handle);

/**
 * Cancels a timeout, and tells precisely whether it did.
 *
 * The handle knows its engine, so a handle of any engine is right here. On TW_CANCEL_DONE the
 * finaliser has run, and nothing of the library touches `arg` after the return.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; its own timeout is TW_CANCEL_RUNNING, a periodic one TW_CANCEL_STOPPED.
 * Progress: wait-free; lock-free while others reschedule the same timeout.
 * Lifetime: the handle stays safe for ever, after tw_engine_destroy too.
 * Returns: an enum tw_cancel_outcome; -EINVAL for a handle of zeros; -EPERM (a timeout that is only
 *   the owner's, on another thread); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_cancel(struct tw_handle handle);

/**
 * As tw_cancel, and if the callback runs now, waits until it (and the finaliser) has ended.
 *
 * Units: `timeout_ns`, how long to wait at most; TW_NEVER without bound; 0 or less: do not wait.
 * Threads: any.
 * In callback: yes; for its own timeout, and on the worker of the timeout's engine, it does not
 *   wait and returns as tw_cancel. Two callbacks of different threads that wait for each other
 *   deadlock; so does one in an executor that waits for what only its own thread would run.
 * Progress: blocks.
 * Lifetime: as tw_cancel.
 * Returns: as tw_cancel, with TW_CANCEL_EXPIRED, TW_CANCEL_CANCELLED or TW_CANCEL_STALE after waiting;
 *   TW_CANCEL_DONE after waiting for the last run of a periodic timeout that this call stopped;
 *   -ETIMEDOUT: it still runs (and if it is periodic, for the last time).
 * Since: 0.1.0.
 */
TW_API int tw_cancel_wait(struct tw_handle handle, int64_t timeout_ns);

/**
 * Gives a pending timeout another deadline, `delay_ns` from now, and tells precisely whether it did.
 *
 * After TW_RESCHEDULE_DONE the callback does not run for an earlier deadline than the new one,
 * save where a later reschedule says so; all else (handle, argument, kind) stays. The new deadline
 * is taken as it is, without the slack of the kind. To a later one it is one compare-and-swap, and
 * the worker is not told: it wakes up at the old time at most once.
 *
 * Units: as tw_schedule; TW_NEVER: never expires by itself.
 * Threads: any. Of two at once for one timeout the later one counts.
 * In callback: yes; its own timeout is TW_RESCHEDULE_RUNNING: schedule a new one instead (of a
 *   periodic one: tw_period_next).
 * Progress: lock-free: only another thread's success on the same timeout repeats a step; a system
 *   call where the worker sleeps beyond the new deadline.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_reschedule_outcome; -EINVAL for a handle of zeros; -ERANGE (INT64_MIN);
 *   -ESTALE: ended before, and its memory serves another timeout by now; -EPERM (a timeout that is
 *   only the owner's, on another thread); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_reschedule(struct tw_handle handle, int64_t delay_ns);

/**
 * As tw_reschedule, for a point of the engine's time; does not read the clock.
 *
 * Units: as tw_schedule_at: a deadline in the past runs in the worker's next turn.
 * Threads: any. Of two at once for one timeout the later one counts.
 * In callback: yes, as tw_reschedule.
 * Progress: as tw_reschedule.
 * Lifetime: as tw_cancel.
 * Returns: as tw_reschedule; -ERANGE for the deadline INT64_MIN.
 * Since: 0.1.0.
 */
TW_API int tw_reschedule_at(struct tw_handle handle, int64_t deadline_ns);

/**
 * The state of a timeout.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; its own is TW_STATE_EXPIRED, of a periodic one TW_STATE_INIT.
 * Progress: wait-free.
 * Lifetime: as tw_cancel.
 * Returns: an enum tw_state; -EINVAL for a handle of zeros; -ESTALE; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_state(struct tw_handle handle);

/**
 * Engine, kind, argument, deadline and state of a timeout, all of one moment. Of a periodic one that
 * has ended, NULL as the argument.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; lock-free while a periodic one runs.
 * Lifetime: `arg` may be released by whoever owns it as soon as the timeout ends: use it only where
 *   that is excluded.
 * Returns: 0; -EINVAL (zeros, NULL, `size` too small or over 4,096); -ESTALE; -ECHILD. A larger
 *   `size` up to that is accepted and the tail zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_timeout_get(struct tw_handle handle, struct tw_timeout *ret_timeout);

TW_END_DECLS

#endif
