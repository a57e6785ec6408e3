/* SPDX-License-Identifier: MIT */
/*
 * tw_keyed_schedule and tw_keyed_replace.
 *
 * A key that has no living entry gets a new one: made ready with its timer, and held; put into the
 * table, in the place of a dead one if there is one; let go. All that can fail comes before the table.
 *
 * A replace of an entry that waits is made in place: it takes hold of the entry, moves the timer, puts
 * the new kind and argument in, and lets go. That touches neither the table nor memory. Where somebody
 * else holds the entry, or its timer is on its way already, a new entry takes its place in the table,
 * and the old one is told.
 *
 * An expiry that finds the entry held is the holder's business: who replaces in place sets the timer
 * anew, and for want of memory ends the old entry (it was due, and cannot wait any more).
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
	uint64_t *ret_life; /* or NULL */
	bool replaces;
	/* An old entry that is to be ended as replaced, outside the section, and its word. */
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

/* What an entry is of. */
struct part {
	const struct tw_keyed_kind *kind;
	void *arg;
	uint64_t life;
	uint64_t runs;
};

/* Who reads them beside the holder looks at the word again afterwards. */
static void entry_fill(struct twi_keyed_entry *entry, const struct part *part)
{
	/* E51, all, pair with info_read and life_meant: the hold that they are written in. */
	twi_store_release(&entry->kind, part->kind);
	twi_store_release(&entry->arg, part->arg);   /* E51 */
	twi_store_release(&entry->life, part->life); /* E51 */
	entry->runs = part->runs;
}

static struct part part_new(const struct order *order)
{
	return (struct part){.kind = order->kind, .arg = order->arg, .life = order->life};
}

/* Held, filled, its timer set; not in the table. */
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

/* It never was in the table, and nobody is told. */
static void entry_unmake(struct twi_keyed_entry *entry)
{
	static const struct tw_keyed_kind silent = {.size = sizeof silent};

	/* RELAXED: for the end, which is ours. */
	twi_store_relaxed(&entry->kind, &silent);
	twi_keyed_out(entry);
	twi_keyed_end_held(entry, TW_KEYED_END_CANCELLED);
}

/* What becomes of an entry in whose place another is now. */
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

/* Into the table, inside a section. TW_KEYED_PRESENT: it was not to replace, and is nowhere. */
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
			/* RELAXED: a count; the old one's key is the new one's. */
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
 * Tells the caller the entry's life, by who still holds the entry: when it is let go, its callback may
 * run, and free what holds the number. Returns what stood there, for life_untell.
 */
static uint64_t life_tell(const struct order *order)
{
	uint64_t before = 0;

	if (order->ret_life != NULL) {
		before = *order->ret_life;
		*order->ret_life = order->life;
	}
	return before;
}

/* The entry could not be let go, and a failure leaves the caller's number as it was. */
static void life_untell(const struct order *order, uint64_t before)
{
	if (order->ret_life != NULL)
		*order->ret_life = before;
}

/* A new entry for the key. */
static int put_new(struct order *order)
{
	struct twi_keyed_entry *entry;
	int outcome = entry_make(order, &entry);

	if (outcome != 0)
		return outcome;
	/* RELAXED: a count. */
	(void)twi_fetch_add_relaxed(&order->table->stripe[entry->stripe].count, TWI_COUNT_KEY);
	twi_rcu_enter(); /* E56 */
	outcome = entry_put(order, entry);
	twi_rcu_leave(); /* E56 */
	/* A hook may end this thread. */
	pthread_cleanup_push(ousted_end, order);
	if (outcome != TW_KEYED_PRESENT) {
		(void)life_tell(order);
		twi_keyed_let_go(entry);
	} else {
		/* RELAXED: a count. */
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
		/* RELAXED, all: they came with the hold. */
		.kind = twi_load_relaxed(&entry->kind),
		.arg = twi_load_relaxed(&entry->arg),   /* RELAXED */
		.life = twi_load_relaxed(&entry->life), /* RELAXED */
		.runs = entry->runs,
	};
}

/* The entry is another's: the old one is told. By the caller's key, since nothing holds the entry's. */
static int part_tell(const struct order *order, const struct part *old)
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
 * Held, the timer set. Who tells it to stop meanwhile means the old one, which ends so; the new one
 * goes another way (PRESENT).
 */
static int place_give(const struct order *order, struct twi_keyed_entry *entry)
{
	const struct part old = part_old(entry), new = part_new(order);
	int error = 0;
	uint64_t word;

	while (error == 0) {
		uint64_t before = life_tell(order);

		entry_fill(entry, &new);
		TWI_TEST_POINT("keyed:filled");
		if (twi_keyed_wait(entry, &word))
			return part_tell(order, &old);
		entry_fill(entry, &old);
		life_untell(order, before);
		if ((word & TWI_KEYED_STOP) != 0) {
			twi_keyed_end_stopped(entry, word);
			return TW_KEYED_PRESENT;
		}
		/* Its time has come already. */
		error = twi_keyed_renew_timer(entry, 0);
	}
	twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
	return error;
}

/* Held, with a timer that is on its way, or has come. PRESENT: let go, or ended; another way. */
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

/* Of an entry that waits, held here. */
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

/* What the look at the key has found, and what is to be done about it. */
enum found { FOUND_OTHER, FOUND_PRESENT, FOUND_HELD };

static enum found order_look(const struct order *order, struct twi_keyed_entry **ret_entry)
{
	struct cds_lfht_iter place;
	struct twi_keyed_entry *entry;
	enum found found = FOUND_OTHER;

	twi_rcu_enter(); /* E56 */
	entry = twi_hash_find(order->table, &order->key, &place);
	if (entry != NULL) {
		if (order->replaces && entry_hold(entry))
			found = FOUND_HELD;
		else if (!order->replaces && !twi_keyed_dead(twi_keyed_look(entry)))
			found = FOUND_PRESENT;
	}
	twi_rcu_leave(); /* E56 */
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
	/* RELAXED: numbers only have to differ. */
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
