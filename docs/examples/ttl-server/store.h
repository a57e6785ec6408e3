/* SPDX-License-Identifier: MIT */
/*
 * The keys, their values and their expiry.
 *
 * A key is gone exactly at its deadline, because every lookup compares the times. The alarm of the
 * key then releases the memory. The table is uthash, which is one header and needs no library. Its
 * links are inside the entry, so a key needs no second allocation.
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

/* Returns the number of keys, including those that are past their deadline and not yet released. */
uint64_t store_count(const struct store *store);

/* Returns the entry of a key, or NULL if there is none at `now_ns`. */
struct entry *store_find(struct store *store, struct span key, int64_t now_ns);
struct span entry_value(const struct entry *entry);
int64_t entry_deadline_ns(const struct entry *entry);

/* Creates or replaces a key. Returns 0, or a negative errno value; then nothing has changed. */
int store_set(struct store *store, struct span key, struct span value, int64_t deadline_ns);
/* Moves the deadline; STORE_NEVER removes it. Returns 0, or a negative errno value. */
int store_expire(struct entry *entry, int64_t deadline_ns);
void store_remove(struct entry *entry);
void store_clear(struct store *store);

typedef void store_visit(void *context, struct span key);
/*
 * Visits the keys of one slot of the table that exist at `now_ns`, and returns the cursor for the
 * next call. A cursor of 0 begins the walk; a result of 0 is its end. `visit` must not change the
 * table.
 */
uint64_t store_scan(struct store *store, uint64_t cursor, int64_t now_ns, store_visit *visit,
		    void *context);

/* Frees everything. Must be called after alarms_stop: the alarms have ended then, and are not
 * touched. */
void store_done(struct store *store);

#endif
