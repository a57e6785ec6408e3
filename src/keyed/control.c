/* SPDX-License-Identifier: MIT */
/*
 * Calls on an entry by its key: cancel it, move it, look at it.
 *
 * `life` is a number that no other entry of the same key has. A cancel that names a life reads the
 * state word, then the life, then swaps the state word that it has read. No value of the state word
 * ever comes twice. So if the swap succeeds, the state word and the life belong together.
 *
 * After a thread has found an entry in the table, another thread may replace the entry before the
 * first thread reads the state word. The key has had an entry all the time, so it must not be
 * reported as absent. The state word shows that the entry was replaced, and the thread looks the
 * key up again. Only tw_keyed_get does not look again, because it must be wait-free. It reports
 * that the entry is busy.
 *
 * A reschedule moves the timer that the entry has at that moment. The entry may be replaced in
 * place after the call has read the timer's handle and before it moves the timer. Then the call
 * moves the timer of the new kind and argument, as if it had been made after the replace. If the
 * entry has ended, its timer has ended too, and the thread looks the key up again.
 */
#include "base/sized.h"
#include "base/test_point.h"
#include "keyed/entry.h"
#include "keyed/hash.h"
#include "thread/fork.h"

#include <errno.h>

/*
 * Returns whether the state word belongs to the life that the caller asked for. If not, *ret_same
 * says whether the state word is still unchanged.
 */
static bool life_meant(struct twi_keyed_entry *entry, uint64_t word, uint64_t life, bool *ret_same)
{
	/* E51: pairs with entry_fill. */
	bool meant = life == TW_KEYED_ANY || twi_load_acquire(&entry->life) == life;

	*ret_same = meant || twi_keyed_same(entry, word);
	return meant;
}

/*
 * Returns the outcome for a key whose entry is dead: `replaced` if another entry has replaced it.
 */
static int dead_outcome(uint64_t word, int replaced)
{
	return (word & TWI_KEYED_REPLACED) != 0 ? replaced : TW_KEYED_ABSENT;
}

/*
 * Takes the entry for a cancel (the linearization point), or sets stop if another thread holds it.
 * Must be called inside a section. If it returns TW_KEYED_DONE, the caller owns the entry, and
 * *ret_word is its state word. If it returns TW_KEYED_REPLACED, the entry was replaced, and the
 * caller must look again.
 */
static int entry_stop(struct twi_keyed_entry *entry, uint64_t life, uint64_t *ret_word)
{
	uint64_t word = twi_keyed_look(entry);
	bool same;

	for (;;) {
		bool waits = twi_keyed_state(word) == TWI_KEYED_WAITING;
		uint64_t next = waits ? twi_keyed_to(word, TWI_KEYED_OWNED) : word | TWI_KEYED_STOP;

		if (twi_keyed_dead(word))
			return dead_outcome(word, TW_KEYED_REPLACED);
		if (!life_meant(entry, word, life, &same)) {
			if (same)
				return TW_KEYED_ABSENT;
			word = twi_keyed_look(entry);
			continue;
		}
		TWI_TEST_POINT("keyed:cancelling");
		if (twi_keyed_swap(entry, &word, next)) {
			*ret_word = next;
			return waits ? TW_KEYED_DONE : TW_KEYED_RUNNING;
		}
	}
}

int tw_keyed_cancel(struct tw_keyed *table, const void *key, size_t key_bytes, uint64_t life)
{
	struct cds_lfht_iter place;
	struct twi_keyed_entry *entry;
	struct twi_key wanted;
	uint64_t word = 0;
	int outcome = twi_key_check(table, key, key_bytes, &wanted);

	if (outcome != 0)
		return outcome;
	do {
		outcome = TW_KEYED_ABSENT;
		twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
		entry = twi_hash_find(table, &wanted, &place);
		TWI_TEST_POINT("keyed:found");
		if (entry != NULL) {
			/* RELAXED: the address is only prefetched. */
			TWI_PREFETCH_WRITE(twi_load_relaxed(&entry->timer_node));
			outcome = entry_stop(entry, life, &word);
		}
		twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	} while (TWI_UNLIKELY(outcome == TW_KEYED_REPLACED));
	if (outcome == TW_KEYED_DONE)
		twi_keyed_end(entry, word, TW_KEYED_END_CANCELLED);
	return outcome;
}

/*
 * Moves the timer of an entry. Returns TW_KEYED_PRESENT if the entry has changed meanwhile; the
 * caller must then look again.
 */
static int entry_move(struct twi_keyed_entry *entry, int64_t delay_ns)
{
	uint64_t word = twi_keyed_look(entry);
	struct tw_handle timer = twi_keyed_timer(entry);
	int outcome;

	if (twi_keyed_dead(word))
		return dead_outcome(word, TW_KEYED_PRESENT);
	if (twi_keyed_state(word) == TWI_KEYED_HELD)
		return TW_KEYED_RUNNING;
	if (!twi_keyed_same(entry, word))
		return TW_KEYED_PRESENT;
	TWI_TEST_POINT("keyed:moving");
	outcome = tw_reschedule(timer, delay_ns);
	if (outcome == TW_RESCHEDULE_DONE)
		return TW_KEYED_DONE;
	return twi_keyed_same(entry, word) ? TW_KEYED_RUNNING : TW_KEYED_PRESENT;
}

int tw_keyed_reschedule(struct tw_keyed *table, const void *key, size_t key_bytes, int64_t delay_ns)
{
	struct cds_lfht_iter place;
	struct twi_keyed_entry *entry;
	struct twi_key wanted;
	int outcome = twi_key_check(table, key, key_bytes, &wanted);

	if (outcome != 0 || delay_ns == INT64_MIN)
		return outcome != 0 ? outcome : -ERANGE;
	do {
		twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
		entry = twi_hash_find(table, &wanted, &place);
		TWI_TEST_POINT("keyed:found");
		outcome = entry != NULL ? entry_move(entry, delay_ns) : TW_KEYED_ABSENT;
		twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	} while (outcome == TW_KEYED_PRESENT);
	return outcome;
}

static const struct tw_keyed_info busy = {.size = sizeof busy, .busy = 1};

/*
 * Reads a living entry. Must be called inside a section. The deadline is the timer's, and a replace
 * in place moves the timer. If the deadline was set in a later hold, this thread has acquired that
 * hold. So this function then finds another state word, and returns busy.
 */
static struct tw_keyed_info info_read(struct twi_keyed_entry *entry, uint64_t word)
{
	/* E51, all loads below: they pair with entry_fill. */
	struct tw_keyed_info info = {
		.size = sizeof info,
		.kind = twi_load_acquire(&entry->kind),
		.arg = twi_load_acquire(&entry->arg),   /* E51: as above */
		.life = twi_load_acquire(&entry->life), /* E51: as above */
	};
	struct tw_handle timer = twi_keyed_timer(entry);
	struct tw_timeout timeout = {.size = sizeof timeout};

	if (twi_keyed_state(word) == TWI_KEYED_HELD || tw_timeout_get(timer, &timeout) != 0)
		return busy;
	TWI_TEST_POINT("keyed:read");
	if (!twi_keyed_same(entry, word))
		return busy;
	info.deadline_ns = timeout.deadline_ns;
	return info;
}

/*
 * Reports an entry. Must be called inside a section. Returns false if the key has no living entry.
 */
static bool entry_report(struct twi_keyed_entry *entry, struct tw_keyed_info *ret_info)
{
	uint64_t word = twi_keyed_look(entry);

	if (twi_keyed_dead(word)) {
		*ret_info = busy;
		return dead_outcome(word, TW_KEYED_PRESENT) == TW_KEYED_PRESENT;
	}
	*ret_info = info_read(entry, word);
	return true;
}

/*
 * Returns whether the state word shows that the key has an entry: this one, or one that replaced
 * it. Must be called inside a section.
 */
static bool entry_is(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_keyed_look(entry);

	return !twi_keyed_dead(word) || (word & TWI_KEYED_REPLACED) != 0;
}

int tw_keyed_get(struct tw_keyed *table, const void *key, size_t key_bytes,
		 struct tw_keyed_info *ret_info)
{
	struct cds_lfht_iter place;
	struct tw_keyed_info info;
	struct twi_keyed_entry *entry;
	struct twi_key wanted;
	bool found;
	int error = twi_key_check(table, key, key_bytes, &wanted);

	if (error != 0)
		return error;
	if (ret_info != NULL &&
	    (ret_info->size < sizeof info || ret_info->size > TWI_STRUCT_BYTES_MAX))
		return -EINVAL;
	twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
	entry = twi_hash_find(table, &wanted, &place);
	TWI_TEST_POINT("keyed:found");
	if (ret_info != NULL)
		found = entry != NULL && entry_report(entry, &info);
	else
		found = entry != NULL && entry_is(entry);
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	if (!found)
		return TW_KEYED_ABSENT;
	if (ret_info != NULL) {
		info.size = ret_info->size;
		twi_copy_out(ret_info, ret_info->size, &info, sizeof info);
	}
	return TW_KEYED_PRESENT;
}

int64_t tw_keyed_each(struct tw_keyed *table, tw_keyed_visit *visit, void *context)
{
	struct cds_lfht_iter place;
	struct tw_keyed_info info;
	int64_t visited = 0;
	int stop = 0;

	if (table == NULL || visit == NULL)
		return -EINVAL;
	if (table->fork_epoch != twi_fork_epoch)
		return -ECHILD;
	twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
	cds_lfht_first(table->hash, &place);
	while (stop == 0 && place.node != NULL) {
		struct twi_keyed_entry *entry = twi_hash_entry(place.node);
		uint64_t word = twi_keyed_look(entry);

		/*
		 * A dead entry is not visited. If another entry has replaced it, the walk may miss
		 * the other entry.
		 */
		if (!twi_keyed_dead(word)) {
			info = info_read(entry, word);
			visited++;
			stop = visit(context, twi_keyed_key(entry), entry->key_bytes, &info);
			twi_keyed_key_release(entry);
		}
		if (stop == 0)
			cds_lfht_next(table->hash, &place);
	}
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	return visited;
}

int64_t tw_keyed_count(struct tw_keyed *table)
{
	uint64_t count = 0;

	if (table == NULL)
		return -EINVAL;
	for (size_t i = 0; i < TWI_KEYED_STRIPES; i++)
		/* RELAXED: only counts. */
		count += twi_load_relaxed(&table->stripe[i].count) % TWI_COUNT_ENTRY;
	return (int64_t)count;
}
