/* SPDX-License-Identifier: MIT */
/*
 * The hash of a key, and the calls of liburcu's hash table that keyed timeouts need.
 *
 * If a thread finds an entry in the table, it sees all that was written before the entry was put
 * there, because the table has full barriers around each change. ThreadSanitizer does not see the
 * table's barriers, so the macros below report that edge to it. The caller must be inside a
 * read-side section, which also keeps the entries that it finds from being freed.
 *
 * Progress. find is wait-free, the changes are lock-free. The table never changes its size.
 */
#ifndef TWI_KEYED_HASH_H
#define TWI_KEYED_HASH_H

#include "keyed/entry.h"

#include <string.h>

#if TWI_TSAN
#define TWI_HASH_RELEASE(entry) __tsan_release(&(entry)->node)
#define TWI_HASH_ACQUIRE(entry) __tsan_acquire(&(entry)->node)
#else
#define TWI_HASH_RELEASE(entry) twi_tsan_release(&(entry)->node)
#define TWI_HASH_ACQUIRE(entry) twi_tsan_acquire(&(entry)->node)
#endif

/* Folds both halves of a product: each bit of the result depends on most bits of both factors. */
static inline uint64_t twi_fold(uint64_t left, uint64_t right)
{
	__extension__ unsigned __int128 product = (unsigned __int128)left * right;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Returns the last 1 to 8 bytes of a key as a number. */
static inline uint64_t twi_key_tail(const unsigned char *bytes, size_t count)
{
	uint32_t low, high;
	uint64_t whole;

	if (count == sizeof whole) {
		memcpy(&whole, bytes, sizeof whole);
		return whole;
	}
	if (count >= sizeof low) {
		memcpy(&low, bytes, sizeof low);
		memcpy(&high, bytes + count - sizeof high, sizeof high);
		return (uint64_t)high << 32 | low;
	}
	return (uint64_t)bytes[0] << 16 | (uint64_t)bytes[count / 2] << 8 | bytes[count - 1];
}

/* Returns the hash of a key. An attacker must know the seed to choose keys that collide. */
static inline uint64_t twi_key_hash(uint64_t seed, const void *key, size_t count)
{
	const unsigned char *bytes = key;
	uint64_t hash = seed ^ (uint64_t)count * UINT64_C(0x9e3779b97f4a7c15);

	for (; count > sizeof hash; bytes += sizeof hash, count -= sizeof hash) {
		uint64_t part;

		memcpy(&part, bytes, sizeof part);
		hash = twi_fold(hash ^ part, UINT64_C(0xd6e8feb86659fd93));
	}
	hash = twi_fold(hash ^ twi_key_tail(bytes, count), UINT64_C(0xa0761d6478bd642f));
	return twi_fold(hash ^ seed, UINT64_C(0xe7037ed1a0b428db));
}

static inline struct twi_keyed_entry *twi_hash_entry(struct cds_lfht_node *node)
{
	struct twi_keyed_entry *entry = TWI_CONTAINER_OF(node, struct twi_keyed_entry, node);

	TWI_HASH_ACQUIRE(entry);
	return entry;
}

static inline int twi_hash_match(struct cds_lfht_node *node, const void *argument)
{
	const struct twi_key *key = argument;
	struct twi_keyed_entry *entry = twi_hash_entry(node);
	bool same = entry->key_bytes == key->count &&
		    memcmp(twi_keyed_key(entry), key->bytes, key->count) == 0;

	twi_keyed_key_release(entry);
	return same;
}

/* Returns the entry that the table has for the key, dead or alive, or NULL. */
static inline struct twi_keyed_entry *
twi_hash_find(struct tw_keyed *table, const struct twi_key *key, struct cds_lfht_iter *ret_place)
{
	cds_lfht_lookup(table->hash, key->hash, twi_hash_match, key, ret_place);
	return ret_place->node != NULL ? twi_hash_entry(ret_place->node) : NULL;
}

/*
 * Adds an entry (the linearization point of a schedule). Returns false if the key is already in the
 * table.
 */
static inline bool twi_hash_add(struct tw_keyed *table, const struct twi_key *key,
				struct twi_keyed_entry *entry)
{
	TWI_HASH_RELEASE(entry);
	return cds_lfht_add_unique(table->hash, key->hash, twi_hash_match, key, &entry->node) ==
	       &entry->node;
}

/*
 * Replaces an entry in the table (the linearization point of a replace that is not made in place).
 * Returns false if the old entry has left the table.
 */
static inline bool twi_hash_replace(struct tw_keyed *table, const struct twi_key *key,
				    struct cds_lfht_iter *place, struct twi_keyed_entry *entry)
{
	TWI_HASH_RELEASE(entry);
	return cds_lfht_replace(table->hash, place, key->hash, twi_hash_match, key, &entry->node) ==
	       0;
}

/* Takes an entry out of the table. Returns false if another thread has done so. */
static inline bool twi_hash_remove(struct tw_keyed *table, struct twi_keyed_entry *entry)
{
	return cds_lfht_del(table->hash, &entry->node) == 0;
}

#endif
