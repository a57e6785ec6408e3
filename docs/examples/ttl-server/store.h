/* SPDX-License-Identifier: MIT */
/*
 * The keys, their values and their expiry.
 *
 * A key is gone at its deadline to the nanosecond: every look-up compares. Its alarm then releases
 * the memory. The table is uthash: one header, nothing to link, and the links lie inside the entry,
 * so a key costs no second allocation and finding its neighbours in a debugger takes no tool.
 */
#ifndef TTL_SERVER_STORE_H
#define TTL_SERVER_STORE_H

#include "alarms.h"
#include "resp.h"

/* The deadline of a key that does not expire. */
#define STORE_NEVER INT64_MAX

struct entry;

struct store {
	struct alarms *alarms;
	struct entry *table;
	uint64_t expiring_count;
	uint64_t expired_count;
};

/* Keys, the ones past their deadline and not released yet included. */
uint64_t store_count(const struct store *store);

/* NULL when there is none at `now_ns`. */
struct entry *store_find(struct store *store, struct span key, int64_t now_ns);
struct span entry_value(const struct entry *entry);
int64_t entry_deadline_ns(const struct entry *entry);

/* Creates or replaces. 0, or a negative errno value and everything is as before. */
int store_set(struct store *store, struct span key, struct span value, int64_t deadline_ns);
/* Moves the deadline; STORE_NEVER takes it away. 0, or a negative errno value. */
int store_expire(struct entry *entry, int64_t deadline_ns);
void store_remove(struct entry *entry);
void store_clear(struct store *store);

typedef void store_visit(void *context, struct span key);
/*
 * Visits the keys of one slot of the table that live at `now_ns`, and returns the cursor for the next call:
 * 0 begins, and 0 is the end. `visit` must not change the table.
 */
uint64_t store_scan(struct store *store, uint64_t cursor, int64_t now_ns, store_visit *visit,
		    void *context);

/* Frees everything after alarms_stop: the alarms have ended and are left alone. */
void store_done(struct store *store);

#endif
