/* SPDX-License-Identifier: MIT */
/*
 * Exactly-once accounting. Each timeout that is offered to the library has an entry; the library
 * says how it ended: by its callback, by a cancel that was told so, by stop's hand-back. An
 * accepted one that has no such end is lost; one with two, or a refused one with any, is wrong.
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
	int64_t due_by_ns; /* due then at the latest: a clock may leap while it is scheduled */
	atomic_bool accepted;
	bool has_finaliser;
	atomic_uint expired;
	atomic_uint cancelled;
	atomic_uint handed_back;
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
	uint64_t handed_back;
	uint64_t lost;  /* accepted, without an end */
	uint64_t wrong; /* ended twice, ended though refused, or finalised otherwise */
};

extern struct ledger ledger;

/* Forgets all entries; nothing of them may be pending. */
void ledger_reset(void);

/* What the two kinds differ in: the second has a finaliser. Arguments are entries. */
extern const struct tw_kind entry_kind;
extern const struct tw_kind entry_final_kind;

/* A fresh entry; the kind to schedule it as alternates. Any thread. */
struct entry *entry_new(struct tw_engine *engine, const struct tw_kind **ret_kind);

/* For callbacks: the timeout expired. */
void entry_expired(struct entry *entry);
/* The finaliser that goes with it. */
tw_finaliser entry_finaliser;
/* For who cancelled it and was told so. */
void entry_cancelled(struct entry *entry);
/* For tw_engine_stop. */
tw_hand_back ledger_hand_back;

bool entry_ended(const struct entry *entry);

struct ledger_sums ledger_sum(void);

/* Accepted ones of an engine that are due by `now_ns` and have not ended. */
size_t ledger_overdue(const struct tw_engine *engine, int64_t now_ns);

#endif
