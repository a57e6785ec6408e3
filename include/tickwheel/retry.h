/* SPDX-License-Identifier: MIT */
/**
 * @file retry.h
 * Tasks that are tried again until they are done: a layer above the engine. docs/retry.md has the
 * states of a task, what ends it, and the edges.
 *
 * A queue (struct tw_retry) belongs to an engine and holds a bounded number of tasks. A task is a
 * kind and an argument; its attempt is a callback that says what came of it: done, again, give up,
 * or pending, and then tw_retry_complete says it later. Between attempts the task waits as its
 * schedule says. Each accepted task ends exactly once, and then its kind's `ended` hook runs.
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
struct tw_retry;

/** The largest number of tasks that a queue may hold. */
#define TW_RETRY_PENDING_MAX 16777216u

/** Names a task; inside and after an attempt, that attempt too. Zeros name none. Its fields are the
 * library's. */
struct tw_retry_handle {
	void *task;
	uint64_t birth;
	uint64_t attempt;
};

/** What came of an attempt. */
enum tw_retry_result {
	/** The task is done. */
	TW_RETRY_DONE = 0,
	/** Try again after the next delay of the schedule; when there is none left, give up. */
	TW_RETRY_AGAIN = 1,
	/** Never try again. */
	TW_RETRY_GIVE_UP = 2,
	/** It is under way; tw_retry_complete tells, from any thread, and may come before the
	 * attempt's callback returns. Only as a return value. */
	TW_RETRY_PENDING = 3,
};

/** How a task ended. */
enum tw_retry_end {
	TW_RETRY_END_DONE = 0,
	/** By an attempt that said so, or because attempts, time or the schedule are used up. */
	TW_RETRY_END_GIVEN_UP = 1,
	/** By the policy of a full queue; or there was no memory left for its next wait; or an executor
	 * refused it, and the engine drops what is refused (TW_REFUSAL_DROP). */
	TW_RETRY_END_DROPPED = 2,
	TW_RETRY_END_CANCELLED = 3,
	/** The engine was stopped. */
	TW_RETRY_END_STOPPED = 4,
};

/**
 * One attempt. Runs on the engine's worker, or where the dispatch hook ran it; may do what a
 * callback may. `self` names the task and this attempt. `attempt` counts from 1.
 *
 * Returns an enum tw_retry_result; any other number is TW_RETRY_GIVE_UP. An attempt that ends its
 * thread (pthread_exit) has given up.
 *
 * On an engine with a limit of pending timeouts the place that a callback hands on is taken by the task's
 * next wait: what the attempt itself schedules needs a place of its own. In a child that is forked inside
 * an attempt, and returns from it, the task goes no further, and no hook runs.
 */
typedef int tw_retry_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt);

/**
 * The end of a task: runs exactly once, and releases `arg`; nothing of the library touches it
 * afterwards. `attempts`: how many were begun.
 *
 * Runs where the end is decided: after the attempt on its thread; in tw_retry_complete and
 * tw_retry_cancel before they return; in the submit that drops it; on the worker, or in the thread
 * that stops, when the engine is stopped. May call all that is allowed in a callback. The task's
 * place in the queue is free by then, unless another task has taken it over.
 */
typedef void tw_retry_ended(void *arg, enum tw_retry_end end, uint64_t attempts);

/** What a schedule is made of. */
enum tw_retry_form {
	/** `delays_ns`, one after the other. */
	TW_RETRY_FORM_TABLE = 0,
	/** `base_ns`, and then each `growth_percent` of the one before, up to `cap_ns`. */
	TW_RETRY_FORM_EXPONENTIAL = 1,
	/** Every 5 s, without end: the failback of an RPC client. */
	TW_RETRY_FORM_FAILBACK = 2,
	/** 15 s, 15 s, 30 s, 3 m, 10 m, 20 m, 30 m, 30 m, 30 m, 60 m, 3 h, 3 h, 3 h, 6 h, 6 h: the
	 * call-back of a payment. */
	TW_RETRY_FORM_PAYMENT = 3,
};

/** Bits of a schedule's `flags`. */
enum tw_retry_schedule_flag {
	/** The last delay of a table again and again, instead of giving up after it. */
	TW_RETRY_FLAG_REPEAT_LAST = 1,
};

/** For `jitter_percent`: how much of each delay is left to chance. */
enum tw_retry_jitter {
	TW_RETRY_JITTER_NONE = 0,
	/** From half of the delay to all of it. */
	TW_RETRY_JITTER_EQUAL = 50,
	/** From nothing to the delay. */
	TW_RETRY_JITTER_FULL = 100,
};

/** The delays between attempts. Constant, and alive as long as any task that goes by it. */
struct tw_retry_schedule {
	/** sizeof(struct tw_retry_schedule). */
	uint32_t size;
	/** Bits of enum tw_retry_schedule_flag. */
	uint32_t flags;
	/** An enum tw_retry_form. */
	uint32_t form;
	/** 0 to 100: a delay is between (100 - jitter_percent) % of it and all of it; TW_NEVER stays. */
	uint32_t jitter_percent;
	/** TABLE: each 0 or more, nanoseconds; at least one. */
	const int64_t *delays_ns;
	uint64_t delay_count;
	/** EXPONENTIAL: 1 or more, nanoseconds. */
	int64_t base_ns;
	/** EXPONENTIAL: at least `base_ns`; TW_NEVER: none. */
	int64_t cap_ns;
	/** EXPONENTIAL: 100 to 100,000; 200 doubles. Fractions of a nanosecond are cut off, so with a base
	 * below 100 ns a small growth may be none. */
	uint64_t growth_percent;
};

/* clang-format off */
/** Initialises a schedule from an array of delays: the table ends with giving up. */
#define TW_RETRY_TABLE(array) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, TW_RETRY_FORM_TABLE, 0, (array), \
	  sizeof(array) / sizeof((array)[0]), 0, 0, 0 }
/** Initialises a schedule that grows: without end, so bound the attempts or the time. */
#define TW_RETRY_EXPONENTIAL(base_ns, cap_ns, growth_percent, jitter_percent) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, TW_RETRY_FORM_EXPONENTIAL, \
	  (jitter_percent), NULL, 0, (base_ns), (cap_ns), (growth_percent) }
/** Initialises one of the ready-made tables: TW_RETRY_READY(TW_RETRY_FORM_PAYMENT). */
#define TW_RETRY_READY(form) \
	{ (uint32_t)sizeof(struct tw_retry_schedule), 0, (form), 0, NULL, 0, 0, 0, 0 }
/* clang-format on */

/** What tasks of one kind have in common. Constant, and alive as long as any of them. */
struct tw_retry_kind {
	/** sizeof(struct tw_retry_kind). */
	uint32_t size;
	/** 0. */
	uint32_t flags;
	/** Required. */
	tw_retry_attempt *attempt;
	/** NULL: nobody is told, and `arg` is nobody's business. */
	tw_retry_ended *ended;
	/** Required. */
	const struct tw_retry_schedule *schedule;
	/** The most attempts; 0: no bound. */
	uint64_t attempts_max;
	/**
	 * No attempt but the first begins to wait for a time later than this after the submit: the
	 * task gives up at once instead. Nanoseconds below 2^63; 0: no bound.
	 */
	uint64_t time_max_ns;
};

/* clang-format off */
/** Initialises a struct tw_retry_kind without a bound on the time. */
#define TW_RETRY_KIND(attempt, ended, schedule, attempts_max) \
	{ (uint32_t)sizeof(struct tw_retry_kind), 0, (attempt), (ended), (schedule), (attempts_max), 0 }
/* clang-format on */

/** What a full queue does with one more task. */
enum tw_retry_policy {
	/** It is refused (-EAGAIN), and the caller keeps its argument. */
	TW_RETRY_REFUSE = 0,
	/** It is dropped: its hook runs, with no attempt. */
	TW_RETRY_DROP_NEWEST = 1,
	/**
	 * The one that was submitted first, of those that wait for an attempt or for
	 * tw_retry_complete, is dropped. Where there is none, since each is inside an attempt, or in
	 * the hands of a call that ends it or goes on with it, the new one is refused. So it is, and
	 * nobody is dropped, where the engine's own limit of pending timeouts leaves no place beside those
	 * of the queue: for a moment there is one more.
	 */
	TW_RETRY_DROP_OLDEST = 2,
};

/** Options of a queue. tw_retry_options_init fills in the defaults. */
struct tw_retry_options {
	/** sizeof(struct tw_retry_options), set by tw_retry_options_init. */
	size_t size;
	/** 0. */
	uint64_t flags;
	/** The most tasks at once, 1 to TW_RETRY_PENDING_MAX. From its submit to its end a task has
	 * one place, between attempts too. Default 1,000. */
	uint32_t pending_limit;
	/** An enum tw_retry_policy. Default TW_RETRY_REFUSE. */
	uint32_t policy;
	/** What jitter comes from: the same submits in the same order get the same delays. Default 0:
	 * a seed of its own for each queue. */
	uint64_t seed;
	/** Tasks to allocate memory for ahead, up to `pending_limit`. Default 0: as they come. */
	uint64_t reserve;
	/** Where memory comes from; alive for the rest of the process. Tasks are never released,
	 * later queues use them. NULL: aligned_alloc and free. Default NULL. */
	const struct tw_allocator *allocator;
};

/** What tw_retry_submit found. */
enum tw_retry_submit_outcome {
	TW_RETRY_SUBMIT_ACCEPTED = 0,
	/** TW_RETRY_DROP_NEWEST: the queue was full, the hook has run with TW_RETRY_END_DROPPED. */
	TW_RETRY_SUBMIT_DROPPED = 1,
};

/** What tw_retry_cancel found. */
enum tw_retry_cancel_outcome {
	/** Cancelled by this call: no attempt will run, the hook has. */
	TW_RETRY_CANCEL_DONE = 0,
	/**
	 * An attempt runs, or somebody completes, drops or cancels it at this moment. No further
	 * attempt will begin; the hook runs when that is over, and says how the task ended: as that
	 * other call has it, done or given up, if the attempt says so, else cancelled. Or the task has
	 * ended, and its hook runs now, or has just run.
	 */
	TW_RETRY_CANCEL_RUNNING = 1,
	/** Ended before. */
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
 * Lifetime: until tw_retry_destroy. The engine must outlive every call that gets the queue, save
 *   destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_retry`; -EINVAL (NULL, unknown bits or policy, a limit of 0 or beyond the
 *   maximum, a reserve beyond the limit, an allocator without a function); -E2BIG (non-zero fields
 *   that this library does not know, `size` over 4,096); -ENOMEM; -ECHILD (an engine of the parent).
 * Since: 0.1.0.
 */
TW_API int tw_retry_create(struct tw_engine *engine, const struct tw_retry_options *options,
			   struct tw_retry **ret_retry);

/**
 * Frees a queue whose tasks have all ended, as they have when its engine is stopped. NULL is
 * accepted.
 *
 * Units: none.
 * Threads: any, once; nobody may use the queue any more, handles stay safe for ever.
 * In callback: yes, but not in an attempt or a hook of this queue (-EBUSY).
 * Progress: wait-free but for releasing memory.
 * Lifetime: ends.
 * Returns: 0; -EBUSY: a task has not ended, its hook still runs, or the last timeout of one that
 *   was cancelled has not left the worker or the executor.
 * Since: 0.1.0.
 */
TW_API int tw_retry_destroy(struct tw_retry *retry);

/**
 * Submits a task: the first attempt runs after `delay_ns`, and each later one after the next delay
 * of the schedule, counted from the end of the attempt before.
 *
 * With TW_RETRY_DROP_OLDEST and a full queue the dropped task's hook has run before the return. A hook
 * that submits to the full queue drops another one, whose hook runs inside it, and so on: there must be
 * an end to it.
 *
 * Attempt and hook may rely on `*ret_handle`: it is written before one of them can run, and never after.
 * On failure it has the value that it had before the call.
 *
 * Units: `delay_ns` as in tw_schedule: negative is 0, too large never.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free; allocates (64 tasks at a time) until the queue has had its most tasks at
 *   once. A drop looks at one word for each 64 tasks, and at more where ages are not known yet.
 * Lifetime: `kind` and its schedule until the task has ended; `arg` is passed on, not looked at.
 * Returns: an enum tw_retry_submit_outcome, and `*ret_handle` (may be NULL), of zeros when dropped;
 *   -EINVAL (queue, kind, its attempt, flags, time, or anything in its schedule); -E2BIG (a kind or
 *   schedule of a newer header with fields set that this library does not know); -ERANGE (delay
 *   INT64_MIN); -EAGAIN (the queue is full and refuses, or the engine's limit of pending timeouts
 *   is reached); -ENOMEM; -ESHUTDOWN; -ECHILD; -EPERM (what tw_engine_start returns, from the first
 *   call on an engine).
 *   On failure neither callback nor hook is ever called.
 * Since: 0.1.0.
 */
TW_API int tw_retry_submit(struct tw_retry *retry, int64_t delay_ns,
			   const struct tw_retry_kind *kind, void *arg,
			   struct tw_retry_handle *ret_handle);

/**
 * As tw_retry_submit, for what the caller has tried already, in vain: the first attempt of the task
 * runs after the first delay of the schedule. The caller's own attempt is not counted. `*ret_handle` is
 * written before an attempt or the hook can run, as there.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_retry_submit.
 * Lifetime: as tw_retry_submit.
 * Returns: as tw_retry_submit, but for -ERANGE.
 * Since: 0.1.0.
 */
TW_API int tw_retry_submit_failed(struct tw_retry *retry, const struct tw_retry_kind *kind,
				  void *arg, struct tw_retry_handle *ret_handle);

/**
 * Says what came of an attempt that is pending, or is going to be: of the one that `handle` names.
 *
 * Completed before its callback has returned, the attempt counts by what is said here, whatever the
 * callback returns afterwards, and goes on when it has returned; else it goes on in this call, the
 * hook included.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free.
 * Lifetime: the handle stays safe for ever, after tw_retry_destroy too.
 * Returns: 0; -EINVAL (a handle of zeros, one that cannot be of a task, or one that names no attempt, as
 *   submit's does; a result other than DONE, AGAIN, GIVE_UP); -ESTALE: too late: completed before, or the task has been
 *   dropped, cancelled or stopped meanwhile; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_retry_complete(struct tw_retry_handle handle, enum tw_retry_result result);

/**
 * Cancels a task. An attempt that is pending is not waited for: its completion will be -ESTALE.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; inside its own attempt or hook it is TW_RETRY_CANCEL_RUNNING.
 * Progress: lock-free.
 * Lifetime: as tw_retry_complete.
 * Returns: an enum tw_retry_cancel_outcome; -EINVAL for a handle of zeros, or one that cannot be of a task
 *   (what is not, and looks as if it were, is undefined); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_retry_cancel(struct tw_retry_handle handle);

/**
 * How many tasks have been accepted and have not ended.
 *
 * Units: tasks.
 * Threads: any.
 * In callback: yes; a task whose hook runs has ended.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more, never more than the limit; -EINVAL for NULL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_retry_pending(struct tw_retry *retry);

/**
 * A delay of a schedule, without its jitter.
 *
 * Units: `number` counts from 0; the result is in nanoseconds.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free; steps by `number`, until the cap.
 * Lifetime: `schedule` is read during the call.
 * Returns: 0 or more; -EINVAL, -E2BIG (as tw_retry_submit); -ERANGE: the schedule has ended before.
 * Since: 0.1.0.
 */
TW_API int64_t tw_retry_delay(const struct tw_retry_schedule *schedule, uint64_t number);

/**
 * Whether a timeout that a hook of the engine is told of (hand-back, dispatch, late) belongs to a
 * queue of tasks: then its argument is the library's.
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
