/* SPDX-License-Identifier: MIT */
/**
 * @file retry.h
 * Tasks that are tried again until they are done: a layer above the engine. docs/retry.md describes
 * the states of a task, what ends it, and the edge cases.
 *
 * A queue (struct tw_retry) belongs to an engine and holds a bounded number of tasks. A task is a
 * kind and an argument. An attempt is a callback that returns the result: done, again, give up, or
 * pending. If the result is pending, tw_retry_complete reports the final one later. Between
 * attempts the task waits for the delays of its schedule. Each accepted task ends exactly once, and
 * then the `ended` hook of its kind runs.
 */
#ifndef TICKWHEEL_RETRY_H
#define TICKWHEEL_RETRY_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/memory.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;
/** A queue of tasks, made by tw_retry_create and freed by tw_retry_destroy. */
struct tw_retry;

/** The largest number of tasks that a queue may hold. */
#define TW_RETRY_PENDING_MAX 16777216u

/** The handle of a task. A handle that an attempt's callback receives also names that attempt. A
 * handle of zeros names no task. The fields are for the library only. */
struct tw_retry_handle {
	void *task;
	uint64_t generation;
	uint64_t attempt;
};

/** The result of an attempt. */
enum tw_retry_result {
	/** The task is done. */
	TW_RETRY_DONE = 0,
	/** The task is tried again after the next delay of the schedule. If no delay is left, it
	 * ends with TW_RETRY_END_GIVEN_UP. */
	TW_RETRY_AGAIN = 1,
	/** The task is not tried again, and ends with TW_RETRY_END_GIVEN_UP. */
	TW_RETRY_GIVE_UP = 2,
	/** The attempt is under way. tw_retry_complete reports its result, from any thread, perhaps
	 * before the attempt's callback returns. Valid only as a return value. */
	TW_RETRY_PENDING = 3,
};

/** How a task ended. */
enum tw_retry_end {
	TW_RETRY_END_DONE = 0,
	/** An attempt returned TW_RETRY_GIVE_UP, or the attempts, the time or the schedule are used
	 * up. */
	TW_RETRY_END_GIVEN_UP = 1,
	/** The queue was full and its policy dropped the task. Or the task had to wait, and the
	 * engine had no memory or no place within its limit. Or an executor rejected the task, and
	 * the engine drops rejected timeouts (TW_REJECTION_DROP). */
	TW_RETRY_END_DROPPED = 2,
	TW_RETRY_END_CANCELLED = 3,
	/** The engine was stopped. */
	TW_RETRY_END_STOPPED = 4,
};

/**
 * The callback of one attempt. Runs on the engine's worker, or in the thread that calls tw_due_run.
 * It may do whatever a callback may do. `self` names the task and this attempt. `attempt` counts
 * from 1.
 *
 * Returns an enum tw_retry_result; any other number counts as TW_RETRY_GIVE_UP. If an attempt ends
 * its thread (pthread_exit), that also counts as TW_RETRY_GIVE_UP.
 *
 * On an engine with a `pending_limit`, the first timeout that a callback schedules usually takes
 * over the callback's place. In an attempt, the task's next wait takes that place. So each timeout
 * that the attempt itself schedules needs a place of its own. If a child is forked inside an
 * attempt and returns from it, the task does not continue in the child, and no hook runs there.
 */
typedef int tw_retry_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt);

/**
 * The hook for the end of a task. Runs exactly once; this is the place to release `arg`. The
 * library does not touch `arg` afterwards. `attempts` is the number of attempts that have begun.
 *
 * If an attempt ends the task, the hook runs after the attempt, on the same thread. If a call ends
 * the task (tw_retry_complete, tw_retry_cancel, or a submit that drops it), the hook runs inside
 * that call. If a stop of the engine ends the task, the hook runs on the worker or in the thread
 * that stops the engine. The hook may call everything that is allowed in a callback. When it runs,
 * the task's place in the queue is free, unless another task has already taken it.
 */
typedef void tw_retry_ended(void *arg, enum tw_retry_end end, uint64_t attempts);

/** How a schedule defines its delays. */
enum tw_retry_form {
	/** The delays in `delays_ns`, one after the other. */
	TW_RETRY_FORM_TABLE = 0,
	/** `base_ns` first, then each delay is `growth_percent` of the one before, up to
	 * `cap_ns`. */
	TW_RETRY_FORM_EXPONENTIAL = 1,
	/** Every 5 s, without end: for the failback of an RPC client. */
	TW_RETRY_FORM_FAILBACK = 2,
	/** 15 s, 15 s, 30 s, 3 m, 10 m, 20 m, 30 m, 30 m, 30 m, 60 m, 3 h, 3 h, 3 h, 6 h, 6 h: for
	 * the repeated notification of a payment. */
	TW_RETRY_FORM_PAYMENT = 3,
};

/** Bits of a schedule's `flags`. */
enum tw_retry_schedule_flag {
	/** The last delay is repeated for ever. Without this bit the task ends when the delays are
	 * used up. For TW_RETRY_FORM_TABLE and TW_RETRY_FORM_PAYMENT. */
	TW_RETRY_FLAG_REPEAT_LAST = 1,
};

/** Values for `jitter_percent`: how much of each delay is random. */
enum tw_retry_jitter {
	TW_RETRY_JITTER_NONE = 0,
	/** Each wait is between half of the delay and the whole delay. */
	TW_RETRY_JITTER_EQUAL = 50,
	/** Each wait is between 0 and the whole delay. */
	TW_RETRY_JITTER_FULL = 100,
};

/** The delays between attempts. A schedule must stay unchanged and alive until all tasks that use
 * it have ended. */
struct tw_retry_schedule {
	/** sizeof(struct tw_retry_schedule). */
	uint32_t size;
	/** Bits of enum tw_retry_schedule_flag. */
	uint32_t flags;
	/** An enum tw_retry_form. */
	uint32_t form;
	/** 0 to 100: each wait is chosen at random between (100 - jitter_percent) % of the delay
	 * and the whole delay. TW_NEVER stays TW_NEVER. */
	uint32_t jitter_percent;
	/** TABLE: the delays in nanoseconds, each 0 or more; there must be at least one. */
	const int64_t *delays_ns;
	uint64_t delay_count;
	/** EXPONENTIAL: the first delay in nanoseconds, 1 or more. */
	int64_t base_ns;
	/** EXPONENTIAL: the longest delay, at least `base_ns`; TW_NEVER: no upper bound. */
	int64_t cap_ns;
	/** EXPONENTIAL: each delay in per cent of the one before, 100 to 100,000; 200 doubles each
	 * delay. Fractions of a nanosecond are cut off. So if `base_ns` is below 100 and the
	 * percentage is small, the delays may not grow at all. */
	uint64_t growth_percent;
};

/* clang-format off */
/** Initialises a schedule from an array of delays. When the table is used up, the task gives up. */
#define TW_RETRY_TABLE(array) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, TW_RETRY_FORM_TABLE, 0, (array), \
	  sizeof(array) / sizeof((array)[0]), 0, 0, 0 }
/** Initialises a schedule of growing delays. It has no end, so you should bound the attempts or the
 * time of the kind. */
#define TW_RETRY_EXPONENTIAL(base_ns, cap_ns, growth_percent, jitter_percent) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, TW_RETRY_FORM_EXPONENTIAL, \
	  (jitter_percent), NULL, 0, (base_ns), (cap_ns), (growth_percent) }
/** Initialises one of the ready-made schedules: TW_RETRY_READY(TW_RETRY_FORM_PAYMENT). */
#define TW_RETRY_READY(form) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, (form), 0, NULL, 0, 0, 0, 0 }
/* clang-format on */

/** The common part of all tasks of one kind. It must stay unchanged and alive until all tasks of
 * the kind have ended. */
struct tw_retry_kind {
	/** sizeof(struct tw_retry_kind). */
	uint32_t size;
	/** Must be 0. */
	uint32_t flags;
	/** Required. */
	tw_retry_attempt *attempt;
	/** NULL: there is no hook, and the library never touches `arg`. */
	tw_retry_ended *ended;
	/** Required. */
	const struct tw_retry_schedule *schedule;
	/** The most attempts; 0: no bound. */
	uint64_t attempts_max;
	/**
	 * The longest time from the submit to the beginning of an attempt. If the next wait would
	 * end later than this, the task ends at once instead of waiting. The bound does not apply
	 * to the first attempt. Nanoseconds below 2^63; 0: no bound.
	 */
	uint64_t time_max_ns;
};

/* clang-format off */
/** Initialises a struct tw_retry_kind without a bound on the time. */
#define TW_RETRY_KIND(attempt, ended, schedule, attempts_max) \
	{ (uint32_t)sizeof(struct tw_retry_kind), 0, (attempt), (ended), (schedule), (attempts_max), 0 }
/* clang-format on */

/** What happens to a new task if the queue is full. */
enum tw_retry_policy {
	/** The new task is rejected (-EAGAIN), and the caller keeps its argument. */
	TW_RETRY_REJECT = 0,
	/** The new task is dropped: its hook runs, but no attempt does. */
	TW_RETRY_DROP_NEWEST = 1,
	/**
	 * The oldest task is dropped: among the tasks that wait for an attempt or for
	 * tw_retry_complete, the one that was submitted first. If there is no such task, the new
	 * one is rejected. That is the case when each task is inside an attempt, or in a call that
	 * is ending or continuing the task. The new task is also rejected, and no task is dropped,
	 * if the engine's own `pending_limit` has no place for one more timeout. The reason is that
	 * the new task needs its timeout before the old task is dropped.
	 */
	TW_RETRY_DROP_OLDEST = 2,
};

/** Options of a queue. tw_retry_options_init fills in the defaults. */
struct tw_retry_options {
	/** sizeof(struct tw_retry_options), set by tw_retry_options_init. */
	size_t size;
	/** Must be 0. */
	uint64_t flags;
	/** The most tasks at once, 1 to TW_RETRY_PENDING_MAX. A task occupies one place from its
	 * submit to its end, also between attempts. Default 1,000. */
	uint32_t pending_limit;
	/** An enum tw_retry_policy. Default TW_RETRY_REJECT. */
	uint32_t policy;
	/** The seed of the jitter. With the same seed, equal submits in the same order get the same
	 * delays. Default 0: a different seed for each queue. */
	uint64_t seed;
	/** The number of tasks to allocate memory for in advance, up to `pending_limit`. Default 0:
	 * memory is allocated when it is needed. */
	uint64_t reserve;
	/** The allocator. It must stay alive for the rest of the process. The memory of tasks is
	 * never released: later queues use it again. NULL: aligned_alloc and free. Default NULL. */
	const struct tw_allocator *allocator;
};

/** The outcome of tw_retry_submit. */
enum tw_retry_submit_outcome {
	TW_RETRY_SUBMIT_ACCEPTED = 0,
	/** TW_RETRY_DROP_NEWEST: the queue was full, and the hook has run with
	 * TW_RETRY_END_DROPPED. */
	TW_RETRY_SUBMIT_DROPPED = 1,
};

/** The outcome of tw_retry_cancel. */
enum tw_retry_cancel_outcome {
	/** This call has cancelled the task: no attempt will run, and the hook has run. */
	TW_RETRY_CANCEL_DONE = 0,
	/**
	 * An attempt runs, or another thread is completing, dropping or cancelling the task. No
	 * further attempt will begin. When the attempt or the other call has ended, the hook runs.
	 * If another call decided the end, the hook gets that end. If the attempt returned
	 * TW_RETRY_DONE or TW_RETRY_GIVE_UP, the hook gets the end that belongs to this result.
	 * Otherwise it gets TW_RETRY_END_CANCELLED. This outcome is also possible if the task has
	 * just ended, and its hook runs now or has just run.
	 */
	TW_RETRY_CANCEL_RUNNING = 1,
	/** The task had ended before. */
	TW_RETRY_CANCEL_ENDED = 2,
};

/**
 * Fills in the default options.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, or `size` smaller than the first version of the struct); -E2BIG
 *   (`size` over 4,096).
 * Since: 0.1.0.
 */
TW_API int tw_retry_options_init(struct tw_retry_options *ret_options, size_t size);

/**
 * Creates a queue of tasks on an engine.
 *
 * Units: see struct tw_retry_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_retry_destroy. The engine must outlive every call on the queue except
 *   tw_retry_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_retry`; -EINVAL (NULL, unknown bits or policy, a limit of 0 or beyond the
 *   maximum, a reserve beyond the limit, an allocator without a function); -E2BIG (non-zero fields
 *   that this library does not know, `size` over 4,096); -ENOMEM; -ECHILD (an engine of the
 *   parent).
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_retry_create(struct tw_engine *engine,
				      const struct tw_retry_options *options,
				      struct tw_retry **ret_retry);

/**
 * Frees a queue in which all tasks have ended, as is the case when its engine is stopped. NULL is
 * accepted.
 *
 * Units: none.
 * Threads: any, once; no thread may use the queue any more. Handles stay safe for ever.
 * In callback: yes, but not in an attempt or a hook of this queue (-EBUSY).
 * Progress: wait-free, except for releasing memory.
 * Lifetime: the queue exists until the call returns 0.
 * Returns: 0; -EBUSY: a task has not ended, its hook still runs, or the last timeout of a cancelled
 *   task has not left the worker or the executor.
 * Since: 0.1.0.
 */
TW_API int tw_retry_destroy(struct tw_retry *retry);

/**
 * Submits a task: the first attempt runs after `delay_ns`, and each later one after the next delay
 * of the schedule, counted from the end of the attempt before.
 *
 * With TW_RETRY_DROP_OLDEST and a full queue, the hook of the dropped task runs inside this call.
 * If that hook itself submits to the full queue, its submit drops another task, whose hook runs
 * inside the first hook, and so on. Your hooks must end this recursion.
 *
 * The attempt and the hook may rely on `*ret_handle`: the call writes it before either of them can
 * run, and never after. On failure `*ret_handle` is not changed.
 *
 * Units: `delay_ns` in nanoseconds, as in tw_schedule: a negative delay counts as 0, and one that
 *   is too large as TW_NEVER.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free. It allocates tasks, 64 at a time, if the queue holds more of them than ever
 *   before. To drop a task, it reads one number for each 64 tasks, and searches the tasks
 *   themselves where these numbers are out of date.
 * Lifetime: `kind` and its schedule until the task has ended; `arg` is passed on and not looked at.
 * Returns: an enum tw_retry_submit_outcome, and `*ret_handle` (may be NULL), of zeros if the new
 *   task was dropped; -EINVAL (queue, kind, its attempt, flags, time, or anything in its schedule);
 *   -E2BIG (a kind or schedule of a newer header with fields set that this library does not know);
 *   -ERANGE (delay INT64_MIN); -EAGAIN (the queue is full and rejects, or the engine's limit of
 *   pending timeouts is reached); -ENOMEM; -ESHUTDOWN; -ECHILD; -EPERM (as tw_engine_start returns
 *   it, from the first call on an engine). On failure neither the attempt nor the hook is ever
 *   called.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_retry_submit(struct tw_retry *retry, int64_t delay_ns,
					       const struct tw_retry_kind *kind, void *arg,
					       struct tw_retry_handle *ret_handle);

/**
 * Submits a task that the caller has already tried without success. Otherwise the same as
 * tw_retry_submit. The task's first attempt runs after the first delay of the schedule. The
 * caller's own attempt is not counted. As with tw_retry_submit, `*ret_handle` is written before an
 * attempt or the hook can run.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_retry_submit.
 * Lifetime: as tw_retry_submit.
 * Returns: as tw_retry_submit, except for -ERANGE.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_retry_submit_failed(struct tw_retry *retry,
						      const struct tw_retry_kind *kind, void *arg,
						      struct tw_retry_handle *ret_handle);

/**
 * Reports the result of an attempt that has returned TW_RETRY_PENDING, or will return it. `handle`
 * names the attempt.
 *
 * If this call comes before the attempt's callback has returned, this result counts, whatever the
 * callback returns afterwards. The task then continues when the callback has returned. If the
 * callback has already returned, the task continues in this call, which also runs the hook if the
 * task ends.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free.
 * Lifetime: the handle stays safe to use for ever, even after tw_retry_destroy.
 * Returns: 0; -EINVAL (a handle of zeros, one that cannot name a task, or one that names no
 *   attempt, such as the handle that a submit returns; a result other than DONE, AGAIN, GIVE_UP);
 *   -ESTALE: too late, because the attempt was completed before, or the task has been dropped,
 *   cancelled or stopped meanwhile; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_retry_complete(struct tw_retry_handle handle, enum tw_retry_result result);

/**
 * Cancels a task. The call does not wait for a pending attempt: tw_retry_complete will return
 * -ESTALE for that attempt.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; inside the task's own attempt or hook it returns TW_RETRY_CANCEL_RUNNING.
 * Progress: lock-free.
 * Lifetime: as tw_retry_complete.
 * Returns: an enum tw_retry_cancel_outcome; -EINVAL: a handle of zeros, or one that cannot name a
 *   task; -ECHILD. If neither a submit nor an attempt has made the handle, but it looks like the
 *   handle of a task, the behaviour is undefined.
 * Since: 0.1.0.
 */
TW_API int tw_retry_cancel(struct tw_retry_handle handle);

/**
 * Returns how many tasks have been accepted and have not ended.
 *
 * Units: tasks.
 * Threads: any.
 * In callback: yes; in a task's hook, that task no longer counts.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more, never more than the limit; -EINVAL for NULL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_retry_pending(struct tw_retry *retry);

/**
 * Returns one delay of a schedule, without its jitter.
 *
 * Units: `number` counts from 0; the result is in nanoseconds.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; takes `number` steps, or fewer if the cap is reached before.
 * Lifetime: `schedule` is read during the call.
 * Returns: 0 or more; -EINVAL, -E2BIG (as tw_retry_submit); -ERANGE: the schedule ends before this
 *   delay.
 * Since: 0.1.0.
 */
TW_API int64_t tw_retry_delay(const struct tw_retry_schedule *schedule, uint64_t number);

/**
 * Returns whether a timeout that a hook of the engine receives (hand-back, dispatch, late, drop)
 * belongs to a queue of tasks. If so, the timeout's argument belongs to the library.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0.
 * Since: 0.1.0.
 */
TW_API int tw_retry_owns(const struct tw_kind *kind);

TW_END_DECLS

#endif
