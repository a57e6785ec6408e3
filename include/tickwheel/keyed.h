/* SPDX-License-Identifier: MIT */
/**
 * @file keyed.h
 * Timeouts that are named by keys: a layer above the engine. docs/keyed.md describes the states of
 * an entry, what ends it, and the edge cases.
 *
 * A table (struct tw_keyed) belongs to an engine. A key is a string of bytes, and the table keeps a
 * copy of it. A key has at most one entry: a kind and an argument. When the entry is due, its
 * callback runs. The callback returns the delay until the entry runs again, or TW_KEYED_END. The
 * entry keeps its key during its runs and between them. Each accepted entry ends exactly once, and
 * then the `ended` hook of its kind runs.
 */
#ifndef TICKWHEEL_KEYED_H
#define TICKWHEEL_KEYED_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/memory.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;
/** A table of keyed timeouts, made by tw_keyed_create and freed by tw_keyed_destroy. */
struct tw_keyed;

/** The upper limit for the option `key_bytes_max`, in bytes. */
#define TW_KEYED_KEY_BYTES_MAX 65535u
/** The upper limit for the option `expected_keys`. A table may hold more keys, but is slower
 * then. */
#define TW_KEYED_KEYS_MAX 1073741824u
/** Returned by a callback: the entry has ended. */
#define TW_KEYED_END INT64_C(0)
/** For tw_keyed_cancel: cancel the key's entry, whatever its `life` is. */
#define TW_KEYED_ANY UINT64_C(0)

/** How an entry ended. */
enum tw_keyed_end {
	/** Its callback has run and did not ask to run again. */
	TW_KEYED_END_FIRED = 0,
	TW_KEYED_END_CANCELLED = 1,
	/** Another entry has taken its key. */
	TW_KEYED_END_REPLACED = 2,
	/** The entry had to wait again, but the engine had no memory or no place within its limit
	 * of pending timeouts. Even an entry's first wait can end like this, if the entry becomes
	 * due while the call that schedules it is still under way. Or the executor rejected the
	 * entry, and the engine drops rejected timeouts (TW_REJECTION_DROP). */
	TW_KEYED_END_DROPPED = 3,
	/** The engine was stopped. */
	TW_KEYED_END_STOPPED = 4,
};

/** The outcome of a call. Each call's documentation lists the ones that it returns. */
enum tw_keyed_outcome {
	TW_KEYED_DONE = 0,
	/** No entry has the key, or the key's entry has another `life` than the given one. */
	TW_KEYED_ABSENT = 1,
	/** An entry has the key. */
	TW_KEYED_PRESENT = 2,
	/** Done; the entry that had the key has been replaced. */
	TW_KEYED_REPLACED = 3,
	/** The entry's callback runs or is about to run, or another call is changing the entry at
	 * this moment. */
	TW_KEYED_RUNNING = 4,
};

/** The data of an entry that its callback and its hook receive. */
struct tw_keyed_self {
	struct tw_keyed *table;
	/** Points to the table's copy of the key; valid during the call. */
	const void *key;
	size_t key_bytes;
	/** The number that tw_keyed_schedule or tw_keyed_replace returned for this entry. It
	 * distinguishes the entry from all others of the key. */
	uint64_t life;
	/** How often the entry's callback has begun: 1 in the first run. */
	uint64_t runs;
};

/**
 * The callback of an entry. Runs on the engine's worker, or in the thread that calls tw_due_run. It
 * may do whatever a callback may do, also with its own key. If another entry replaces this one
 * meanwhile, this entry does not run again.
 *
 * Returns the delay until the entry's next run: nanoseconds from now, more than 0. With TW_NEVER
 * the entry keeps its key, and waits until it is rescheduled, cancelled, replaced or stopped.
 * TW_KEYED_END and all negative values end the entry. If a callback ends its thread (pthread_exit),
 * its entry has ended too.
 */
typedef int64_t tw_keyed_callback(const struct tw_keyed_self *self, void *arg);

/**
 * The hook for the end of an entry. Runs exactly once; this is the place to release `arg`. The
 * library does not touch `arg` afterwards. When the hook runs, the key is free, or another entry
 * has it.
 *
 * If the callback ends the entry, the hook runs after the callback, on the same thread. If a call
 * cancels or replaces the entry, the hook runs inside that call. If a stop of the engine ends the
 * entry, the hook runs on the worker or in the thread that stops the engine. The hook may call
 * everything that is allowed in a callback. If the hook ends its thread, the entry has ended like
 * any other, but the call in which the hook runs does not return. If that call is a replace, only a
 * lookup can then show whether the new entry has the key.
 */
typedef void tw_keyed_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end);

/** The common part of all entries of one kind. It must stay unchanged and alive until all entries
 * of the kind have ended. */
struct tw_keyed_kind {
	/** sizeof(struct tw_keyed_kind). */
	uint32_t size;
	/** Must be 0. */
	uint32_t flags;
	/** Required. */
	tw_keyed_callback *callback;
	/** NULL: there is no hook, and the library never touches `arg`. */
	tw_keyed_ended *ended;
};

/* clang-format off */
/** Initialises a struct tw_keyed_kind. */
#define TW_KEYED_KIND(callback, ended) \
	{ (uint32_t)sizeof(struct tw_keyed_kind), 0, (callback), (ended) }
/* clang-format on */

/** Options of a table. tw_keyed_options_init fills in the defaults. */
struct tw_keyed_options {
	/** sizeof(struct tw_keyed_options), set by tw_keyed_options_init. */
	size_t size;
	/** Must be 0. */
	uint64_t flags;
	/** The number of keys that the table is sized for: 1 to TW_KEYED_KEYS_MAX. The size never
	 * changes. A table may hold more keys, but then each lookup takes more steps. Default
	 * 1,024. */
	uint32_t expected_keys;
	/** The length of the longest key that is allowed, in bytes: 1 to TW_KEYED_KEY_BYTES_MAX.
	 * Keys of up to 36 bytes need no separate memory. Default 256. */
	uint32_t key_bytes_max;
	/** The seed of the hash. Default 0: a random seed for each table, so that an attacker
	 * cannot choose keys that collide. */
	uint64_t seed;
	/** The number of entries to allocate memory for in advance, at most TW_KEYED_KEYS_MAX.
	 * Default 0: memory is allocated when it is needed. */
	uint64_t reserve;
	/** The allocator of entries and long keys. It must stay alive for the rest of the process.
	 * The library's thread that gives memory back calls `release`, too. NULL: aligned_alloc
	 * and free. Default NULL. The buckets always come from the C library: 16 bytes for each
	 * expected key, and more if that number is not a power of two. */
	const struct tw_allocator *allocator;
};

/** What tw_keyed_get and tw_keyed_each report about an entry. */
struct tw_keyed_info {
	/** Set by the caller of tw_keyed_get to sizeof(struct tw_keyed_info). */
	size_t size;
	/** The kind with which the entry was scheduled. While `busy` is 1, this and `arg` are
	 * NULL. */
	const struct tw_keyed_kind *kind;
	/** The argument with which the entry was scheduled. The entry's hook may release it as soon
	 * as the entry ends. Therefore use it only if the entry cannot end meanwhile. */
	void *arg;
	/** The number that distinguishes this entry from all others of the key; 0 while `busy` is
	 * 1. */
	uint64_t life;
	/** When the entry runs next, in the engine's time, or TW_NEVER; 0 while `busy` is 1. */
	int64_t deadline_ns;
	/** 1 if the entry's callback runs, or if another call is changing the entry at this moment;
	 * otherwise 0. */
	uint64_t busy;
};

/**
 * Called by tw_keyed_each for each entry. `key` is valid during the call. Returns 0 to continue the
 * walk; any other value ends it.
 */
typedef int tw_keyed_visit(void *context, const void *key, size_t key_bytes,
			   const struct tw_keyed_info *info);

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
TW_API int tw_keyed_options_init(struct tw_keyed_options *ret_options, size_t size);

/**
 * Creates a table of keyed timeouts on an engine. The first table of a process starts the library's
 * reclaimer thread, which gives memory back when no lookup can see it any more.
 *
 * Units: see struct tw_keyed_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_keyed_destroy. The engine must outlive every call on the table except
 *   tw_keyed_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_table`, also if the engine is stopped (it then rejects each entry); -EINVAL
 *   (NULL, unknown bits, no expected key or too many, a `reserve` above TW_KEYED_KEYS_MAX, a
 *   longest key of 0 or too long, an allocator without a function); -E2BIG (non-zero fields that
 *   this library does not know, `size` over 4,096); -ENOMEM; -ECHILD (an engine of the parent); the
 *   codes that creating a thread returns: -ENOMEM, -EPERM.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_keyed_create(struct tw_engine *engine,
				      const struct tw_keyed_options *options,
				      struct tw_keyed **ret_table);

/**
 * Frees a table in which all entries have ended, as is the case when its engine is stopped. NULL is
 * accepted. Destroying the last table of a process also ends the reclaimer thread, shortly after
 * the return.
 *
 * Units: none.
 * Threads: any, once; no thread may use the table any more. The call must not be made in a visit of
 *   tw_keyed_each.
 * In callback: yes, but not in a callback or a hook of this table (-EBUSY).
 * Progress: waits some milliseconds for the grace period of entries that have ended just now. If no
 *   thread can be created for that, the call frees them itself.
 * Lifetime: the table exists until the call returns 0.
 * Returns: 0; -EBUSY: an entry has not ended, its hook still runs, or the timeout of a cancelled or
 *   replaced entry has not left the worker or the executor.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_destroy(struct tw_keyed *table);

/**
 * Schedules an entry, unless the key already has one.
 *
 * The callback and the hook may rely on `*ret_life`: the call writes it before either of them can
 * run, and never after. On failure, and if the key is present, `*ret_life` is not changed.
 *
 * Units: `delay_ns` in nanoseconds. 0 or less counts as 1, so the entry runs at the next tick
 *   boundary. A delay that is too large counts as TW_NEVER. With TW_NEVER the entry only keeps the
 *   key.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free. Allocates entries, 64 or more at a time, if the table needs more of them at
 *   once than ever before. Allocates the copy of a key if it has more than 36 bytes.
 * Lifetime: `kind` until the entry has ended; `arg` is passed on and not looked at; the key is
 *   copied.
 * Returns: TW_KEYED_DONE and `*ret_life` (may be NULL), a number that no other entry of this key
 *   has had or will have, never 0; TW_KEYED_PRESENT; -EINVAL (table, key NULL, empty or too long,
 *   kind, its callback, flags); -E2BIG (a kind of a newer header with fields set that this library
 *   does not know); -ERANGE (delay INT64_MIN); -EAGAIN (the engine's limit of pending timeouts);
 *   -ENOMEM; -ESHUTDOWN; -ECHILD; -EPERM (as tw_engine_start returns it, from the first call on an
 *   engine). On failure, and if the key is present, neither the callback nor the hook is ever
 *   called.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_keyed_schedule(struct tw_keyed *table, const void *key,
						 size_t key_bytes, int64_t delay_ns,
						 const struct tw_keyed_kind *kind, void *arg,
						 uint64_t *ret_life);

/**
 * Schedules an entry and replaces the entry that the key has, if it has one.
 *
 * If the old entry's expiry is already on its way, it no longer reaches the old callback. The old
 * entry's hook has run when the call returns, unless the old callback runs at this moment. A lookup
 * of the key always finds either the old entry or the new one. As with tw_keyed_schedule,
 * `*ret_life` is written before the callback or the hook of the new entry can run. The old entry's
 * hook may run before or after that.
 *
 * Units: as tw_keyed_schedule.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_keyed_schedule; mostly neither an entry nor a copy of the key is needed.
 * Lifetime: as tw_keyed_schedule.
 * Returns: TW_KEYED_DONE: the key had no entry; TW_KEYED_REPLACED; TW_KEYED_RUNNING: also replaced
 *   (the old entry's hook runs when the old callback, or the call that is changing the entry, has
 *   ended. The new entry's callback may run before that); the errors of tw_keyed_schedule: the old
 *   entry then continues. (One exception: if the old entry expires during a call that then fails
 *   with -ENOMEM or -EAGAIN, the old entry is dropped.)
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_keyed_replace(struct tw_keyed *table, const void *key,
						size_t key_bytes, int64_t delay_ns,
						const struct tw_keyed_kind *kind, void *arg,
						uint64_t *ret_life);

/**
 * Cancels the entry of a key. If `life` is TW_KEYED_ANY, it cancels whatever entry the key has;
 * otherwise only the entry with this `life`, and never a later one.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; for its own entry it returns TW_KEYED_RUNNING.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: TW_KEYED_DONE: the entry's callback will not run, and its hook has run;
 *   TW_KEYED_RUNNING: the callback runs, or another call is changing the entry (the entry does not
 *   run again, and the key is free. The hook runs when that callback or call has ended: with
 *   TW_KEYED_END_FIRED, if the callback returns that the entry has ended); TW_KEYED_ABSENT; -EINVAL
 *   (table, key); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_cancel(struct tw_keyed *table, const void *key, size_t key_bytes,
			   uint64_t life);

/**
 * Gives the entry of a key another deadline.
 *
 * Units: as tw_reschedule.
 * Threads: any. If two threads call it at once, the later call counts.
 * In callback: yes; for its own entry it returns TW_KEYED_RUNNING, because the callback returns its
 *   next delay itself.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: TW_KEYED_DONE; TW_KEYED_RUNNING: too late, because the callback runs or is about to run,
 *   or another call is changing the entry; TW_KEYED_ABSENT; -EINVAL (table, key); -ERANGE
 *   (INT64_MIN); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_reschedule(struct tw_keyed *table, const void *key, size_t key_bytes,
			       int64_t delay_ns);

/**
 * Looks up the entry of a key.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes; for the callback's own entry, the result is present and busy.
 * Progress: wait-free.
 * Lifetime: see the struct.
 * Returns: TW_KEYED_PRESENT and `*ret_info` (may be NULL); TW_KEYED_ABSENT; -EINVAL (table, key,
 *   `size` too small or over 4,096); -ECHILD. If `size` is larger than this library's, it is
 *   accepted and the tail is zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_get(struct tw_keyed *table, const void *key, size_t key_bytes,
			struct tw_keyed_info *ret_info);

/**
 * Returns how many keys have an entry.
 *
 * Units: keys. An entry that a call under way adds or removes may or may not count. A cancelled
 *   entry counts as long as its callback runs.
 * Threads: any.
 * In callback: yes; in an entry's hook, that entry no longer counts.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int64_t tw_keyed_count(struct tw_keyed *table);

/**
 * Visits entries, in no particular order, until a visit returns a value other than 0. An entry that
 * is in the table during the whole walk is visited once. If an entry is added or removed during the
 * walk, it may be visited or not. Therefore a replaced key may be visited twice, with the old entry
 * and with the new one.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: proportional to the number of entries. The visits run inside a read-side section of
 *   the library. They may schedule, replace and cancel, in this table too, but must not block, stop
 *   or destroy. If a visit cancels an entry, the entry's hook runs inside the section too.
 * Lifetime: `visit` is used during the call.
 * Returns: the number of visits; -EINVAL (table, visit); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_keyed_each(struct tw_keyed *table, tw_keyed_visit *visit, void *context);

/**
 * Returns whether a timeout that a hook of the engine receives (hand-back, dispatch, late, drop)
 * belongs to a table of keys. If so, the timeout's argument belongs to the library.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or 0.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_owns(const struct tw_kind *kind);

TW_END_DECLS

#endif
