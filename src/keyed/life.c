/* SPDX-License-Identifier: MIT */
/*
 * The life of an entry in its table (protocol: word.h): the steps when its timer expires or is
 * handed back, after a run, and at its end. The hook of the end runs once, because one thread owns
 * the end.
 *
 * Progress: lock-free. A loop repeats only if another thread makes a step on the same entry, or if
 * a timer expires during the call that has just set it.
 */
#include "base/test_point.h"
#include "keyed/entry.h"
#include "keyed/hash.h"
#include "thread/fork.h"

#include <errno.h>
#include <pthread.h>

int twi_keyed_set_timer(struct twi_keyed_entry *entry, int64_t delay_ns)
{
	struct tw_handle timer;
	int error;

	/*
	 * A new timer must not fire at once. Otherwise each new timer could fire before the caller
	 * releases its hold, and the caller would make one timer after another.
	 */
	if (delay_ns <= 0 && delay_ns != INT64_MIN)
		delay_ns = 1;
	error = tw_schedule(entry->table->engine, delay_ns, &twi_keyed_timer_kind, entry, &timer);
	if (error != 0)
		return error;
	/*
	 * E51, both stores: they pair with twi_keyed_timer, and publish the hold in which they are
	 * written.
	 */
	twi_store_release(&entry->timer_node, timer.node);
	twi_store_release(&entry->timer_generation, timer.generation); /* E51: as above */
	return 0;
}

struct tw_keyed_self twi_keyed_self(struct twi_keyed_entry *entry)
{
	return (struct tw_keyed_self){
		.table = entry->table,
		.key = twi_keyed_key(entry),
		.key_bytes = entry->key_bytes,
		/* RELAXED: the holder has acquired the field with the entry. */
		.life = twi_load_relaxed(&entry->life),
		.runs = entry->runs,
	};
}

/*
 * Retires the entry if the flags out, gone and ended are set, because then no other thread changes
 * the state word any more.
 */
static void retire_if_last(struct twi_keyed_entry *entry, uint64_t word)
{
	if (twi_keyed_state(word) == TWI_KEYED_OWNED && (word & TWI_KEYED_ALL) == TWI_KEYED_ALL)
		twi_keyed_retire(entry);
}

/*
 * Sets flags of an entry, and retires it if out, gone and ended are set then. The table, the timer
 * or the owner must still have the entry, because otherwise the entry may be freed.
 */
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

/* How an owner releases its entry. */
struct leave {
	struct twi_keyed_entry *entry;
	uint64_t flags; /* flags that are already set, or that the end sets */
};

static void entry_leave(void *argument)
{
	struct leave *leave = argument;
	uint64_t flags = leave->flags | TWI_KEYED_ENDED;

	TWI_TEST_POINT("keyed:leaving");
	/*
	 * If all flags are set, neither the table nor the timer has the entry. No other thread reads
	 * the flags then, so they need not be stored.
	 */
	if ((flags & TWI_KEYED_ALL) == TWI_KEYED_ALL)
		twi_keyed_retire(leave->entry);
	else
		flags_set(leave->entry, flags);
}

/*
 * Takes the entry out of the table, unless another thread has done so or is about to. Returns OUT
 * or 0.
 */
static uint64_t table_leave(struct twi_keyed_entry *entry, uint64_t word)
{
	struct tw_keyed *table = entry->table;
	bool out;

	if ((word & TWI_KEYED_OUT) != 0)
		return TWI_KEYED_OUT;
	twi_rcu_enter(); /* E56: until we leave, no entry is freed. */
	out = twi_hash_remove(table, entry);
	twi_rcu_leave(); /* E56: from here on, entries may be freed. */
	if (!out)
		return 0;
	/* RELAXED: it is only a count. */
	(void)twi_fetch_sub_relaxed(&table->stripe[entry->stripe].count, TWI_COUNT_KEY);
	return TWI_KEYED_OUT;
}

/*
 * Cancels the timer. Returns GONE, or 0 if the timer's callback will still run. In that case the
 * callback sets the flag itself.
 */
static uint64_t timer_leave(struct twi_keyed_entry *entry, uint64_t word)
{
	if ((word & TWI_KEYED_GONE) != 0 || tw_cancel(twi_keyed_timer(entry)) == TW_CANCEL_DONE)
		return TWI_KEYED_GONE;
	return 0;
}

void twi_keyed_end(struct twi_keyed_entry *entry, uint64_t word, enum tw_keyed_end end)
{
	struct tw_keyed_self self = twi_keyed_self(entry);
	/* RELAXED, kind and argument: they were acquired with the entry. */
	const struct tw_keyed_kind *kind = twi_load_relaxed(&entry->kind);
	void *arg = twi_load_relaxed(&entry->arg); /* RELAXED: as above */
	struct leave leave = {.entry = entry};

	TWI_TEST_POINT("keyed:ending");
	leave.flags = table_leave(entry, word);
	leave.flags |= timer_leave(entry, word);
	pthread_cleanup_push(entry_leave, &leave);
	if (kind->ended != NULL)
		kind->ended(&self, arg, end);
	pthread_cleanup_pop(1);
}

/* Steps from HELD to OWNED, for the holder. Returns the new state word. */
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

/* Ends an entry, for a holder that has seen `stop`. */
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

/*
 * Clears GONE before the timer is set, because the new timer may expire at once and set the flag
 * again.
 */
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
		/*
		 * The timer has already expired or was handed back, so the entry needs another one.
		 */
		error = twi_keyed_renew_timer(entry, 0);
	}
	if (error != 0)
		twi_keyed_end_held(entry, twi_keyed_end_without_timer(error));
}

/*
 * Acts on the callback's result: the entry runs again after `again_ns`, or ends if that is 0 or
 * less.
 */
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

/* Runs an entry, in the callback of its timer. This thread holds the entry. */
static void entry_run(struct twi_keyed_entry *entry)
{
	/* RELAXED, kind and argument: they were acquired with the entry. */
	const struct tw_keyed_kind *kind = twi_load_relaxed(&entry->kind);
	void *arg = twi_load_relaxed(&entry->arg); /* RELAXED: as above */
	struct tw_keyed_self self;
	int64_t again_ns;

	entry->runs++;
	self = twi_keyed_self(entry);
	pthread_cleanup_push(run_aborted, entry);
	again_ns = kind->callback(&self, arg);
	pthread_cleanup_pop(0);
	run_over(entry, again_ns);
}

/*
 * Acts on a timer that has expired. If the entry still waits, the swap takes it for its run, and is
 * the linearization point of the run. If another thread has ended or replaced the entry before, the
 * entry does not run.
 */
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

/*
 * Acts on a timer that has ended without a run: stop has handed it back, or an executor rejected it
 * and it was dropped. Ends the entry if it waits.
 */
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
 * The entry of this thread's last timer callback. It is set from the end of the callback to the end
 * of the finaliser, which follows at once. If a late hook ran instead of the callback, the
 * finaliser finds another value here, and does the callback's work. If the finaliser finds its
 * entry here, it must not look at the entry, because the entry may serve another key by now.
 */
_Thread_local void *twi_keyed_seen;

static void timer_done(void *entry)
{
	twi_keyed_seen = entry;
}

/*
 * Returns whether the entry's table belongs to the parent process. That is possible in a forked
 * child that has taken over the engine with its timers.
 */
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
	/*
	 * If the callback has already done the work, the entry may serve another key by now, or may
	 * be freed.
	 */
	if (done || entry_of_parent(entry))
		return;
	if (end == TW_END_UNEXPIRED)
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
