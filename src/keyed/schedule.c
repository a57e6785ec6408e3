/* SPDX-License-Identifier: MIT */
/*
 * tw_keyed_schedule and tw_keyed_replace.
 *
 * If a key has no living entry, it gets a new one. The caller holds the new entry, fills it, and
 * sets its timer. Then the caller puts the entry into the table, in the place of a dead one if
 * there is one, and releases its hold. All steps that can fail come before the change of the table.
 *
 * If an entry waits, a replace is made in place. The replacer takes hold of the entry, moves the
 * timer, stores the new kind and argument, and releases its hold. That changes nothing in the table
 * and needs no memory. If another thread holds the entry, or its timer has already expired, a new
 * entry replaces it in the table, and the old one ends.
 *
 * If an entry is held when its timer expires, the timer's callback leaves the entry to the holder.
 * If the holder is replacing in place, the holder sets a new timer. If no timer can be set, the
 * holder ends the old entry, which was due and has no timer to wait for.
 */
#include "base/sized.h"
#include "base/test_point.h"
#include "keyed/entry.h"
#include "keyed/hash.h"

#include <errno.h>
#include <pthread.h>

struct order {
	struct tw_keyed *table;
	struct twi_key key;
	int64_t delay_ns;
	const struct tw_keyed_kind *kind;
	void *arg;
	uint64_t life;
	uint64_t *ret_life; /* the caller's pointer, or NULL */
	bool replaces;
	/* An old entry that must be ended as replaced, outside the section, and its state word. */
	struct twi_keyed_entry *ousted;
	uint64_t ousted_word;
};

static int kind_check(const struct tw_keyed_kind *kind)
{
	if (kind == NULL || kind->size < sizeof *kind || kind->flags != 0 || kind->callback == NULL)
		return -EINVAL;
	if (kind->size > TWI_STRUCT_BYTES_MAX || !twi_tail_zero(kind, sizeof *kind, kind->size))
		return -E2BIG;
	return 0;
}

/* The fields that a schedule gives an entry. */
struct part {
	const struct tw_keyed_kind *kind;
	void *arg;
	uint64_t life;
	uint64_t runs;
};

/*
 * Sets the fields of an entry that the caller holds. Other threads that read them check the state
 * word again afterwards.
 */
static void entry_fill(struct twi_keyed_entry *entry, const struct part *part)
{
	/*
	 * E51, all stores below: they pair with info_read and life_meant, and publish the hold in
	 * which they are written.
	 */
	twi_store_release(&entry->kind, part->kind);
	twi_store_release(&entry->arg, part->arg);   /* E51: as above */
	twi_store_release(&entry->life, part->life); /* E51: as above */
	entry->runs = part->runs;
}

static struct part part_new(const struct order *order)
{
	return (struct part){.kind = order->kind, .arg = order->arg, .life = order->life};
}

/* Makes an entry that is held, filled and has its timer, but is not in the table yet. */
static int entry_make(const struct order *order, struct twi_keyed_entry **ret_entry)
{
	struct twi_keyed_entry *entry = twi_keyed_take(order->table, &order->key);
	struct part part = part_new(order);
	int error;

	if (entry == NULL)
		return -ENOMEM;
	entry_fill(entry, &part);
	error = twi_keyed_set_timer(entry, order->delay_ns);
	if (error == 0)
		*ret_entry = entry;
	else
		twi_keyed_retire(entry);
	return error;
}

/* Ends an entry that never was in the table. No hook is called. */
static void entry_unmake(struct twi_keyed_entry *entry)
{
	static const struct tw_keyed_kind silent = {.size = sizeof silent};

	/* RELAXED: only this thread reads the kind, when it ends the entry. */
	twi_store_relaxed(&entry->kind, &silent);
	twi_keyed_out(entry);
	twi_keyed_end_held(entry, TW_KEYED_END_CANCELLED);
}

/*
 * Takes an entry that has just been replaced in the table, so that ousted_end ends it. If another
 * thread holds the entry, only sets stop. If the entry is dead, only sets out.
 */
static int entry_oust(struct order *order, struct twi_keyed_entry *old)
{
	uint64_t word = twi_keyed_look(old);
	uint64_t next;

	TWI_TEST_POINT("keyed:ousting");
	do {
		if (twi_keyed_dead(word)) {
			twi_keyed_out(old);
			return TW_KEYED_DONE;
		}
		if (twi_keyed_state(word) == TWI_KEYED_WAITING)
			next = twi_keyed_to(word, TWI_KEYED_OWNED);
		else
			next = word | TWI_KEYED_STOP;
		next |= TWI_KEYED_OUT | TWI_KEYED_REPLACED;
	} while (!twi_keyed_swap(old, &word, next));
	if (twi_keyed_state(word) == TWI_KEYED_HELD)
		return TW_KEYED_RUNNING;
	order->ousted = old;
	order->ousted_word = next;
	return TW_KEYED_REPLACED;
}

/*
 * Puts an entry into the table, inside a section. Returns TW_KEYED_PRESENT if the key has a living
 * entry that must not be replaced; then the new entry is not in the table.
 */
static int entry_put(struct order *order, struct twi_keyed_entry *entry)
{
	struct cds_lfht_iter place;

	for (;;) {
		struct twi_keyed_entry *old = twi_hash_find(order->table, &order->key, &place);

		TWI_TEST_POINT("keyed:putting");
		if (old == NULL) {
			if (twi_hash_add(order->table, &order->key, entry))
				return TW_KEYED_DONE;
		} else if (!order->replaces && !twi_keyed_dead(twi_keyed_look(old))) {
			return TW_KEYED_PRESENT;
		} else if (twi_hash_replace(order->table, &order->key, &place, entry)) {
			/*
			 * RELAXED: it is only a count. put_new has counted the key again, although
			 * it was in the table.
			 */
			(void)twi_fetch_sub_relaxed(&order->table->stripe[entry->stripe].count,
						    TWI_COUNT_KEY);
			return entry_oust(order, old);
		}
	}
}

static void ousted_end(void *argument)
{
	struct order *order = argument;

	if (order->ousted != NULL)
		twi_keyed_end(order->ousted, order->ousted_word, TW_KEYED_END_REPLACED);
}

/*
 * Stores the entry's life in *ret_life. The caller must still hold the entry, because after the
 * release the entry's callback may run and free the memory of *ret_life. Returns the previous
 * value, for life_unset.
 */
static uint64_t life_set(const struct order *order)
{
	uint64_t before = 0;

	if (order->ret_life != NULL) {
		before = *order->ret_life;
		*order->ret_life = order->life;
	}
	return before;
}

/*
 * Restores *ret_life if the entry ended before its hold was released, because a call that fails
 * must not change it.
 */
static void life_unset(const struct order *order, uint64_t before)
{
	if (order->ret_life != NULL)
		*order->ret_life = before;
}

/* Makes a new entry for the key and puts it into the table. */
static int put_new(struct order *order)
{
	struct twi_keyed_entry *entry;
	int outcome = entry_make(order, &entry);

	if (outcome != 0)
		return outcome;
	/* RELAXED: it is only a count. */
	(void)twi_fetch_add_relaxed(&order->table->stripe[entry->stripe].count, TWI_COUNT_KEY);
	twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
	outcome = entry_put(order, entry);
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	/* A hook may end this thread, so a cleanup must end the old entry. */
	pthread_cleanup_push(ousted_end, order);
	if (outcome != TW_KEYED_PRESENT) {
		(void)life_set(order);
		twi_keyed_let_go(entry);
	} else {
		/* RELAXED: it is only a count. */
		(void)twi_fetch_sub_relaxed(&order->table->stripe[entry->stripe].count,
					    TWI_COUNT_KEY);
		entry_unmake(entry);
	}
	pthread_cleanup_pop(1);
	return outcome;
}

static struct part part_old(struct twi_keyed_entry *entry)
{
	return (struct part){
		/* RELAXED: the fields were acquired with the hold. */
		.kind = twi_load_relaxed(&entry->kind),
		.arg = twi_load_relaxed(&entry->arg),   /* RELAXED: as above */
		.life = twi_load_relaxed(&entry->life), /* RELAXED: as above */
		.runs = entry->runs,
	};
}

/*
 * Runs the hook for the old kind and argument, because the entry has the new ones now. The hook
 * gets the key that was passed to this call, because this thread no longer holds the entry.
 */
static int part_report(const struct order *order, const struct part *old)
{
	struct tw_keyed_self self = {
		.table = order->table,
		.key = order->key.bytes,
		.key_bytes = order->key.count,
		.life = old->life,
		.runs = old->runs,
	};

	if (old->kind->ended != NULL)
		old->kind->ended(&self, old->arg, TW_KEYED_END_REPLACED);
	return TW_KEYED_REPLACED;
}

/*
 * Gives a held entry, whose timer is set, the new kind and argument. If another thread sets stop
 * meanwhile, its call meant the old kind and argument, so the entry ends. Then this function
 * returns PRESENT, because the new kind and argument need another entry.
 */
static int place_give(const struct order *order, struct twi_keyed_entry *entry)
{
	const struct part old = part_old(entry), new = part_new(order);
	int error = 0;
	uint64_t word;

	while (error == 0) {
		uint64_t before = life_set(order);

		entry_fill(entry, &new);
		TWI_TEST_POINT("keyed:filled");
		if (twi_keyed_wait(entry, &word))
			return part_report(order, &old);
		entry_fill(entry, &old);
		life_unset(order, before);
		if ((word & TWI_KEYED_STOP) != 0) {
			twi_keyed_end_stopped(entry, word);
			return TW_KEYED_PRESENT;
		}
		/*
		 * The timer has already expired or was handed back, so the entry needs another one.
		 */
		error = twi_keyed_renew_timer(entry, 0);
	}
	twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
	return error;
}

/*
 * Replaces kind and argument of a held entry whose timer is about to expire or has expired. Returns
 * PRESENT if it has released or ended the entry; the caller must then make a new one.
 */
static int replace_late(const struct order *order, struct twi_keyed_entry *entry)
{
	uint64_t word;
	int error;

	if (twi_keyed_wait(entry, &word))
		return TW_KEYED_PRESENT;
	if ((word & TWI_KEYED_STOP) != 0) {
		twi_keyed_end_stopped(entry, word);
		return TW_KEYED_PRESENT;
	}
	error = twi_keyed_renew_timer(entry, order->delay_ns);
	if (error == 0)
		return place_give(order, entry);
	twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
	return error;
}

/* Replaces an entry that waited and that the caller now holds. */
static int replace_held(const struct order *order, struct twi_keyed_entry *entry)
{
	TWI_TEST_POINT("keyed:replacing");
	if (tw_reschedule(twi_keyed_timer(entry), order->delay_ns) == TW_RESCHEDULE_DONE)
		return place_give(order, entry);
	return replace_late(order, entry);
}

/* Takes hold of the living entry of a key, if it waits. */
static bool entry_hold(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_keyed_look(entry);

	return twi_keyed_state(word) == TWI_KEYED_WAITING &&
	       twi_keyed_swap(entry, &word, twi_keyed_hold(word));
}

/* The results of order_look. */
enum found { FOUND_OTHER, FOUND_PRESENT, FOUND_HELD };

static enum found order_look(const struct order *order, struct twi_keyed_entry **ret_entry)
{
	struct cds_lfht_iter place;
	struct twi_keyed_entry *entry;
	enum found found = FOUND_OTHER;

	twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
	entry = twi_hash_find(order->table, &order->key, &place);
	if (entry != NULL) {
		if (order->replaces && entry_hold(entry))
			found = FOUND_HELD;
		else if (!order->replaces && !twi_keyed_dead(twi_keyed_look(entry)))
			found = FOUND_PRESENT;
	}
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	*ret_entry = entry;
	return found;
}

static int order_do(struct order *order)
{
	struct twi_keyed_entry *entry;
	enum found found = order_look(order, &entry);
	int outcome;

	if (found == FOUND_PRESENT)
		return TW_KEYED_PRESENT;
	if (found == FOUND_HELD) {
		outcome = replace_held(order, entry);
		if (outcome != TW_KEYED_PRESENT)
			return outcome;
	}
	return put_new(order);
}

static int order_take(struct order *order, const void *key, size_t key_bytes)
{
	int outcome = twi_key_check(order->table, key, key_bytes, &order->key);
	_Atomic uint64_t *lives;

	if (outcome == 0)
		outcome = kind_check(order->kind);
	if (outcome == 0 && order->delay_ns == INT64_MIN)
		outcome = -ERANGE;
	if (outcome != 0)
		return outcome;
	lives = &order->table->stripe[order->key.hash % TWI_KEYED_STRIPES].lives;
	/* RELAXED: the lives of one key must only differ; an atomic addition makes them so. */
	order->life = twi_fetch_add_relaxed(lives, 1) + 1;
	return order_do(order);
}

int tw_keyed_schedule(struct tw_keyed *table, const void *key, size_t key_bytes, int64_t delay_ns,
		      const struct tw_keyed_kind *kind, void *arg, uint64_t *ret_life)
{
	struct order order = {.table = table,
			      .delay_ns = delay_ns,
			      .kind = kind,
			      .arg = arg,
			      .ret_life = ret_life};

	return order_take(&order, key, key_bytes);
}

int tw_keyed_replace(struct tw_keyed *table, const void *key, size_t key_bytes, int64_t delay_ns,
		     const struct tw_keyed_kind *kind, void *arg, uint64_t *ret_life)
{
	struct order order = {.table = table,
			      .delay_ns = delay_ns,
			      .kind = kind,
			      .arg = arg,
			      .ret_life = ret_life,
			      .replaces = true};

	return order_take(&order, key, key_bytes);
}
