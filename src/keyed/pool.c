/* SPDX-License-Identifier: MIT */
/*
 * Memory for entries. An entry is free, in use, retired, and after a grace period free again.
 *
 * The free entries are a stack without a counter. It needs none, because a pop is made inside a
 * read-side section, and a popped entry comes back only after a grace period. So if the top is
 * still the same, the link that a pop has read is still the top's.
 *
 * For the same reason a thread that retires an entry may look at the one retired before it. Each
 * entry knows the last one of the list that it begins, so that the reclaimer can move the list
 * without walking it. If keys do not fit into an entry, the reclaimer walks it and releases the
 * copies of the keys.
 */
#include "keyed/entry.h"
#include "keyed/reclaim.h"

#include "mech/fork.h"
#include "mech/memory.h"

#include <string.h>
#include <sys/mman.h>

/* Pushes a list onto the free ones. */
static void free_push(struct tw_keyed *table, struct twi_keyed_entry *first,
		      struct twi_keyed_entry *last)
{
	/* RELAXED, both: nothing behind the old top is read; the swap publishes. */
	struct twi_keyed_entry *top = twi_load_relaxed(&table->free);

	do {
		twi_store_relaxed(&last->next, top); /* RELAXED */
		/* E52: pairs with free_pop; publishes the entries and all that was done. */
	} while (!twi_cas_release(&table->free, &top, first));
}

static struct twi_keyed_entry *free_pop(struct tw_keyed *table)
{
	struct twi_keyed_entry *top;

	twi_rcu_enter();                      /* E56 */
	top = twi_load_acquire(&table->free); /* E52 */

	/*
	 * RELAXED: it is the top's link if the top is still the same (see above). E52: acquires the
	 * new top if it fails.
	 */
	while (top != NULL && !twi_cas_acquire(&table->free, &top, twi_load_relaxed(&top->next)))
		;
	twi_rcu_leave(); /* E56 */
	return top;
}

static size_t chunk_entries(const struct twi_keyed_chunk *chunk)
{
	return (chunk->bytes - sizeof *chunk) / TWI_KEYED_ENTRY_BYTES;
}

static void chunk_add(struct tw_keyed *table, struct twi_keyed_chunk *chunk)
{
	size_t last = chunk_entries(chunk) - 1;
	/* RELAXED: the chunks are released only after the last thread has added one. */
	struct twi_keyed_chunk *first = twi_load_relaxed(&table->chunks);

	for (size_t i = 0; i <= last; i++) {
		chunk->entry[i].table = table;
		/* RELAXED: no other thread has it yet. */
		if (i > 0)
			twi_store_relaxed(&chunk->entry[i - 1].next, &chunk->entry[i]);
	}
	do {
		chunk->next = first;
		/* E52: pairs with twi_keyed_entries_release. */
	} while (!twi_cas_release(&table->chunks, &first, chunk));
	free_push(table, &chunk->entry[0], &chunk->entry[last]);
}

/*
 * Returns the size of a chunk for about so many entries: the least size, or a power of two up to a
 * huge page.
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

/* Adds a chunk for about so many entries. *ret_entries is how many it has. */
static bool chunk_grow(struct tw_keyed *table, uint64_t entries, uint64_t *ret_entries)
{
	size_t bytes = chunk_bytes(entries);
	bool huge = bytes == TWI_KEYED_CHUNK_BYTES_MAX;
	struct twi_keyed_chunk *chunk = twi_allocate(
		table->allocator, bytes, huge ? TWI_KEYED_CHUNK_BYTES_MAX : TWI_KEYED_ENTRY_BYTES);

	if (chunk == NULL)
		return false;
	/* Keys are random, so their entries lie on random pages. */
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
		if (!chunk_grow(table, entries - made, &more))
			return false;
	return true;
}

static bool key_copy(struct twi_keyed_entry *entry, const struct twi_key *key)
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
		entry->table->allocator->release(entry->table->allocator->context, copy,
						 entry->key_bytes, 1);
	}
	entry->key_bytes = 0;
}

struct twi_keyed_entry *twi_keyed_take(struct tw_keyed *table, const struct twi_key *key)
{
	struct twi_keyed_entry *entry = free_pop(table);
	uint64_t word, more;

	while (entry == NULL) {
		/* If there is no reclaimer thread, no entry comes back. */
		twi_reclaim_again();
		/* RELAXED: it is only a count. Grows by an eighth of all entries. */
		if (!chunk_grow(table, twi_load_relaxed(&table->entries) / 8, &more))
			return NULL;
		entry = free_pop(table);
	}
	twi_tsan_acquire(table);
	twi_keyed_key_acquire(entry);
	entry->stripe = (uint16_t)(key->hash % TWI_KEYED_STRIPES);
	/* RELAXED: the destroyer must make sure that no thread schedules any more. */
	(void)twi_fetch_add_relaxed(&table->stripe[entry->stripe].count, TWI_COUNT_ENTRY);
	if (!key_copy(entry, key)) {
		twi_keyed_retire(entry);
		return NULL;
	}
	entry->runs = 0;
	/* RELAXED: no thread changes the word of a free entry. */
	word = twi_keyed_begin(twi_load_relaxed(&entry->word));
	/* E50: its timer may come before it is in the table. */
	twi_store_release(&entry->word, word);
	return entry;
}

void twi_keyed_retire(struct twi_keyed_entry *entry)
{
	struct tw_keyed *table = entry->table;
	_Atomic uint64_t *count = &table->stripe[entry->stripe].count;
	struct twi_keyed_entry *first;

	twi_keyed_key_release(entry);
	twi_rcu_enter();                           /* E56 */
	first = twi_load_acquire(&table->retired); /* E52: its `last` is read below */
	do {
		/* RELAXED: the swap publishes. */
		twi_store_relaxed(&entry->next, first);
		entry->last = first != NULL ? first->last : entry;
		/* E52: pairs with work_take and with itself. */
	} while (!twi_cas_acq_rel(&table->retired, &first, entry));
	twi_rcu_leave(); /* E56 */
	/*
	 * If a hook forked, the child has its own reclaimer, and this table belongs to the parent.
	 */
	if (first == NULL && table->fork_epoch == twi_fork_epoch)
		twi_reclaim_push(table);
	twi_tsan_release(count);
	/* E53: pairs with entries_out; the last touch of the table. */
	(void)twi_fetch_sub_release(count, TWI_COUNT_ENTRY);
}

void twi_keyed_entries_free(struct tw_keyed *table, struct twi_keyed_entry *first)
{
	struct twi_keyed_entry *last = first->last;
	struct twi_keyed_entry *entry = first;

	while (table->key_bytes_max > TWI_KEY_NEAR_BYTES) {
		key_release(entry);
		if (entry == last)
			break;
		/* RELAXED: it was acquired with the list. */
		entry = twi_load_relaxed(&entry->next);
	}
	free_push(table, first, last);
}

/*
 * Releases the copies of keys. If entries were retired at a fork, no thread in the child frees
 * them.
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
		table->allocator->release(table->allocator->context, chunk, chunk->bytes,
					  chunk->bytes == TWI_KEYED_CHUNK_BYTES_MAX
						  ? TWI_KEYED_CHUNK_BYTES_MAX
						  : TWI_KEYED_ENTRY_BYTES);
		chunk = next;
	}
}
