/* SPDX-License-Identifier: MIT */
/**
 * @file durable.h
 * Timers that outlive the process: a layer above the engine. It is in the library tickwheel-durable
 * (pkg-config tickwheel-durable), which exists if tickwheel was built with the feature `durable`.
 * docs/durable.md has an example, the promises and their costs.
 *
 * A timer is a kind (which has a name), a payload of bytes, and a deadline on the wall clock. A
 * program opens a set of timers, which a store keeps. A schedule returns at once; its
 * acknowledgement follows when the timer is in the store. An acknowledged timer runs at least once,
 * unless it is cancelled: also after kill -9, and after a power loss if the store's level (enum
 * tw_durable_level) includes it.
 *
 * Codes besides those of error.h:
 *
 * | code         | meaning                                                                      |
 * |--------------|------------------------------------------------------------------------------|
 * | -EINPROGRESS | the acknowledgement will bring the outcome                                   |
 * | -EIO         | the store has failed; no call is acknowledged any more                       |
 * | -ENOSPC      | the store is full, and takes no new timers                                   |
 * | -EMSGSIZE    | a payload or a key is too large                                              |
 * | -ENOENT      | no such timer is in the store                                                |
 * | -ENOTSUP     | the store keeps a lower level than was asked for, or lacks a function        |
 * | -ETIME       | the wall clock is far behind the time of an earlier commit                   |
 */
#ifndef TICKWHEEL_DURABLE_H
#define TICKWHEEL_DURABLE_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/durable_name.h>
#include <tickwheel/durable_stats.h>
#include <tickwheel/durable_store.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>
#include <tickwheel/retry.h>

TW_BEGIN_DECLS

/** An open set of timers, made by tw_durable_open and freed by tw_durable_close. After the open,
 * one thread of the set makes all calls to the store; comments call it the set's thread. */
struct tw_durable;

/** The result of a run, besides those of enum tw_retry_result (TW_RETRY_DONE and the others). */
enum tw_durable_result {
	/** This run of a periodic timer has ended. The timer runs again at `*self->next_due_ns`,
	 * under the same id, and its attempts count from 1 again. */
	TW_DURABLE_NEXT = 4,
};

/** The argument of a run's callback. */
struct tw_durable_self {
	struct tw_durable *durable;
	/** Names the timer for ever. If a run is repeated after a crash, the id is the same. */
	struct tw_durable_id id;
	/** The number of this run: 1, 2, ... */
	uint64_t attempt;
	/** The deadline, on the wall clock. */
	int64_t due_ns;
	/** The callback sets `*next_due_ns` before it returns TW_DURABLE_NEXT. Its first value is
	 * `due_ns`. */
	int64_t *next_due_ns;
	/** The `version` with which the timer was scheduled. */
	uint32_t version;
	/** 0: the timer has no key. */
	uint32_t key_bytes;
	const void *key;
	/**
	 * With a shared store: a number that is greater for each later run of the timer. If the run
	 * changes another system, that system must reject the change if it has seen a greater
	 * number for this id. 0: this is the first run, and the timer is not stored yet; or the
	 * store is not shared.
	 */
	uint64_t fence;
};

/**
 * The callback of a timer. Runs where the engine's callbacks run: on the worker, or in an executor.
 *
 * Returns one of these. TW_RETRY_DONE: the timer ends. TW_DURABLE_NEXT: the timer is periodic, and
 * runs again at `*self->next_due_ns`. TW_RETRY_AGAIN: the timer runs again after the next delay of
 * the kind's schedule. TW_RETRY_GIVE_UP, or any other number: the timer becomes a dead letter.
 * TW_RETRY_PENDING: tw_durable_complete reports the result later, or has reported it already.
 * `payload` is valid during the run.
 */
typedef int tw_durable_run(const struct tw_durable_self *self, const void *payload, size_t bytes);

/** Bits of a kind's `flags`. */
enum tw_durable_kind_flag {
	/** A run begins only when its start is in the store, so it waits for one commit. If the
	 * process dies after that, the timer becomes a dead letter at the next open, and does not
	 * run again. */
	TW_DURABLE_KIND_AT_MOST_ONCE = 1,
	/** Deadlines count elapsed time (CLOCK_BOOTTIME, so suspends count). A step of the wall
	 * clock neither moves these deadlines nor delays these runs. Calls still take and report
	 * times of the wall clock: docs/durable.md says how the set converts them, and what happens
	 * after a reboot. Do not change this bit while the store has timers of the kind. */
	TW_DURABLE_KIND_ELAPSED = 2,
};

/** The common part of a kind's timers. Must stay unchanged and alive until the set is closed. */
struct tw_durable_kind {
	/** sizeof(struct tw_durable_kind). */
	uint32_t size;
	/** Bits of enum tw_durable_kind_flag. */
	uint32_t flags;
	/** 1 to 63 characters of a-z, 0-9, '_', '.' and '-'. The store keeps this name, because the
	 * address of a function means nothing to the next process. */
	const char *name;
	/** Required. */
	tw_durable_run *run;
	/** The delays of TW_RETRY_AGAIN, with their jitter. NULL: TW_RETRY_AGAIN counts as
	 * TW_RETRY_GIVE_UP. */
	const struct tw_retry_schedule *schedule;
	/** The most runs of a timer. If the last of them does not end it, the timer becomes a dead
	 * letter. 0: no bound. */
	uint64_t attempts_max;
	/** The most timers of the kind that run at once, including those whose result is pending.
	 * 0: no bound. */
	uint32_t running_max;
	/** Must be 0. */
	uint32_t reserved;
	/** If a timer is late by more than this, by the wall clock, the set calls the hook
	 * `overdue` of the set's options instead of `run`. In nanoseconds; 0: no bound. */
	uint64_t overdue_max_ns;
	/** How long a new timer waits for its commit, in nanoseconds; at most 60 s. If the timer
	 * ends meanwhile, by a cancel or by its run, it is never written. Its acknowledgement comes
	 * after this wait. The wait ends early if the timer's run does not end at once, or if a
	 * call must find the timer in the store, such as tw_durable_flush. It also ends early with
	 * tw_durable_close, with a step of a clock, and when such timers take much of
	 * `staged_bytes_max`. A timer with a key does not wait. If the value is 0, or less than the
	 * set's `window_ns`, the timer waits for one window. */
	uint64_t linger_ns;
};

/* clang-format off */
/** Initialises a kind without a bound on its attempts: TW_DURABLE_KIND("mail", on_mail, NULL). */
#define TW_DURABLE_KIND(name, run, schedule) \
	{ (uint32_t)sizeof(struct tw_durable_kind), 0, (name), (run), (schedule), 0, 0, 0, 0, 0 }
/* clang-format on */

/** The acknowledgement of a call. */
struct tw_durable_ack {
	struct tw_durable_id id;
	/** The `context` that was given to the call. */
	void *context;
	/** An enum tw_durable_outcome. */
	int32_t outcome;
	/** 0, or a negative code: -EIO with TW_DURABLE_UNKNOWN, -ENOSPC if the store was full. */
	int32_t status;
};

/** Receives acknowledgements on the set's thread, in the order of the commits. Must not block. In
 * this hook the calls that wait for the store, such as tw_durable_flush, return -EDEADLK. */
typedef void tw_durable_acked(void *context, const struct tw_durable_ack *acks, size_t count);

/** The states of a set. If several hold at once, the set reports the state that forbids most, in
 * the order FAILED, CLOCK_STEPPED, CUT, FULL, SLOW. */
enum tw_durable_state {
	TW_DURABLE_STATE_OPEN = 0,
	/** The store has failed. Nothing is written or acknowledged any more, and no run begins.
	 * Close the set, and open it again. */
	TW_DURABLE_STATE_FAILED = 1,
	/** The wall clock has stepped forward by more than `clock_step_max_ns`. Until the clock is
	 * set back, or tw_durable_resume with a NULL kind accepts the new time, no run begins,
	 * except runs of kinds that count elapsed time. */
	TW_DURABLE_STATE_CLOCK_STEPPED = 2,
	/** The store is full, and rejects new timers. The ends of timers are still written. */
	TW_DURABLE_STATE_FULL = 3,
	/** The store's log has grown beyond `log_bytes_max`, for example because another process
	 * still reads an old state of the store. A schedule returns -EAGAIN. Timers still run and
	 * end. */
	TW_DURABLE_STATE_SLOW = 4,
	/** The server of a shared store cannot be reached. New timers wait in memory, up to
	 * `staged_bytes_max`. No call is acknowledged. A run whose start the server has stored may
	 * still begin, until shortly before the session ends. The set connects again by itself. */
	TW_DURABLE_STATE_CUT = 5,
};

/** The options of a set; tw_durable_options_init fills in the defaults. */
struct tw_durable_options {
	/** sizeof(struct tw_durable_options). */
	size_t size;
	/** Must be 0. */
	uint64_t flags;
	/** The store, for example one made by tw_durable_store_file. The struct is copied, and
	 * tw_durable_open takes the store over. If the open fails, it closes the store, unless the
	 * options themselves are wrong. */
	struct tw_durable_store store;
	/** The least level that the store must keep, an enum tw_durable_level; default: DISK. */
	uint32_t level;
	/** The most operations of a commit, 1 to 1,000,000 (shared: 4,000); default 10,000. */
	uint32_t batch_max;
	/** How long a commit waits, after its first change, for more changes; in nanoseconds.
	 * Default 2 ms, at most 60 s. 0: a commit begins as soon as the one before has ended. */
	uint64_t window_ns;
	/** The memory for timers that wait for their commit, in bytes; 64 KiB to 2^40; default
	 * 64 MiB. If it is used up, a schedule returns -EAGAIN. */
	uint64_t staged_bytes_max;
	/** The set keeps in memory the timers that are due within this time from now, in
	 * nanoseconds; 1 s to 7 days, default 2 minutes. */
	uint64_t near_ns;
	/** The most timers that are read from the store into memory; 1 to 2^32, default 1,000,000.
	 * If some kinds count elapsed time, half of this number and of `near_bytes_max` is for
	 * their timers. */
	uint64_t near_max;
	/** The most bytes of timers that are read into memory, with their payloads; 64 KiB to 2^40,
	 * default 512 MiB. One timer may exceed it. New timers that are due within `near_ns` are
	 * kept in memory in any case. */
	uint64_t near_bytes_max;
	/** The most bytes of a payload; default 4,096, at most 1 MiB. */
	uint32_t payload_max;
	/** How many timers run each second, in the order of their deadlines, if they became due
	 * while the set was closed or by a step of the wall clock. 1 or more, default 10,000. */
	uint32_t catch_up_per_s;
	/** The most dead letters: if there are more, the oldest are removed for good. 0: no
	 * bound. */
	uint64_t dead_max;
	/** How long a dead letter is kept, in ns of the wall clock, up to INT64_MAX. 0: for
	 * ever. */
	uint64_t dead_keep_ns;
	/** The most bytes of the store's log that the next commits cannot use again (see log_bytes
	 * in struct tw_durable_stats). If there are more, the state is TW_DURABLE_STATE_SLOW.
	 * Default 1 GiB. 0: no bound. The set checks it once a second. */
	uint64_t log_bytes_max;
	/** A run that begins later than this after its deadline is counted in `late` of struct
	 * tw_durable_stats. In nanoseconds; default 1 s. 0: no run is counted. */
	uint64_t late_ns;
	/** If the wall clock steps forward by more than this, no run of a kind on the wall clock
	 * begins (TW_DURABLE_STATE_CLOCK_STEPPED). In nanoseconds, 1 s or more; default 1 day. */
	uint64_t clock_step_max_ns;
	/** NULL: acknowledgements are not reported. */
	tw_durable_acked *acked;
	/** The first argument of `acked`, `state` and `overdue`. */
	void *context;
	/** Called on the set's thread when the state changes. `state` is an enum tw_durable_state;
	 * `error` is 0 or a negative code. NULL: not called. */
	void (*state)(void *context, int state, int error);
	/** Called instead of `run` for a timer that is too late (`overdue_max_ns` of its kind), on
	 * the same thread. The hook's result counts as that of the run. NULL: such timers are only
	 * counted, and end. */
	int (*overdue)(void *context, const struct tw_durable_self *self, const void *payload,
		       size_t bytes);
};

/** Bits of a timer's `flags`. */
enum tw_durable_spec_flag {
	/** `due_ns` is a time of the wall clock. Without this bit it is a delay from now. */
	TW_DURABLE_AT = 1,
	/** Schedules a timer again, under the id in `id`, after its outcome was TW_DURABLE_UNKNOWN.
	 * If the store has the timer, the outcome is TW_DURABLE_PRESENT. */
	TW_DURABLE_RESEND = 2,
};

/** A timer to schedule. */
struct tw_durable_spec {
	/** sizeof(struct tw_durable_spec). */
	uint32_t size;
	/** Bits of enum tw_durable_spec_flag. */
	uint32_t flags;
	/** One of the kinds with which the set was opened. */
	const struct tw_durable_kind *kind;
	/** A delay in nanoseconds; with TW_DURABLE_AT, nanoseconds since 1970. Not TW_NEVER. */
	int64_t due_ns;
	/** Copied. */
	const void *payload;
	uint32_t payload_bytes;
	/** Any number; the callback receives it. */
	uint32_t version;
	/** Copied. At most one timer of a store has this key; NULL: no key. */
	const void *key;
	/** 1 to 255, or 0 without a key. */
	uint32_t key_bytes;
	/** Must be 0. */
	uint32_t reserved;
	/** A pointer of the program's own, which the acknowledgement contains. */
	void *context;
	/** Used with TW_DURABLE_RESEND only. */
	struct tw_durable_id id;
};

/** The data of a timer in the store. */
struct tw_durable_info {
	/** Set by the caller to sizeof(struct tw_durable_info). */
	size_t size;
	struct tw_durable_id id;
	int64_t due_ns;
	const struct tw_durable_kind *kind;
	/** How many runs have begun, as far as the store knows. */
	uint64_t attempt;
	uint32_t version;
	uint32_t payload_bytes;
};

/**
 * Fills options with the defaults.
 *
 * Units: `size`, sizeof(struct tw_durable_options).
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 and `*ret_options`; -EINVAL (NULL, a size that is too small); -E2BIG.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_options_init(struct tw_durable_options *ret_options, size_t size);

/**
 * Opens a set of timers on an engine, and reads the timers that are due soon.
 *
 * Units: `count`, how many kinds: 1 to 1,024.
 * Threads: any.
 * In callback: no.
 * Progress: blocks for the store.
 * Lifetime: until tw_durable_close. The engine must not be stopped or destroyed before the close.
 * Returns: 0 and `*ret_durable`; -EINVAL (NULL, an option out of its range, a wrong name, size,
 *   `flags` or schedule of a kind, two kinds of one name); -E2BIG; -ENOMEM; -ENOTSUP (the store
 *   keeps a lower level, cannot bound dead letters, or cannot keep kinds that count elapsed time);
 *   -ETIME (the wall clock is more than `clock_step_max_ns` behind the time of an earlier commit);
 *   -ECHILD; also the codes of the store's `open` and of tw_engine_start.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_open(struct tw_engine *engine,
				  const struct tw_durable_kind *const *kinds, size_t count,
				  const struct tw_durable_options *options,
				  struct tw_durable **ret_durable);

/**
 * Closes a set. The set accepts no more new timers, stores those that are staged, and waits for
 * running callbacks. Timers that have not run stay in the store. If the result of a run is pending,
 * the timer runs again after the next open.
 *
 * Units: `timeout_ns` in nanoseconds; TW_NEVER waits without end.
 * Threads: one. When it has returned 0 or -EIO, no other call for the set may be under way or
 *   follow.
 * In callback: no (-EDEADLK in a run of this set, and in its hooks).
 * Progress: blocks.
 * Lifetime: the set is freed, unless the call returns -ETIMEDOUT, -EDEADLK or -ECHILD.
 * Returns: 0, also for NULL; -ETIMEDOUT: a callback still runs, call again; -EIO: the store had
 *   failed, and nothing has been acknowledged since then; -EDEADLK; -ECHILD: in a forked child,
 *   where the memory is not freed.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_close(struct tw_durable *durable, int64_t timeout_ns);

/**
 * Schedules a timer. The call returns at once: the timer is staged in memory, and an
 * acknowledgement follows when it is stored. Before the acknowledgement a crash may lose the timer.
 * The timer may also run before its acknowledgement, unless it has a key, or its kind has
 * TW_DURABLE_KIND_AT_MOST_ONCE.
 *
 * The outcome in the acknowledgement is DONE, ABSORBED (the timer ended before it was stored),
 * PRESENT, or UNKNOWN. The `status` is -EIO with UNKNOWN, and -ENOSPC if the store was full. If a
 * timer with the same key is in the store, the acknowledgement has the id of that timer.
 *
 * Units: those of struct tw_durable_spec.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free, except that it allocates memory; a system call if the set's thread sleeps.
 * Lifetime: `spec` during the call, its kind until tw_durable_close.
 * Returns: 0 and `*ret_id` (may be NULL); -EINVAL (NULL, a kind that the set does not have, flags,
 *   a payload or key of NULL with bytes, TW_NEVER); -ERANGE (a delay so long that the deadline does
 *   not fit 64 bits, or INT64_MIN); -EMSGSIZE (a payload above `payload_max`, a key above 255);
 *   -EAGAIN (`staged_bytes_max` is used up, or the state is SLOW); -ENOMEM; -EIO (the store has
 *   failed); -ENOSPC (the store is full); -ESHUTDOWN (the set is being closed); -E2BIG; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_schedule(struct tw_durable *durable,
				      const struct tw_durable_spec *spec,
				      struct tw_durable_id *ret_id);

/**
 * Schedules many timers, in the order of the array, as tw_durable_schedule does. The call stops at
 * the first timer that is not accepted.
 *
 * Units: timers.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_durable_schedule, for each timer.
 * Lifetime: as tw_durable_schedule.
 * Returns: how many were accepted, with their ids in `ret_ids` (may be NULL); if none was accepted,
 *   the code of the first. -EINVAL also for a `count` of 0 or above INT_MAX.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_schedule_many(struct tw_durable *durable,
					   const struct tw_durable_spec *specs, size_t count,
					   struct tw_durable_id *ret_ids);

/**
 * Cancels a timer. If the timer is in memory, the result is final.
 *
 * | result               | meaning                                                              |
 * |----------------------|----------------------------------------------------------------------|
 * | TW_DURABLE_ABSORBED  | never ran, and will never be stored; no acknowledgement follows      |
 * | TW_DURABLE_DONE      | the timer never ran, and will not run in this process                |
 * |                      | the acknowledgement follows when the cancel is durable               |
 * | TW_DURABLE_ATTEMPTED | like DONE, but an earlier attempt has run                            |
 * | TW_DURABLE_RUNNING   | too late, and no acknowledgement follows                             |
 * |                      | if the run returns TW_RETRY_AGAIN, the timer runs again              |
 * | TW_DURABLE_ABSENT    | the timer has ended already                                          |
 * | -EINPROGRESS         | the timer is not in memory                                           |
 * |                      | the acknowledgement says DONE, ATTEMPTED, RUNNING or ABSENT          |
 *
 * With a shared store the acknowledgement decides in each case, because another process may have
 * run the timer.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; for the callback's own timer it returns TW_DURABLE_RUNNING.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: ids stay valid for ever.
 * Returns: an enum tw_durable_outcome; -EINPROGRESS; -EINVAL (NULL, an id of zeros); -ENOMEM; -EIO;
 *   -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_cancel(struct tw_durable *durable, struct tw_durable_id id,
				    void *context);

/**
 * Cancels the timer that has a key. Calls for the same key take effect in the order in which they
 * were made.
 *
 * Units: `bytes`, 1 to 255.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: `key` during the call.
 * Returns: -EINPROGRESS, and the acknowledgement has the outcome; -EINVAL; -EMSGSIZE; -ENOMEM;
 *   -EIO; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_cancel_key(struct tw_durable *durable, const void *key, size_t bytes,
					void *context);

/**
 * Gives a timer another deadline on the wall clock. The count of its attempts stays as it is.
 *
 * Units: `due_ns`, nanoseconds since 1970; not TW_NEVER.
 * Threads: any.
 * In callback: yes. For the callback's own timer the acknowledgement says RUNNING; return
 *   TW_DURABLE_NEXT instead.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: as tw_durable_cancel.
 * Returns: -EINPROGRESS, and the acknowledgement says DONE, RUNNING or ABSENT; -EINVAL; -ENOMEM;
 *   -EIO; -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_reschedule(struct tw_durable *durable, struct tw_durable_id id,
					int64_t due_ns, void *context);

/**
 * Reports the result of a run that has returned TW_RETRY_PENDING, or will return it.
 *
 * Units: `attempt` as in struct tw_durable_self of the run; `result`: TW_RETRY_DONE, TW_RETRY_AGAIN
 *   or TW_RETRY_GIVE_UP.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free.
 * Lifetime: as tw_durable_cancel.
 * Returns: 0; -ESTALE (this attempt already has a result, or is not in memory); -EINVAL; -EIO;
 *   -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_complete(struct tw_durable *durable, struct tw_durable_id id,
				      uint64_t attempt, enum tw_retry_result result);

/**
 * Waits until all earlier calls of the calling thread are acknowledged. A schedule followed by a
 * flush is a synchronous schedule. Threads that flush at the same time share a commit.
 *
 * Units: `timeout_ns` in nanoseconds; TW_NEVER waits without end.
 * Threads: any.
 * In callback: no (-EDEADLK in a run of this set, and in its hooks).
 * Progress: blocks for the store. The call ends the window of the present batch.
 * Lifetime: none.
 * Returns: 0; -ETIMEDOUT; -EIO (the store has failed); -EDEADLK; -EINVAL; -ENOMEM; -ESHUTDOWN;
 *   -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_flush(struct tw_durable *durable, int64_t timeout_ns);

/**
 * Looks up a timer by its id. The result includes the changes that the calling thread has staged
 * before.
 *
 * Units: `timeout_ns` as in tw_durable_flush.
 * Threads: any.
 * In callback: no (-EDEADLK).
 * Progress: blocks for the store.
 * Lifetime: none.
 * Returns: 0 and `*ret_info`; -ENOENT; -ETIMEDOUT; -EIO; -EDEADLK; -EINVAL; -ENOMEM; -ESHUTDOWN;
 *   -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_find(struct tw_durable *durable, struct tw_durable_id id,
				  struct tw_durable_info *ret_info, int64_t timeout_ns);

/**
 * Looks up a timer by its key. Otherwise the same as tw_durable_find.
 *
 * Units: `bytes`, 1 to 255.
 * Threads: any.
 * In callback: no (-EDEADLK).
 * Progress: blocks for the store.
 * Lifetime: `key` during the call.
 * Returns: as tw_durable_find; -EMSGSIZE.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_find_key(struct tw_durable *durable, const void *key, size_t bytes,
				      struct tw_durable_info *ret_info, int64_t timeout_ns);

/**
 * Lists at most `max` timers in the order of their deadlines; those of equal deadlines by id. The
 * list begins after the timer `after`, which need not exist any more, or with the first timer if
 * `after` is NULL. Timers of kinds that the set does not have are left out.
 *
 * Units: `max`, 1 to 65,536; `timeout_ns` as in tw_durable_flush. The `size` of the first element
 *   of `ret_infos` is set by the caller, and counts for all.
 * Threads: any.
 * In callback: no (-EDEADLK).
 * Progress: blocks for the store. The set's thread commits nothing meanwhile, so ask for a few
 *   timers at a time.
 * Lifetime: none; `after` may be an element of `ret_infos`.
 * Returns: how many; as tw_durable_find otherwise, without -ENOENT.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_list(struct tw_durable *durable, const struct tw_durable_info *after,
				  struct tw_durable_info *ret_infos, size_t max,
				  int64_t timeout_ns);

/**
 * Pauses a kind: no run of the kind begins from now on. Timers that become due wait, in order.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: until tw_durable_resume or tw_durable_close. The pause is not stored. After an open,
 *   only the kinds that the program tickwheel-durable has marked in the file are paused.
 * Returns: 0; -EINVAL; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_pause(struct tw_durable *durable, const struct tw_durable_kind *kind);

/**
 * Ends the pause of a kind, until tw_durable_close: its runs begin again. If `kind` is NULL, the
 * call instead accepts a step of the wall clock (TW_DURABLE_STATE_CLOCK_STEPPED).
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: none.
 * Returns: 0; -EINVAL; -ENOMEM; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_resume(struct tw_durable *durable, const struct tw_durable_kind *kind);

/**
 * Lists at most `max` dead letters in the order of their ids. The list begins after the id `after`,
 * or with the first dead letter if `after` is zeros.
 *
 * Units: `max`, 1 to 65,536; `timeout_ns` as in tw_durable_flush. The `size` of the first element
 *   of `ret_infos` is set by the caller, and counts for all.
 * Threads: any.
 * In callback: no (-EDEADLK).
 * Progress: blocks for the store.
 * Lifetime: none.
 * Returns: how many; as tw_durable_find otherwise, without -ENOENT.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_dead_list(struct tw_durable *durable, struct tw_durable_id after,
				       struct tw_durable_info *ret_infos, size_t max,
				       int64_t timeout_ns);

/**
 * Makes a dead letter a timer again, under its id, but without its key. Its attempts are counted
 * again from 0.
 *
 * Units: `due_ns`, nanoseconds since 1970; not TW_NEVER.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: none.
 * Returns: -EINPROGRESS, and the acknowledgement says DONE or ABSENT; -EINVAL; -ENOMEM; -EIO;
 *   -ESHUTDOWN; -ECHILD.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_dead_revive(struct tw_durable *durable, struct tw_durable_id id,
					 int64_t due_ns, void *context);

/**
 * Removes a dead letter from the store.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free, except that it allocates memory.
 * Lifetime: none.
 * Returns: as tw_durable_dead_revive.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_dead_drop(struct tw_durable *durable, struct tw_durable_id id,
				       void *context);

TW_END_DECLS

#endif
