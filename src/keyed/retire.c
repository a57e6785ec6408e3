/* SPDX-License-Identifier: MIT */
/*
 * Takes entries out of the pool, and retires them to the reclaimer.
 *
 * A thread that retires an entry also reads the first entry of the list, so the thread must be
 * inside a section. Each retired entry stores the last one of the list that begins with it, so that
 * the reclaimer can move the list without walking it. If keys may be too long for an entry, the
 * reclaimer still walks the list, to free the copies of the keys.
 */
#include "keyed/entry.h"
#include "keyed/reclaim.h"

#include "thread/fork.h"

struct twi_keyed_entry *twi_keyed_take(struct tw_keyed *table, const struct twi_key *key)
{
	struct twi_keyed_entry *entry = twi_keyed_free_pop(table);
	uint64_t word, more;

	while (entry == NULL) {
		/*
		 * Makes the reclaimer if it is missing, because without it no retired entry becomes
		 * free.
		 */
		twi_reclaim_again();
		/* RELAXED: only a count. The pool grows by an eighth of all entries. */
		if (!twi_keyed_grow_once(table, twi_load_relaxed(&table->entries) / 8, &more))
			return NULL;
		entry = twi_keyed_free_pop(table);
	}
	twi_tsan_acquire(table);
	twi_keyed_key_acquire(entry);
	entry->stripe = (uint16_t)(key->hash % TWI_KEYED_STRIPES);
	/*
	 * RELAXED: only tw_keyed_destroy acts on this half of the count, and no thread may schedule
	 * any more by then.
	 */
	(void)twi_fetch_add_relaxed(&table->stripe[entry->stripe].count, TWI_COUNT_ENTRY);
	if (!twi_keyed_key_copy(entry, key)) {
		twi_keyed_retire(entry);
		return NULL;
	}
	entry->runs = 0;
	/* RELAXED: no thread changes the state word of a free entry. */
	word = twi_keyed_begin(twi_load_relaxed(&entry->word));
	/*
	 * E50: the caller sets the timer afterwards, and the timer may expire before the entry is
	 * in the table. So the state word must be stored here.
	 */
	twi_store_release(&entry->word, word);
	return entry;
}

void twi_keyed_retire(struct twi_keyed_entry *entry)
{
	struct tw_keyed *table = entry->table;
	_Atomic uint64_t *count = &table->stripe[entry->stripe].count;
	struct twi_keyed_entry *first;

	twi_keyed_key_release(entry);
	twi_rcu_enter();                           /* E56: until we leave, `first` is not freed */
	first = twi_load_acquire(&table->retired); /* E52: acquires `last` of `first` */
	do {
		/* RELAXED: the swap publishes. */
		twi_store_relaxed(&entry->next, first);
		entry->last = first != NULL ? first->last : entry;
		/* E52: pairs with work_take and with itself. */
	} while (!twi_cas_acq_rel(&table->retired, &first, entry));
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	/*
	 * If a hook has forked, the child has its own reclaimer, and this table belongs to the
	 * parent.
	 */
	if (first == NULL && table->fork_epoch == twi_fork_epoch)
		twi_reclaim_push(table);
	twi_tsan_release(count);
	/* E53: pairs with entries_out. This is the last access to the table. */
	(void)twi_fetch_sub_release(count, TWI_COUNT_ENTRY);
}
