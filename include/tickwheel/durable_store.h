/* SPDX-License-Identifier: MIT */
/**
 * @file durable_store.h
 * The interface between a set of durable timers (durable.h) and the store that keeps them. Programs
 * that use a ready store need of it only the id, the levels and the outcomes.
 */
#ifndef TICKWHEEL_DURABLE_STORE_H
#define TICKWHEEL_DURABLE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** Names a timer for ever, after every restart. An id of zeros names none. */
struct tw_durable_id {
	/** The 64-second bucket of the deadline at which it was scheduled, as a signed number. */
	uint64_t place;
	/** Never 0, and never given twice by one store. */
	uint64_t serial;
};

/** How an operation ended. */
enum tw_durable_outcome {
	/** Schedule, reschedule: it is in the store. Cancel: it is not, and never ran. */
	TW_DURABLE_DONE = 0,
	/** It ended before the store ever saw it. */
	TW_DURABLE_ABSORBED = 1,
	/** Schedule: a timer with this key, or this id, is in the store, and stays. */
	TW_DURABLE_PRESENT = 2,
	/** Cancel, reschedule: it runs now, or is pending. */
	TW_DURABLE_RUNNING = 3,
	/** Cancel: it is gone, but an attempt of it began before. */
	TW_DURABLE_ATTEMPTED = 4,
	/** It ended before, or never was. */
	TW_DURABLE_ABSENT = 5,
	/** The store failed during the commit: it may be there or not. */
	TW_DURABLE_UNKNOWN = 6,
};

/** The levels of a store: the failures that it survives. */
enum tw_durable_level {
	/** kill -9. */
	TW_DURABLE_LEVEL_PROCESS = 1,
	/** A power loss, but for the last seconds before it. */
	TW_DURABLE_LEVEL_SECOND = 2,
	/** A power loss. */
	TW_DURABLE_LEVEL_DISK = 3,
};

/** A timer in a store. */
struct tw_durable_row {
	struct tw_durable_id id;
	/** Nanoseconds of the wall clock since 1970; of a kind that counts elapsed time, as that clock
	 * would be without its steps. */
	int64_t due_ns;
	/** The last attempt that is known to have begun; 0: none. */
	uint64_t attempt;
	/** The number of its name in the array that `open` received. */
	uint32_t kind;
	uint32_t version;
	/** Not 0: that attempt has begun and not ended. */
	uint32_t started;
	uint32_t key_bytes;
	uint32_t payload_bytes;
	/** `give`: not 0, it is a dead letter. */
	uint32_t dead;
	const void *key;
	const void *payload;
	/**
	 * Shared stores. `give`: the session that has claimed it; 0: none. PUT, MOVE, REVIVE: not 0:
	 * the set keeps the timer in memory, so the store claims it for its session, and sets this to
	 * the number of the session; 0: any session may claim it.
	 */
	uint64_t session;
	/** Shared stores: set by a START that is done: greater than that of each start before it. */
	uint64_t fence;
};

/** What an operation does. */
enum tw_durable_op_type {
	/** Adds `row`. PRESENT: a timer has its key, and `row.id` becomes that one's id; or a timer
	 * has its id. */
	TW_DURABLE_OP_PUT = 1,
	/** Removes the timer `row.id`, with its key. ATTEMPTED instead of DONE: its `attempt` was
	 * not 0. ABSENT: there is none. */
	TW_DURABLE_OP_DELETE = 2,
	/** Sets `due_ns` and `attempt`, and `started` to 0. ABSENT: there is none. */
	TW_DURABLE_OP_MOVE = 3,
	/** Sets `attempt`, and `started` to 1. ABSENT: there is none. */
	TW_DURABLE_OP_START = 4,
	/** Makes the timer a dead letter, with this `attempt`. Its key is free. ABSENT: there is
	 * none. */
	TW_DURABLE_OP_BURY = 5,
	/** Makes the dead letter a timer again, due at `due_ns`, attempt 0, without its key.
	 * ABSENT: there is none. */
	TW_DURABLE_OP_REVIVE = 6,
	/** Removes the dead letter. ABSENT: there is none. */
	TW_DURABLE_OP_DROP = 7,
};

/** A `fence`: the session that does the batch, for the end of a timer that the same batch puts. */
#define TW_DURABLE_FENCE_OF_BATCH UINT64_MAX

/** Bits of an operation's `flags`. */
enum tw_durable_op_flag {
	/** The end of a run: done only if the timer is claimed by the session `fence`, else ABSENT. */
	TW_DURABLE_OP_OWN = 1,
};

/** One operation of a commit. */
struct tw_durable_op {
	/** An enum tw_durable_op_type. */
	uint32_t type;
	/** Set by the store: DONE, PRESENT, ATTEMPTED or ABSENT; a shared one also RUNNING (DELETE,
	 * MOVE: it runs elsewhere), and PRESENT of a START (it is not due yet by the store's clock). */
	int32_t outcome;
	/** PUT: all of it. Others: the id and the fields that the type names. */
	struct tw_durable_row row;
	/** Shared stores: the session under which the set has the timer in memory; 0: it has not. A
	 * START is done only if that is the store's session still, and the timer is claimed by it.
	 * BURY is always the end of a run. */
	uint64_t fence;
	/** Bits of enum tw_durable_op_flag. */
	uint32_t flags;
	uint32_t reserved;
};

/** The state of a store when it is opened. */
struct tw_durable_opened {
	/** An enum tw_durable_level. */
	uint32_t level;
	/** Not 0: it was closed in order, or is new. */
	uint32_t clean;
	/** The greatest wall-clock time that a commit has brought; 0: none. */
	int64_t highest_ns;
	/** Kinds that the store has and `open` did not receive. */
	uint64_t unknown_kinds;
};

/** Relates the clocks of a set to each other, for kinds that count elapsed time (durable.h). Stores
 * keep it as it is. */
struct tw_durable_clock {
	/** Names the boot of the machine; a text. */
	char boot[40];
	/** In that boot, the elapsed time of the set less CLOCK_BOOTTIME. */
	int64_t base_ns;
	/** The wall clock less the elapsed time of the set. */
	int64_t step_ns;
};

/** The session of a shared store. */
struct tw_durable_session {
	/** Of this session, or of the last one; 0: there was none. Greater than all before it. */
	uint64_t number;
	/** Not 0: the server cannot be reached, or the session is over and there is no new one yet. */
	uint32_t cut;
	uint32_t reserved;
	/** CLOCK_BOOTTIME: no run may begin from then on. */
	int64_t until_ns;
	/** The server's clock less CLOCK_BOOTTIME. */
	int64_t wall_ns;
	/** How far ahead of their deadlines timers are claimed. */
	int64_t ahead_ns;
	/** CLOCK_BOOTTIME: the next heartbeat, or the next try to connect. */
	int64_t beat_at_ns;
	/** CLOCK_BOOTTIME: the next claim. */
	int64_t claim_at_ns;
};

/** Receives a row, which is valid during the call. Returns 0; 1 to a claim: the row is not wanted, and
 * the store frees it; or a negative code that ends the walk and is returned by it. */
typedef int tw_durable_give(void *to, const struct tw_durable_row *row);

/** Bits of the `flags` of a store's functions. */
enum tw_durable_store_flag {
	/**
	 * Several sets share it, on this machine or others. It has `beat` and `claim`, and `near` serves
	 * lists only. Its `commit` may return -EAGAIN as long as the server cannot be reached, and
	 * -ESTALE: the session ended while the reply was under way, and the operations may be done or
	 * not. docs/internals/durable-shared.md has the protocol.
	 */
	TW_DURABLE_STORE_SHARED = 1,
};

/**
 * The functions of a store. The thread in tw_durable_open makes the first calls, the set's thread
 * all later ones, so no two run at once. Each returns 0 or a negative code.
 */
struct tw_durable_store_ops {
	/** sizeof(struct tw_durable_store_ops). */
	uint32_t size;
	/** Bits of enum tw_durable_store_flag. */
	uint32_t flags;
	/** Opens the store for kinds with these names, which stay alive. Rows of other kinds stay
	 * in it, and `near` leaves them out. If it fails, `close` follows. */
	int (*open)(void *store, const char *const *kinds, size_t count,
		    struct tw_durable_opened *ret_opened);
	/** Reserves serials durably: `*ret_first` and the `count - 1` after it are never given
	 * again. */
	int (*reserve)(void *store, uint64_t count, uint64_t *ret_first);
	/**
	 * Does all operations, in their order, in one transaction, and sets their outcomes; they
	 * are durable when it returns 0. `now_ns` is the wall clock. -EAGAIN: nothing was done, and
	 * the same commit may be tried again. -ENOSPC: nothing was done for lack of space; a commit
	 * without PUT must still succeed, as far as the system allows. Any other code: it may be
	 * done or not, and the set calls nothing but `close` afterwards.
	 */
	int (*commit)(void *store, struct tw_durable_op *ops, size_t count, int64_t now_ns);
	/**
	 * Gives timers in the order of (due_ns, place, serial), at most `max` of them: those after
	 * `after` in that order (NULL: from the first), with `due_ns` up to `until_ns`. `place`
	 * counts as a signed number.
	 */
	int (*near)(void *store, const struct tw_durable_row *after, int64_t until_ns, size_t max,
		    tw_durable_give *give, void *to);
	/** Gives the timer or the dead letter of an id. -ENOENT: there is none. */
	int (*find)(void *store, struct tw_durable_id id, tw_durable_give *give, void *to);
	/** Gives the timer of a key. -ENOENT: there is none. */
	int (*find_key)(void *store, const void *key, size_t bytes, tw_durable_give *give,
			void *to);
	/** Gives dead letters in the order of (place, serial), at most `max`, after this id. */
	int (*dead)(void *store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		    void *to);
	/** Called after the acknowledgements of a commit: time for work that can wait. */
	int (*upkeep)(void *store);
	/** Closes and frees it. `clean`: all operations were committed. */
	void (*close)(void *store, int clean);
	/**
	 * Removes dead letters that ended before `ended_before_ns`, and of the others the oldest
	 * beyond `most`; at most `max` of them, oldest first. Returns how many. A power loss may
	 * bring them back. NULL: the store cannot, and tw_durable_open rejects bounds on dead letters.
	 */
	int (*dead_trim)(void *store, uint64_t most, int64_t ended_before_ns, size_t max);
	/**
	 * The same as `near`, for the kinds whose byte in `kinds` is not 0; it has one for each name
	 * that `open` received. NULL, or one of the next two: tw_durable_open rejects kinds that
	 * count elapsed time.
	 */
	int (*near_kinds)(void *store, const unsigned char *kinds,
			  const struct tw_durable_row *after, int64_t until_ns, size_t max,
			  tw_durable_give *give, void *to);
	/** Gives what `clock_set` has kept last. -ENOENT: nothing. */
	int (*clock)(void *store, struct tw_durable_clock *ret_clock);
	/** Keeps it; durable when it returns 0. -EAGAIN, -ENOSPC: it was not kept. */
	int (*clock_set)(void *store, const struct tw_durable_clock *clock);
	/**
	 * Called once a second. Tries to shorten the log, if it could not before, and returns the
	 * bytes that it has to keep, for example for a reader of an old state. NULL: there is no log.
	 */
	uint64_t (*log_bytes)(void *store);
	/** Called at the open: sets the byte of each kind that is marked as paused to 1, of the others
	 * to 0; one for each name that `open` received. NULL: no kind is. */
	int (*paused)(void *store, unsigned char *ret_paused);
	/** Marks the kind of this number as paused, or takes the mark away; durable when it returns 0.
	 * -EAGAIN, -ENOSPC: nothing was done. For tools: the set does not call it. NULL: the store
	 * has no marks. */
	int (*pause)(void *store, uint32_t kind, int paused);
	/**
	 * Shared stores: called in each step. Sends the heartbeat if it is due, connects, and opens a
	 * session if there is none. It may wait for a reply for a quarter of a session. Returns 0,
	 * also if the server cannot be reached; any other code ends the set.
	 */
	int (*beat)(void *store, struct tw_durable_session *ret_session);
	/**
	 * Shared stores: claims timers that are due within `ahead_ns`, oldest first, at most `max`, and
	 * gives them. Returns how many were claimed, or a code: -EAGAIN: the session is over, or the
	 * server cannot be reached. Rows behind one that `give` refuses by a negative code are freed.
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
