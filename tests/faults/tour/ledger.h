/* SPDX-License-Identifier: MIT */
/*
 * Exactly-once accounting. Each timeout that is offered to the library has an entry, which records
 * its end: by its callback, by a cancel that returned so, by stop's hand-back. If an accepted one
 * has no such end, it is lost. If it has two, or a rejected one has any, that is wrong.
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
	struct tw_handle handle; /* valid when accepted */
	int64_t deadline_ns;     /* not due before; TW_NEVER: not checked */
	int64_t due_by_ns;       /* due by then, because a clock may leap during the schedule */
	atomic_bool accepted;
	bool has_finaliser;
	atomic_uint expired;
	atomic_uint cancelled;
	atomic_uint unexpired;
	atomic_uint finalised; /* 1 + end for each run of the finaliser, summed */
	void *note;            /* for callbacks that do more */
};

struct ledger {
	atomic_uint count;
	atomic_uint early; /* callbacks before their deadline */
	struct entry entry[LEDGER_ENTRIES];
};

struct ledger_sums {
	uint64_t accepted;
	uint64_t expired;
	uint64_t cancelled;
	uint64_t unexpired;
	uint64_t lost;  /* accepted, without an end */
	uint64_t wrong; /* ended twice, ended though rejected, or finalised otherwise */
};

extern struct ledger ledger;

/* Forgets all entries. None of them may be pending. */
void ledger_reset(void);

/* The second kind has a finaliser. The arguments are entries. */
extern const struct tw_kind entry_kind;
extern const struct tw_kind entry_final_kind;

/* Returns a fresh entry. The kind to schedule it with alternates. Any thread may call it. */
struct entry *entry_new(struct tw_engine *engine, const struct tw_kind **ret_kind);

/* Called in a callback: the timeout expired. */
void entry_expired(struct entry *entry);
/* The finaliser that goes with it. */
tw_finaliser entry_finaliser;
/* Called by a canceller when its call has returned success. */
void entry_cancelled(struct entry *entry);
/* For tw_engine_stop. */
tw_unexpired_hook ledger_hand_back;

bool entry_ended(const struct entry *entry);

struct ledger_sums ledger_sum(void);

/* Returns how many accepted ones of an engine are due by `now_ns` and have not ended. */
size_t ledger_overdue(const struct tw_engine *engine, int64_t now_ns);

#endif
