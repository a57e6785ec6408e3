/* SPDX-License-Identifier: MIT */
/**
 * @file durable_store.h
 * The interface between a set of durable timers (durable.h) and the store that keeps them. A
 * program that uses a ready-made store needs only the id, the levels and the outcomes.
 */
#ifndef TICKWHEEL_DURABLE_STORE_H
#define TICKWHEEL_DURABLE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** The id of a timer. It names the timer for ever, also after restarts. An id of zeros names no
 * timer. */
struct tw_durable_id {
	/** The number of the 64-second bucket that has the timer's first deadline, as a signed
	 * number. */
	uint64_t place;
	/** Never 0. A store never assigns a serial twice. */
	uint64_t serial;
};

/** How an operation ended. */
enum tw_durable_outcome {
	/** Schedule, reschedule: the timer, with the new deadline, is in the store. Cancel: the
	 * timer is no longer there, and never ran. */
	TW_DURABLE_DONE = 0,
	/** The timer ended before it was stored. */
	TW_DURABLE_ABSORBED = 1,
	/** Schedule: a timer with this key, or with this id, is already in the store, and stays as
	 * it is. */
	TW_DURABLE_PRESENT = 2,
	/** Cancel, reschedule: too late, because the timer runs now, or the result of its run is
	 * pending. */
	TW_DURABLE_RUNNING = 3,
	/** Cancel: the timer is no longer in the store, but an attempt had begun before. */
	TW_DURABLE_ATTEMPTED = 4,
	/** The timer had ended before, or never existed. */
	TW_DURABLE_ABSENT = 5,
	/** The store failed during the commit: the operation may have been done or not. */
	TW_DURABLE_UNKNOWN = 6,
};

/** The levels of a store: which failures its acknowledged timers survive. */
enum tw_durable_level {
	/** The store survives the death of the process, such as kill -9. */
	TW_DURABLE_LEVEL_PROCESS = 1,
	/** The store also survives a power loss, except for what was acknowledged in the last
	 * seconds before it. */
	TW_DURABLE_LEVEL_SECOND = 2,
	/** The store survives a power loss. */
	TW_DURABLE_LEVEL_DISK = 3,
};

/** A timer in a store. */
struct tw_durable_row {
	struct tw_durable_id id;
	/** The deadline: nanoseconds since 1970, by the wall clock. If the kind counts elapsed
	 * time, this clock leaves out the steps of the wall clock. */
	int64_t due_ns;
	/** The number of the last attempt that is known to have begun; 0: none. */
	uint64_t attempt;
	/** The index of the kind's name in the array that `open` received. */
	uint32_t kind;
	uint32_t version;
	/** Not 0: the attempt `attempt` has begun, and has not ended. */
	uint32_t started;
	uint32_t key_bytes;
	uint32_t payload_bytes;
	/** In a call of tw_durable_give: not 0 if the row is a dead letter. */
	uint32_t dead;
	const void *key;
	const void *payload;
	/**
	 * Shared stores only. In a call of tw_durable_give it is the session that has claimed the
	 * timer; 0: none. In PUT, MOVE and REVIVE, a value other than 0 means that the set keeps
	 * the timer in memory. Then the store claims the timer for its session, and sets this field
	 * to the session's number. 0 means that any session may claim the timer.
	 */
	uint64_t session;
	/** Shared stores only: each successful START sets this field to a number greater than that
	 * of every earlier START of the timer. */
	uint64_t fence;
};

/** What an operation does. */
enum tw_durable_op_type {
	/** Adds `row`. PRESENT: another timer has the key of the row, and the store sets `row.id`
	 * to the id of that timer; or a timer already has the id of the row. */
	TW_DURABLE_OP_PUT = 1,
	/** Removes the timer `row.id`, with its key. ATTEMPTED instead of DONE: the timer's
	 * `attempt` was not 0. ABSENT: there is no such timer. */
	TW_DURABLE_OP_DELETE = 2,
	/** Sets `due_ns` and `attempt`, and `started` to 0. ABSENT: there is no such timer. */
	TW_DURABLE_OP_MOVE = 3,
	/** Sets `attempt`, and `started` to 1. ABSENT: there is no such timer. */
	TW_DURABLE_OP_START = 4,
	/** Makes the timer a dead letter, with this `attempt`. Its key becomes free. ABSENT: there
	 * is no such timer. */
	TW_DURABLE_OP_BURY = 5,
	/** Makes the dead letter `row.id` a timer again, due at `due_ns`, with `attempt` 0, and
	 * without its key. ABSENT: there is no such dead letter. */
	TW_DURABLE_OP_REVIVE = 6,
	/** Removes the dead letter `row.id`. ABSENT: there is no such dead letter. */
	TW_DURABLE_OP_DROP = 7,
};

/** A value of the field `fence` of an operation. It stands for the session that executes the batch.
 * The set uses it for the end of a timer that the same batch puts into the store. */
#define TW_DURABLE_FENCE_OF_BATCH UINT64_MAX

/** Bits of an operation's `flags`. */
enum tw_durable_op_flag {
	/** The operation is the end of a run. The store executes it only if the session `fence` has
	 * claimed the timer; otherwise the outcome is ABSENT. */
	TW_DURABLE_OP_OWN = 1,
};

/** One operation of a commit. */
struct tw_durable_op {
	/** An enum tw_durable_op_type. */
	uint32_t type;
	/** Set by the store to DONE, PRESENT, ATTEMPTED or ABSENT. A shared store also sets RUNNING
	 * for a DELETE or a MOVE if the timer runs elsewhere. It sets PRESENT for a START if the
	 * timer is not yet due by the server's clock. */
	int32_t outcome;
	/** PUT uses all fields. Other types use the id, and the fields that enum tw_durable_op_type
	 * names for them. */
	struct tw_durable_row row;
	/** Shared stores only: the session under which the set has the timer in memory; 0: the set
	 * does not have it in memory. The store executes a START only if `fence` is still the
	 * store's session, and this session has claimed the timer. A BURY is always the end of a
	 * run, so TW_DURABLE_OP_OWN applies to it even if the bit is not set. */
	uint64_t fence;
	/** Bits of enum tw_durable_op_flag. */
	uint32_t flags;
	uint32_t reserved;
};

/** The state of a store when it is opened. */
struct tw_durable_opened {
	/** An enum tw_durable_level. */
	uint32_t level;
	/** Not 0: the last close was orderly, or the store is new. */
	uint32_t clean;
	/** The greatest `now_ns` of all commits so far; 0: none. */
	int64_t highest_ns;
	/** The number of kinds that the store has and `open` did not receive. */
	uint64_t unknown_kinds;
};

/** Relates the clocks of a set to each other, for kinds that count elapsed time (durable.h). A
 * store keeps this struct, and never interprets it. */
struct tw_durable_clock {
	/** A text that identifies the boot of the machine. */
	char boot[40];
	/** During that boot, the elapsed time of the set minus CLOCK_BOOTTIME. */
	int64_t base_ns;
	/** The wall clock minus the elapsed time of the set. */
	int64_t step_ns;
};

/** The session of a shared store. */
struct tw_durable_session {
	/** The number of this session, or of the last one; 0: there was none. Each session has a
	 * greater number than all before it. */
	uint64_t number;
	/** Not 0: the server cannot be reached, or the session has ended and there is no new
	 * one. */
	uint32_t cut;
	uint32_t reserved;
	/** From this time of CLOCK_BOOTTIME on, no run may begin. */
	int64_t until_ns;
	/** The server's clock minus CLOCK_BOOTTIME. */
	int64_t wall_ns;
	/** How long before their deadlines timers are claimed. */
	int64_t ahead_ns;
	/** The time of CLOCK_BOOTTIME of the next heartbeat, or of the next try to connect. */
	int64_t beat_at_ns;
	/** The time of CLOCK_BOOTTIME of the next claim. */
	int64_t claim_at_ns;
};

/** Receives a row, which is valid during the call. Returns 0 to continue. In a claim it may return
 * 1: the set does not need the timer, and the store ends the claim of that timer. A negative code
 * ends the iteration, and the store's function returns this code. */
typedef int tw_durable_give(void *to, const struct tw_durable_row *row);

/** Bits of the `flags` of a store's functions. */
enum tw_durable_store_flag {
	/**
	 * Several sets share the store, on this machine or on others. The store has `beat` and
	 * `claim`, and the set calls `near` only for lists. Its `commit` may return -EAGAIN as long
	 * as the server cannot be reached. It may also return -ESTALE: the session ended while the
	 * reply was under way, and the operations may have been executed or not.
	 * docs/internals/durable-shared.md describes the protocol.
	 */
	TW_DURABLE_STORE_SHARED = 1,
};

/**
 * The functions of a store. The thread in tw_durable_open makes the first calls, and the set's
 * thread all later ones, so no two run at once. Each function returns 0 or a negative code, unless
 * its comment says otherwise.
 */
struct tw_durable_store_ops {
	/** sizeof(struct tw_durable_store_ops). */
	uint32_t size;
	/** Bits of enum tw_durable_store_flag. */
	uint32_t flags;
	/** Opens the store for kinds with these names. The names stay alive until `close`. Rows of
	 * other kinds stay in the store, and `near` leaves them out. If `open` fails, `close`
	 * follows. */
	int (*open)(void *store, const char *const *kinds, size_t count,
		    struct tw_durable_opened *ret_opened);
	/** Reserves serials durably: `*ret_first` and the `count - 1` serials after it. The store
	 * never reserves them again. */
	int (*reserve)(void *store, uint64_t count, uint64_t *ret_first);
	/**
	 * Executes all operations, in their order, in one transaction, and sets their outcomes. The
	 * operations are durable when it returns 0. `now_ns` is the time of the wall clock.
	 * -EAGAIN: no operation was executed, and the set may try the same commit again. -ENOSPC:
	 * no operation was executed, because there is no space. On a full store, a commit without
	 * PUT must still succeed, as far as the system allows. Any other code: the operations may
	 * have been executed or not, and the set calls only `close` afterwards.
	 */
	int (*commit)(void *store, struct tw_durable_op *ops, size_t count, int64_t now_ns);
	/**
	 * Passes timers to `give` in the order of (due_ns, place, serial): at most `max` of them,
	 * with `due_ns` up to `until_ns`. It begins after the timer `after` in that order, or with
	 * the first timer if `after` is NULL. `place` counts as a signed number.
	 */
	int (*near)(void *store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		    tw_durable_give *give, void *to);
	/** Passes the timer or the dead letter with an id to `give`. -ENOENT: there is neither. */
	int (*find)(void *store, struct tw_durable_id id, tw_durable_give *give, void *to);
	/** Passes the timer with a key to `give`. -ENOENT: there is none. */
	int (*find_key)(void *store, const void *key, size_t bytes, tw_durable_give *give,
			void *to);
	/** Passes dead letters to `give` in the order of (place, serial), at most `max` of them,
	 * beginning after the id `after`. */
	int (*dead)(void *store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		    void *to);
	/** Does work that can wait until the acknowledgements of a commit have been sent. The set
	 * calls it after them. */
	int (*upkeep)(void *store);
	/** Closes and frees the store. `clean` is not 0 if all operations were committed. */
	void (*close)(void *store, int clean);
	/**
	 * Removes dead letters that ended before `ended_before_ns`. If more than `most` are left,
	 * it also removes the oldest of these. It removes at most `max`, the oldest first, and
	 * returns how many. A power failure may undo this. NULL: the store cannot do this, and
	 * tw_durable_open rejects bounds on dead letters.
	 */
	int (*dead_trim)(void *store, uint64_t most, int64_t ended_before_ns, size_t max);
	/**
	 * The same as `near`, but only for the kinds whose byte in `kinds` is not 0. `kinds` has
	 * one byte for each name that `open` received. If this function or one of the next two is
	 * NULL, tw_durable_open rejects kinds that count elapsed time.
	 */
	int (*near_kinds)(void *store, const unsigned char *kinds,
			  const struct tw_durable_row *after, int64_t until_ns, size_t max,
			  tw_durable_give *give, void *to);
	/** Reads the struct that `clock_set` has stored last. -ENOENT: there is none. */
	int (*clock)(void *store, struct tw_durable_clock *ret_clock);
	/** Stores `clock`; durable when it returns 0. -EAGAIN, -ENOSPC: it was not stored. */
	int (*clock_set)(void *store, const struct tw_durable_clock *clock);
	/**
	 * Tries to shorten the log, if the last try failed. Returns how many bytes of the log the
	 * next commits cannot use again, for example because a reader uses an old state. The set
	 * calls it once a second. NULL: the store has no log.
	 */
	uint64_t (*log_bytes)(void *store);
	/** Sets the bytes of kinds that are marked as paused to 1, and the others to 0.
	 * `ret_paused` has one byte for each name that `open` received. tw_durable_open calls it.
	 * NULL: no kind is paused. */
	int (*paused)(void *store, unsigned char *ret_paused);
	/** Marks the kind with the index `kind` as paused, or removes the mark; durable when it
	 * returns 0. -EAGAIN, -ENOSPC: nothing was done. Meant for tools: the set does not call it.
	 * NULL: the store has no marks. */
	int (*pause)(void *store, uint32_t kind, int paused);
	/**
	 * Shared stores only: sends the heartbeat if it is due. If there is no connection or no
	 * session, it connects and opens a session. It may wait for a reply for a quarter of
	 * `session_ns`. Returns 0, also if the server cannot be reached; after any other code the
	 * set has failed. The set's thread calls it before each batch.
	 */
	int (*beat)(void *store, struct tw_durable_session *ret_session);
	/**
	 * Shared stores only: claims at most `max` timers that are due within `ahead_ns`, those
	 * with the earliest deadlines first, and passes them to `give`. Returns how many were
	 * claimed, or a negative code. -EAGAIN: the session has ended, or the server cannot be
	 * reached. If `give` returns a negative code, the store ends the claims of the rows that
	 * follow.
	 */
	int (*claim)(void *store, size_t max, tw_durable_give *give, void *to);
};

/** A store: its functions, and their first argument. */
struct tw_durable_store {
	const struct tw_durable_store_ops *ops;
	void *store;
};

TW_END_DECLS

#endif
