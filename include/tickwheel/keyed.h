/* SPDX-License-Identifier: MIT */
/**
 * @file keyed.h
 * Timeouts that are named by keys: a layer above the engine. docs/keyed.md has the states of an
 * entry, what ends it, and the edges.
 *
 * A table (struct tw_keyed) belongs to an engine. A key is a string of bytes, of which the table keeps
 * a copy; it has at most one entry: a kind and an argument. When the entry's time has come its callback
 * runs, and says whether that was all or when it wants to run again; between its runs, and while it
 * runs, the entry keeps its key. Each accepted entry ends exactly once, and then its kind's `ended`
 * hook runs.
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
struct tw_keyed;

/** The longest key that a table can be made for, in bytes. */
#define TW_KEYED_KEY_BYTES_MAX 65535u
/** The most keys that a table can be made for; more of them only make it slower. */
#define TW_KEYED_KEYS_MAX 1073741824u
/** Returned by a callback: that was all. */
#define TW_KEYED_END INT64_C(0)
/** For tw_keyed_cancel: whichever life the key has. */
#define TW_KEYED_ANY UINT64_C(0)

/** How an entry ended. */
enum tw_keyed_end {
	/** Its callback has run, and did not want to run again. */
	TW_KEYED_END_FIRED = 0,
	TW_KEYED_END_CANCELLED = 1,
	/** Another entry has its key. */
	TW_KEYED_END_REPLACED = 2,
	/** It was to wait again, and the engine had no memory, or no place within its limit, for that
	 * (also where its time came while the call that scheduled it was under way); or the executor
	 * refused it, and the engine drops what is refused. */
	TW_KEYED_END_DROPPED = 3,
	/** The engine was stopped. */
	TW_KEYED_END_STOPPED = 4,
};

/** What a call found. Each call's documentation says which of them it returns. */
enum tw_keyed_outcome {
	TW_KEYED_DONE = 0,
	/** No entry has the key (or not the one that was meant). */
	TW_KEYED_ABSENT = 1,
	/** An entry has the key. */
	TW_KEYED_PRESENT = 2,
	/** Done, and the entry that had the key has been replaced. */
	TW_KEYED_REPLACED = 3,
	/** The entry's callback runs, or is about to, or another call has the entry at this moment. */
	TW_KEYED_RUNNING = 4,
};

/** An entry, as its callback and its hook are told of it. */
struct tw_keyed_self {
	struct tw_keyed *table;
	/** Of the table's copy; valid during the call. */
	const void *key;
	size_t key_bytes;
	/** As tw_keyed_schedule told it. */
	uint64_t life;
	/** How often its callback was begun: 1 in the first run. */
	uint64_t runs;
};

/**
 * The callback of an entry. Runs on the engine's worker, or where the dispatch hook ran it; may do
 * what a callback may, also with its own key: another entry that takes the key replaces this one,
 * which then does not run again.
 *
 * Returns when it runs next: nanoseconds from now, more than 0; TW_NEVER: it keeps its key, and waits
 * until it is rescheduled, cancelled, replaced or stopped. TW_KEYED_END and everything negative: it
 * has ended. A callback that ends its thread (pthread_exit) has ended its entry too.
 */
typedef int64_t tw_keyed_callback(const struct tw_keyed_self *self, void *arg);

/**
 * The end of an entry: runs exactly once, and releases `arg`; nothing of the library touches it
 * afterwards. Its key is free by then, or another entry has it.
 *
 * Runs where the end is decided: after the callback, on its thread; in the call that cancels or
 * replaces the entry, before it returns; on the worker, or in the thread that stops, when the engine is
 * stopped. May call all that is allowed in a callback. One that ends its thread has ended its entry as
 * all others, and takes with it the call that it is in: whether the new entry of a replace has the key
 * by then, a lookup tells.
 */
typedef void tw_keyed_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end);

/** What entries of one kind have in common. Constant, and alive as long as any of them. */
struct tw_keyed_kind {
	/** sizeof(struct tw_keyed_kind). */
	uint32_t size;
	/** 0. */
	uint32_t flags;
	/** Required. */
	tw_keyed_callback *callback;
	/** NULL: nobody is told, and `arg` is nobody's business. */
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
	/** 0. */
	uint64_t flags;
	/** What the table is sized for, for good: 1 to TW_KEYED_KEYS_MAX. No limit: with more keys
	 * than this each search takes more steps. Default 1,024. */
	uint32_t expected_keys;
	/** The longest key, in bytes: 1 to TW_KEYED_KEY_BYTES_MAX. Keys of up to 36 bytes cost no
	 * memory of their own. Default 256. */
	uint32_t key_bytes_max;
	/** Of the hash. Default 0: a random one for each table, so that nobody can choose keys that
	 * fall together. */
	uint64_t seed;
	/** Entries to allocate memory for ahead, at most TW_KEYED_KEYS_MAX. Default 0: as they come. */
	uint64_t reserve;
	/** Where the memory of entries and long keys comes from; alive for the rest of the process. The
	 * library's thread that gives memory back calls `release`, too. NULL: aligned_alloc and free. Default NULL. The buckets (16 bytes for each expected key, and more
	 * where that is no power of two) are always the C library's. */
	const struct tw_allocator *allocator;
};

/** What tw_keyed_get and tw_keyed_each tell of an entry. */
struct tw_keyed_info {
	/** Set by the caller of tw_keyed_get to sizeof(struct tw_keyed_info). */
	size_t size;
	/** As scheduled. NULL while `busy`, as `arg`. */
	const struct tw_keyed_kind *kind;
	/** As scheduled. Its hook may release it as soon as the entry ends: use it only where that is
	 * excluded. */
	void *arg;
	/** Which of the entries that the key has had; 0 while `busy`. */
	uint64_t life;
	/** When it runs, in the engine's time, or TW_NEVER; 0 while `busy`. */
	int64_t deadline_ns;
	/** 1: its callback runs, or another call has it at this moment. */
	uint64_t busy;
};

/**
 * Called by tw_keyed_each for an entry. `key` is valid during the call. Returns 0 to go on.
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
 * Creates a table of keyed timeouts on an engine. The first table of a process starts its thread that
 * gives memory back when no lookup can see it any more.
 *
 * Units: see struct tw_keyed_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_keyed_destroy. The engine must outlive every call that gets the table, save
 *   destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_table`, also where the engine is stopped (which then refuses each entry); -EINVAL (NULL, unknown bits, no expected key or too many, a longest key
 *   of 0 or too long, an allocator without a function); -E2BIG (non-zero fields that this library does
 *   not know, `size` over 4,096); -ENOMEM; -ECHILD (an engine of the parent); what making a thread
 *   returns: -ENOMEM, -EPERM.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_create(struct tw_engine *engine, const struct tw_keyed_options *options,
			   struct tw_keyed **ret_table);

/**
 * Frees a table whose entries have all ended, as they have when its engine is stopped. NULL is
 * accepted. The last table of a process ends the thread that the first one has started, a little after
 * the return.
 *
 * Units: none.
 * Threads: any, once; nobody may use the table any more. Never inside a read-side section of
 *   liburcu-bp.
 * In callback: yes, but not in a callback or a hook of this table (-EBUSY).
 * Progress: waits for the grace period of entries that have ended just now, some milliseconds. If no
 *   thread can be made for that, the call frees them itself.
 * Lifetime: ends.
 * Returns: 0; -EBUSY: an entry has not ended, its hook still runs, or the timeout of one that was
 *   cancelled or replaced has not left the worker or the executor.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_destroy(struct tw_keyed *table);

/**
 * Schedules an entry, unless the key has one.
 *
 * Callback and hook may rely on `*ret_life`: it is written before one of them can run, and never after.
 * On failure, and where the key is present, it has the value that it had before the call.
 *
 * Units: `delay_ns` as in tw_schedule: negative is 0, too large never; TW_NEVER only keeps the key.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free; allocates where the table has never had so many entries at once (64 at a time),
 *   and the copy of a key of more than 36 bytes.
 * Lifetime: `kind` until the entry has ended; `arg` is passed on, not looked at; the key is copied.
 * Returns: TW_KEYED_DONE and `*ret_life` (may be NULL), a number that no other entry of this key has
 *   had or will have, never 0; TW_KEYED_PRESENT; -EINVAL (table, key NULL, empty or too long, kind, its
 *   callback, flags); -E2BIG (a kind of a newer header with fields set that this library does not know);
 *   -ERANGE (delay INT64_MIN); -EAGAIN (the engine's limit of pending timeouts); -ENOMEM; -ESHUTDOWN;
 *   -ECHILD; -EPERM (what tw_engine_start returns, from the first call on an engine).
 *   On failure, and where the key is present, neither callback nor hook is ever called.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_schedule(struct tw_keyed *table, const void *key, size_t key_bytes,
			     int64_t delay_ns, const struct tw_keyed_kind *kind, void *arg,
			     uint64_t *ret_life);

/**
 * Schedules an entry, in the place of the one that the key has, if it has one.
 *
 * An expiry of the old one that is on its way does not reach its callback any more. The old one's hook
 * has run before the return, unless its callback runs at this moment. Whoever looks the key up finds
 * the old one or the new one. `*ret_life` is written before the new one's callback or hook can run, as by
 * tw_keyed_schedule; the old one's hook may run before or after that.
 *
 * Units: as tw_keyed_schedule.
 * Threads: any.
 * In callback: yes.
 * Progress: as tw_keyed_schedule; mostly neither an entry nor a key's copy is needed.
 * Lifetime: as tw_keyed_schedule.
 * Returns: TW_KEYED_DONE: the key had none; TW_KEYED_REPLACED; TW_KEYED_RUNNING: replaced, too, and the
 *   old one's hook runs when its callback, or the call that has it, is over, while the new one's callback
 *   may run already; the errors of tw_keyed_schedule: then the old one goes on. (If its expiry comes in
 *   the midst of a call that then fails for want of memory, or of a place within the limit, it is dropped.)
 * Since: 0.1.0.
 */
TW_API int tw_keyed_replace(struct tw_keyed *table, const void *key, size_t key_bytes,
			    int64_t delay_ns, const struct tw_keyed_kind *kind, void *arg,
			    uint64_t *ret_life);

/**
 * Cancels the entry of a key: whichever (TW_KEYED_ANY), or only if it is the one of this life, and not
 * a later one.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes; its own entry is TW_KEYED_RUNNING.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: TW_KEYED_DONE: its callback will not run, its hook has; TW_KEYED_RUNNING: its callback runs,
 *   or another call has the entry: it does not run again, the key is free, and the hook runs when that
 *   is over (with TW_KEYED_END_FIRED, if the callback says that it was all); TW_KEYED_ABSENT; -EINVAL
 *   (table, key); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_cancel(struct tw_keyed *table, const void *key, size_t key_bytes,
			   uint64_t life);

/**
 * Gives the entry of a key another deadline.
 *
 * Units: as tw_reschedule.
 * Threads: any. Of two at once the later one counts.
 * In callback: yes; its own entry is TW_KEYED_RUNNING: it returns its next delay.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: TW_KEYED_DONE; TW_KEYED_RUNNING: too late, its callback runs or is on its way, or another
 *   call has the entry; TW_KEYED_ABSENT; -EINVAL (table, key); -ERANGE (INT64_MIN); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_reschedule(struct tw_keyed *table, const void *key, size_t key_bytes,
			       int64_t delay_ns);

/**
 * Looks a key up.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes; its own entry is present, and busy.
 * Progress: wait-free.
 * Lifetime: see the struct.
 * Returns: TW_KEYED_PRESENT and `*ret_info` (may be NULL); TW_KEYED_ABSENT; -EINVAL (table, key, `size`
 *   too small or over 4,096); -ECHILD. A larger `size` is accepted and the tail zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_keyed_get(struct tw_keyed *table, const void *key, size_t key_bytes,
			struct tw_keyed_info *ret_info);

/**
 * How many keys have an entry.
 *
 * Units: keys; those of calls that are under way may count or not, and a cancelled entry counts while
 *   its callback runs.
 * Threads: any.
 * In callback: yes; an entry whose hook runs has ended.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int64_t tw_keyed_count(struct tw_keyed *table);

/**
 * Visits entries, in no order, until a visit returns other than 0. An entry that is in the table from
 * begin to end is visited once; what comes or goes meanwhile may be, and so a key that is replaced may be
 * visited twice, with the old entry and with the new one.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: as long as there are entries. The visits are inside a read-side section of liburcu-bp: they
 *   may schedule, replace and cancel, in this table too, but not block, stop or destroy; the hook of
 *   what they cancel runs inside the section too.
 * Lifetime: `visit` is used during the call.
 * Returns: how many were visited; -EINVAL (table, visit); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_keyed_each(struct tw_keyed *table, tw_keyed_visit *visit, void *context);

/**
 * Whether a timeout that a hook of the engine is told of (hand-back, dispatch, late) belongs to a table
 * of keys: then its argument is the library's.
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
