/* SPDX-License-Identifier: MIT */
/*
 * The ledger, which checks that each timeout ends exactly once. Each timeout that is passed to the
 * library has an entry, which records its end: by its callback, by a cancel that reported it, or by
 * stop's hand-back. An accepted timeout without such an end is lost. An accepted timeout with two
 * ends, or a rejected timeout with an end, is wrong.
 */
#ifndef FAULTS_LEDGER_H
#define FAULTS_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel.h>

enum { LEDGER_ENTRIES = 20000 };

struct entry {
	struct tw_engine *engine;
	struct tw_handle handle; /* valid if accepted */
	/* the earliest time at which its callback may run; TW_NEVER: not checked */
	int64_t deadline_ns;
	/*
	 * a time at which it is certainly due; later than the deadline, because a clock may leap
	 * during the schedule
	 */
	int64_t due_by_ns;
	atomic_bool accepted;
	bool has_finaliser;
	atomic_uint expired;
	atomic_uint cancelled;
	atomic_uint unexpired;
	atomic_uint finalised; /* the sum of 1 + end over all runs of the finaliser */
	void *note;            /* an argument for callbacks that do more */
};

struct ledger {
	atomic_uint count;
	atomic_uint early; /* how often the callback ran before the deadline */
	struct entry entry[LEDGER_ENTRIES];
};

struct ledger_sums {
	uint64_t accepted;
	uint64_t expired;
	uint64_t cancelled;
	uint64_t unexpired;
	uint64_t lost; /* how many accepted timeouts have no end */
	/*
	 * how many timeouts ended twice, ended although they were rejected, or have a wrong
	 * finaliser call
	 */
	uint64_t wrong;
};

extern struct ledger ledger;

/* Forgets all entries. None of them may be pending. */
void ledger_reset(void);

/* Two kinds whose argument is an entry. The second kind has a finaliser. */
extern const struct tw_kind entry_kind;
extern const struct tw_kind entry_final_kind;

/* Returns a new entry. `ret_kind` gets one of the two kinds in turn. Any thread may call this. */
struct entry *entry_new(struct tw_engine *engine, const struct tw_kind **ret_kind);

/* Called in a callback: records that the timeout expired. */
void entry_expired(struct entry *entry);
/* The finaliser of entry_final_kind. */
tw_finaliser entry_finaliser;
/* Called by a canceller whose call returned success. */
void entry_cancelled(struct entry *entry);
/* The hook for tw_engine_stop. */
tw_unexpired_hook ledger_hand_back;

bool entry_ended(const struct entry *entry);

struct ledger_sums ledger_sum(void);

/* Returns how many accepted timeouts of an engine were due by `now_ns` and have not ended. */
size_t ledger_overdue(const struct tw_engine *engine, int64_t now_ns);

#endif
