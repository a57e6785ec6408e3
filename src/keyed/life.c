/* SPDX-License-Identifier: MIT */
/*
 * The life of an entry that is in its table (protocol: word.h): what its timer does when it comes, what
 * comes of a run, and the end, whose hook runs once because one thread owns it.
 *
 * Progress: lock-free: each loop is repeated by another thread's step on the same entry, or because a
 * timer came in the midst of the call that had just set it.
 */
#include "base/test_point.h"
#include "keyed/entry.h"
#include "keyed/hash.h"
#include "mech/fork.h"

#include <errno.h>
#include <pthread.h>

int twi_keyed_set_timer(struct twi_keyed_entry *entry, int64_t delay_ns)
{
	struct tw_handle timer;
	int error =
		tw_schedule(entry->table->engine, delay_ns, &twi_keyed_timer_kind, entry, &timer);

	if (error != 0)
		return error;
	/* E51, both, pair with twi_keyed_timer: the hold that they are written in. */
	twi_store_release(&entry->timer_node, timer.node);
	twi_store_release(&entry->timer_birth, timer.birth); /* E51 */
	return 0;
}

struct tw_keyed_self twi_keyed_self(struct twi_keyed_entry *entry)
{
	return (struct tw_keyed_self){
		.table = entry->table,
		.key = twi_keyed_key(entry),
		.key_bytes = entry->key_bytes,
		/* RELAXED: it came with the entry. */
		.life = twi_load_relaxed(&entry->life),
		.runs = entry->runs,
	};
}

/* Nobody changes the word any more who has not set all that can be set. */
static void retire_if_last(struct twi_keyed_entry *entry, uint64_t word)
{
	if (twi_keyed_state(word) == TWI_KEYED_OWNED && (word & TWI_KEYED_ALL) == TWI_KEYED_ALL)
		twi_keyed_retire(entry);
}

/* Sets flags of an entry that its table, its timer or its owner still has. */
static void flags_set(struct twi_keyed_entry *entry, uint64_t flags)
{
	uint64_t word = twi_keyed_look(entry);

	while (!twi_keyed_swap(entry, &word, word | flags))
		;
	retire_if_last(entry, word | flags);
}

void twi_keyed_out(struct twi_keyed_entry *entry)
{
	flags_set(entry, TWI_KEYED_OUT);
}

/* How an owner leaves it. */
struct leave {
	struct twi_keyed_entry *entry;
	uint64_t flags; /* known to be set, or to be set with the end */
};

static void entry_leave(void *argument)
{
	struct leave *leave = argument;
	uint64_t flags = leave->flags | TWI_KEYED_ENDED;

	TWI_TEST_POINT("keyed:leaving");
	/* Neither table nor timer has it: there is nobody to tell. */
	if ((flags & TWI_KEYED_ALL) == TWI_KEYED_ALL)
		twi_keyed_retire(leave->entry);
	else
		flags_set(leave->entry, flags);
}

/* Out of the table, if nobody else has done that or is about to. Returns OUT or nothing. */
static uint64_t table_leave(struct twi_keyed_entry *entry, uint64_t word)
{
	struct tw_keyed *table = entry->table;
	bool out;

	if ((word & TWI_KEYED_OUT) != 0)
		return TWI_KEYED_OUT;
	twi_rcu_enter(); /* E56 */
	out = twi_hash_remove(table, entry);
	twi_rcu_leave(); /* E56 */
	if (!out)
		return 0;
	/* RELAXED: a count. */
	(void)twi_fetch_sub_relaxed(&table->stripe[entry->stripe].count, TWI_COUNT_KEY);
	return TWI_KEYED_OUT;
}

/* No timer is to come, or it will say so itself. Returns GONE or nothing. */
static uint64_t timer_leave(struct twi_keyed_entry *entry, uint64_t word)
{
	if ((word & TWI_KEYED_GONE) != 0 || tw_cancel(twi_keyed_timer(entry)) == TW_CANCEL_DONE)
		return TWI_KEYED_GONE;
	return 0;
}

void twi_keyed_end(struct twi_keyed_entry *entry, uint64_t word, enum tw_keyed_end end)
{
	struct tw_keyed_self self = twi_keyed_self(entry);
	/* RELAXED, both: they came with the entry. */
	const struct tw_keyed_kind *kind = twi_load_relaxed(&entry->kind);
	void *arg = twi_load_relaxed(&entry->arg); /* RELAXED */
	struct leave leave = {.entry = entry};

	TWI_TEST_POINT("keyed:ending");
	leave.flags = table_leave(entry, word);
	leave.flags |= timer_leave(entry, word);
	pthread_cleanup_push(entry_leave, &leave);
	if (kind->ended != NULL)
		kind->ended(&self, arg, end);
	pthread_cleanup_pop(1);
}

/* HELD to OWNED, by who holds it. Returns the word. */
static uint64_t entry_own(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_keyed_look(entry);

	while (!twi_keyed_swap(entry, &word, twi_keyed_to(word, TWI_KEYED_OWNED)))
		;
	return twi_keyed_to(word, TWI_KEYED_OWNED);
}

void twi_keyed_end_held(struct twi_keyed_entry *entry, enum tw_keyed_end end)
{
	uint64_t word = entry_own(entry);

	twi_keyed_end(entry, word, end);
}

/* By who holds it and has seen `stop`. */
void twi_keyed_end_stopped(struct twi_keyed_entry *entry, uint64_t word)
{
	bool replaced = (word & TWI_KEYED_REPLACED) != 0;

	twi_keyed_end_held(entry, replaced ? TW_KEYED_END_REPLACED : TW_KEYED_END_CANCELLED);
}

bool twi_keyed_wait(struct twi_keyed_entry *entry, uint64_t *ret_word)
{
	uint64_t word = twi_keyed_look(entry);

	while ((word & (TWI_KEYED_STOP | TWI_KEYED_GONE)) == 0)
		if (twi_keyed_swap(entry, &word, twi_keyed_to(word, TWI_KEYED_WAITING)))
			return true;
	*ret_word = word;
	return false;
}

/* The flag is cleared before: the new timer may come at once, and then sets it. */
int twi_keyed_renew_timer(struct twi_keyed_entry *entry, int64_t delay_ns)
{
	uint64_t word = twi_keyed_look(entry);
	int error;

	while (!twi_keyed_swap(entry, &word, word & ~TWI_KEYED_GONE))
		;
	error = twi_keyed_set_timer(entry, delay_ns);
	TWI_TEST_POINT("keyed:renewed");
	if (error != 0)
		flags_set(entry, TWI_KEYED_GONE);
	return error;
}

enum tw_keyed_end twi_keyed_end_without_timer(int error)
{
	return error == -ENOMEM || error == -EAGAIN ? TW_KEYED_END_DROPPED : TW_KEYED_END_STOPPED;
}

void twi_keyed_let_go(struct twi_keyed_entry *entry)
{
	uint64_t word;
	int error = 0;

	TWI_TEST_POINT("keyed:letting_go");
	while (error == 0 && !twi_keyed_wait(entry, &word)) {
		if ((word & TWI_KEYED_STOP) != 0) {
			twi_keyed_end_stopped(entry, word);
			return;
		}
		/* Its time has come already. */
		error = twi_keyed_renew_timer(entry, 0);
	}
	if (error != 0)
		twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
}

/* Its callback has run, and wants to run again after so long, or not. */
static void run_over(struct twi_keyed_entry *entry, int64_t again_ns)
{
	uint64_t word = twi_keyed_look(entry);
	int error;

	if (again_ns <= 0) {
		twi_keyed_end_held(entry, TW_KEYED_END_FIRED);
	} else if ((word & TWI_KEYED_STOP) != 0) {
		twi_keyed_end_stopped(entry, word);
	} else {
		error = twi_keyed_renew_timer(entry, again_ns);
		if (error != 0)
			twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
		else
			twi_keyed_let_go(entry);
	}
}

static void run_aborted(void *entry)
{
	run_over(entry, TW_KEYED_END);
}

/* HELD by the timer that came. */
static void entry_run(struct twi_keyed_entry *entry)
{
	/* RELAXED, both: they came with the entry. */
	const struct tw_keyed_kind *kind = twi_load_relaxed(&entry->kind);
	void *arg = twi_load_relaxed(&entry->arg); /* RELAXED */
	struct tw_keyed_self self;
	int64_t again_ns;

	entry->runs++;
	self = twi_keyed_self(entry);
	pthread_cleanup_push(run_aborted, entry);
	again_ns = kind->callback(&self, arg);
	pthread_cleanup_pop(0);
	run_over(entry, again_ns);
}

/* LIN of a run: nobody has ended or replaced it before. */
static void timer_expired(struct twi_keyed_entry *entry)
{
	uint64_t word = twi_keyed_look(entry);
	uint64_t next;

	do {
		next = twi_keyed_state(word) == TWI_KEYED_WAITING ? twi_keyed_hold(word) : word;
		next |= TWI_KEYED_GONE;
	} while (!twi_keyed_swap(entry, &word, next));
	if (twi_keyed_state(word) == TWI_KEYED_WAITING)
		entry_run(entry);
	else
		retire_if_last(entry, next);
}

/* Its timer has ended without a run: handed back by stop, or refused by an executor and dropped. */
static void timer_lost(struct twi_keyed_entry *entry, enum tw_keyed_end end)
{
	uint64_t word = twi_keyed_look(entry);
	uint64_t next;

	do {
		bool waits = twi_keyed_state(word) == TWI_KEYED_WAITING;

		next = (waits ? twi_keyed_to(word, TWI_KEYED_OWNED) : word) | TWI_KEYED_GONE;
	} while (!twi_keyed_swap(entry, &word, next));
	if (twi_keyed_state(word) == TWI_KEYED_WAITING)
		twi_keyed_end(entry, next, end);
	else
		retire_if_last(entry, next);
}

/*
 * What this thread's last callback of a timer was for, from its end to that of the finaliser, which
 * follows at once. Where there was no callback, since a late hook stood in its place, the finaliser
 * finds nothing here, and does its work. An entry that has been seen to is not looked at again: it may
 * be another by now.
 */
_Thread_local void *twi_keyed_seen;

static void timer_done(void *entry)
{
	twi_keyed_seen = entry;
}

/* Kept by a forked child, whose table this is not. */
static bool entry_of_parent(const struct twi_keyed_entry *entry)
{
	return entry->table->fork_epoch != twi_fork_epoch;
}

static void on_timer(struct tw_handle self, void *entry)
{
	(void)self;
	pthread_cleanup_push(timer_done, entry);
	if (!entry_of_parent(entry))
		timer_expired(entry);
	pthread_cleanup_pop(1);
}

static void on_timer_end(void *entry, enum tw_end end)
{
	bool done = twi_keyed_seen == entry;

	if (end == TW_END_CANCELLED)
		return;
	twi_keyed_seen = NULL;
	/* Seen to, it may be another's by now, or gone. */
	if (done || entry_of_parent(entry))
		return;
	if (end == TW_END_HANDED_BACK)
		timer_lost(entry, TW_KEYED_END_STOPPED);
	else if (end == TW_END_DROPPED)
		timer_lost(entry, TW_KEYED_END_DROPPED);
	else
		timer_expired(entry);
}

const struct tw_kind twi_keyed_timer_kind = TW_KIND(on_timer, on_timer_end);

int tw_keyed_owns(const struct tw_kind *kind)
{
	return kind == &twi_keyed_timer_kind;
}
