/* SPDX-License-Identifier: MIT */
/*
 * The keys, their values and their expiry; see store.h.
 *
 * An entry owns at most one alarm. To replace a deadline, the store sets the new alarm before it
 * clears the old one. So if the new alarm cannot be set,
 * nothing has changed. An alarm that is cleared never touches the entry again.
 */
#include "entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t store_count(const struct store *store)
{
	return HASH_COUNT(store->table);
}

struct span entry_value(const struct entry *entry)
{
	return (struct span){entry->value, entry->value_bytes};
}

int64_t entry_deadline_ns(const struct entry *entry)
{
	return entry->deadline_ns;
}

static struct entry *find(struct store *store, struct span key)
{
	struct entry *entry;

	HASH_FIND(hh, store->table, key.bytes, key.count, entry);
	return entry;
}

struct entry *store_find(struct store *store, struct span key, int64_t now_ns)
{
	struct entry *entry = find(store, key);

	return entry != NULL && entry->deadline_ns > now_ns ? entry : NULL;
}

static void free_entry(struct entry *entry)
{
	free(entry->value);
	free(entry);
}

/* Adds an entry to the table, still without a value. */
static struct entry *add_entry(struct store *store, struct span key)
{
	struct entry *entry = calloc(1, sizeof(*entry) + key.count);

	if (entry == NULL)
		return NULL;
	entry->store = store;
	entry->deadline_ns = STORE_NEVER;
	entry->key_bytes = key.count;
	memcpy(entry->key, key.bytes, key.count);
	HASH_ADD(hh, store->table, key, entry->key_bytes, entry);
	if (entry->store != NULL)
		return entry;
	free(entry);
	return NULL;
}

static void forget_alarm(struct entry *entry)
{
	if (entry->expiry != NULL)
		entry->store->expiring_count--;
	entry->expiry = NULL;
}

void store_remove(struct entry *entry)
{
	alarm_clear(entry->expiry);
	forget_alarm(entry);
	HASH_DEL(entry->store->table, entry);
	free_entry(entry);
}

static void on_expiry(void *owner)
{
	struct entry *entry = owner;

	forget_alarm(entry);
	entry->store->expired_count++;
	store_remove(entry);
}

int store_expire(struct entry *entry, int64_t deadline_ns)
{
	struct alarm *expiry = NULL;
	int rc = 0;

	if (deadline_ns != STORE_NEVER)
		rc = alarm_set(entry->store->alarms, deadline_ns, on_expiry, entry, &expiry);
	if (rc < 0)
		return rc;
	alarm_clear(entry->expiry);
	forget_alarm(entry);
	entry->store->expiring_count += expiry != NULL;
	entry->expiry = expiry;
	entry->deadline_ns = deadline_ns;
	return 0;
}

static char *copy_bytes(struct span from)
{
	char *copy = malloc(from.count + 1);

	if (copy != NULL)
		memcpy(copy, from.bytes, from.count);
	return copy;
}

int store_set(struct store *store, struct span key, struct span value, int64_t deadline_ns)
{
	struct entry *present = find(store, key);
	struct entry *entry = present != NULL ? present : add_entry(store, key);
	char *copy = copy_bytes(value);

	if (entry == NULL || copy == NULL ||
	    (deadline_ns != entry->deadline_ns && store_expire(entry, deadline_ns) < 0)) {
		if (entry != NULL && present == NULL)
			store_remove(entry);
		free(copy);
		return -ENOMEM;
	}
	free(entry->value);
	entry->value = copy;
	entry->value_bytes = value.count;
	return 0;
}

static void empty(struct store *store, void (*take)(struct entry *entry))
{
	struct entry *entry;
	struct entry *next;

	HASH_ITER(hh, store->table, entry, next)
	{
		take(entry);
	}
}

void store_clear(struct store *store)
{
	empty(store, store_remove);
}

static void remove_without_alarm(struct entry *entry)
{
	forget_alarm(entry);
	store_remove(entry);
}

void store_done(struct store *store)
{
	empty(store, remove_without_alarm);
}
