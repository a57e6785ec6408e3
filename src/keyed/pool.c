/* SPDX-License-Identifier: MIT */
/*
 * Memory for entries. An entry is free, in use, retired, and after a grace period free again.
 *
 * The free entries are a stack. It needs no counter against ABA, because a pop is made inside a
 * read-side section, and a popped entry returns only after a grace period. So if the top is still
 * the same, the link that a pop has read is still correct.
 */
#include "keyed/entry.h"

#include "memory/memory.h"

#include <string.h>
#include <sys/mman.h>

/* Pushes a list of entries onto the free stack. */
static void free_push(struct tw_keyed *table, struct twi_keyed_entry *first,
		      struct twi_keyed_entry *last)
{
	/*
	 * RELAXED, the load and the store: this thread reads no field of the old top, and the swap
	 * publishes the entries.
	 */
	struct twi_keyed_entry *top = twi_load_relaxed(&table->free);

	do {
		twi_store_relaxed(&last->next, top); /* RELAXED: as above */

		/*
		 * E52: pairs with twi_keyed_free_pop. Publishes the entries, and everything that
		 * was done with them.
		 */
	} while (!twi_cas_release(&table->free, &top, first));
}

struct twi_keyed_entry *twi_keyed_free_pop(struct tw_keyed *table)
{
	struct twi_keyed_entry *top;

	twi_rcu_enter();                      /* E56: until we leave, no popped entry comes back */
	top = twi_load_acquire(&table->free); /* E52: pairs with free_push */

	/*
	 * RELAXED: the link is correct if the top is still the same (see above). E52: if the swap
	 * fails, acquires the new top.
	 */
	while (top != NULL && !twi_cas_acquire(&table->free, &top, twi_load_relaxed(&top->next)))
		;
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	return top;
}

static size_t chunk_entries(const struct twi_keyed_chunk *chunk)
{
	return (chunk->bytes - sizeof *chunk) / TWI_KEYED_ENTRY_BYTES;
}

static void chunk_add(struct tw_keyed *table, struct twi_keyed_chunk *chunk)
{
	size_t last = chunk_entries(chunk) - 1;
	/*
	 * RELAXED: this thread does not read the older chunks. They are released only after the
	 * last add.
	 */
	struct twi_keyed_chunk *first = twi_load_relaxed(&table->chunks);

	for (size_t i = 0; i <= last; i++) {
		chunk->entry[i].table = table;
		/* RELAXED: no other thread has the chunk yet. */
		if (i > 0)
			twi_store_relaxed(&chunk->entry[i - 1].next, &chunk->entry[i]);
	}
	do {
		chunk->next = first;
		/* E52: publishes the chunk to twi_keyed_entries_release. */
	} while (!twi_cas_release(&table->chunks, &first, chunk));
	free_push(table, &chunk->entry[0], &chunk->entry[last]);
}

/*
 * Returns the size of a chunk for about `entries` entries: the least size, or a power of two up to
 * a huge page.
 */
static size_t chunk_bytes(uint64_t entries)
{
	size_t bytes =
		sizeof(struct twi_keyed_chunk) + TWI_KEYED_CHUNK_ENTRIES * TWI_KEYED_ENTRY_BYTES;

	if (entries <= TWI_KEYED_CHUNK_ENTRIES)
		return bytes;
	bytes = TWI_KEYED_CHUNK_ENTRIES * TWI_KEYED_ENTRY_BYTES;
	while (bytes < TWI_KEYED_CHUNK_BYTES_MAX && bytes / TWI_KEYED_ENTRY_BYTES < entries)
		bytes *= 2;
	return bytes;
}

bool twi_keyed_grow_once(struct tw_keyed *table, uint64_t entries, uint64_t *ret_entries)
{
	size_t bytes = chunk_bytes(entries);
	bool huge = bytes == TWI_KEYED_CHUNK_BYTES_MAX;
	struct twi_keyed_chunk *chunk = twi_allocate(
		table->allocator, bytes, huge ? TWI_KEYED_CHUNK_BYTES_MAX : TWI_KEYED_ENTRY_BYTES);

	if (chunk == NULL)
		return false;
	/* Keys are random, so lookups go to random pages. A huge page saves misses of the TLB. */
	if (huge)
		(void)madvise(chunk, bytes, MADV_HUGEPAGE);
	memset(chunk, 0, bytes);
	twi_tsan_release(table);
	chunk->bytes = bytes;
	*ret_entries = chunk_entries(chunk);
	/* RELAXED: it is only a count. */
	(void)twi_fetch_add_relaxed(&table->entries, *ret_entries);
	chunk_add(table, chunk);
	return true;
}

bool twi_keyed_grow(struct tw_keyed *table, uint64_t entries)
{
	uint64_t more;

	for (uint64_t made = 0; made < entries; made += more)
		if (!twi_keyed_grow_once(table, entries - made, &more))
			return false;
	return true;
}

bool twi_keyed_key_copy(struct twi_keyed_entry *entry, const struct twi_key *key)
{
	void *copy = entry->key.near;

	if (key->count > TWI_KEY_NEAR_BYTES) {
		copy = twi_allocate(entry->table->allocator, key->count, 1);
		if (copy == NULL)
			return false;
		memcpy(entry->key.far, &copy, sizeof copy);
	}
	memcpy(copy, key->bytes, key->count);
	entry->key_bytes = (uint16_t)key->count;
	return true;
}

static void key_release(struct twi_keyed_entry *entry)
{
	void *copy;

	if (entry->key_bytes > TWI_KEY_NEAR_BYTES) {
		twi_keyed_key_acquire(entry);
		memcpy(&copy, entry->key.far, sizeof copy);
		twi_release(entry->table->allocator, copy, entry->key_bytes, 1);
	}
	entry->key_bytes = 0;
}

void twi_keyed_entries_free(struct tw_keyed *table, struct twi_keyed_entry *first)
{
	struct twi_keyed_entry *last = first->last;
	struct twi_keyed_entry *entry = first;

	while (table->key_bytes_max > TWI_KEY_NEAR_BYTES) {
		key_release(entry);
		if (entry == last)
			break;
		/* RELAXED: the caller has acquired the links with the list. */
		entry = twi_load_relaxed(&entry->next);
	}
	free_push(table, first, last);
}

/*
 * Frees the copies of keys. In a forked child no thread frees the entries that were retired at the
 * fork, so their keys must be freed here.
 */
static void chunk_keys_release(struct twi_keyed_chunk *chunk)
{
	for (size_t i = 0; i < chunk_entries(chunk); i++)
		key_release(&chunk->entry[i]);
}

void twi_keyed_entries_release(struct tw_keyed *table)
{
	/* E52: pairs with chunk_add. */
	struct twi_keyed_chunk *chunk = twi_load_acquire(&table->chunks);

	while (chunk != NULL) {
		struct twi_keyed_chunk *next = chunk->next;

		if (table->key_bytes_max > TWI_KEY_NEAR_BYTES)
			chunk_keys_release(chunk);
		twi_release(table->allocator, chunk, chunk->bytes,
			    chunk->bytes == TWI_KEYED_CHUNK_BYTES_MAX ? TWI_KEYED_CHUNK_BYTES_MAX
								      : TWI_KEYED_ENTRY_BYTES);
		chunk = next;
	}
}
