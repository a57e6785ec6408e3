/* SPDX-License-Identifier: MIT */
/*
 * Walks the table slot by slot, over many calls, while keys come and go.
 *
 * A key's slot is the low bits of its hash, as many as the table's size has. When uthash doubles
 * the table, the keys of slot s are in the slots s and s + size afterwards. So a key stays in its
 * slot or moves to a higher one, and a key that the cursor has not reached stays ahead of the cursor.
 * uthash makes a table smaller only when the last key is gone, and then no key was there all the
 * time. So a key that stays is returned at least once. A key that moves up may be returned twice.
 */
#include "entry.h"

uint64_t store_scan(struct store *store, uint64_t cursor, int64_t now_ns, store_visit *visit,
		    void *context)
{
	UT_hash_handle *handle;

	if (store->table == NULL || cursor >= store->table->hh.tbl->num_buckets)
		return 0;
	handle = store->table->hh.tbl->buckets[cursor].hh_head;
	for (; handle != NULL; handle = handle->hh_next) {
		struct entry *entry = ELMT_FROM_HH(store->table->hh.tbl, handle);

		if (entry->deadline_ns > now_ns)
			visit(context, (struct span){entry->key, entry->key_bytes});
	}
	return cursor + 1 < store->table->hh.tbl->num_buckets ? cursor + 1 : 0;
}
