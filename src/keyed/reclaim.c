/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer (reclaim.h).
 *
 * An entry's path. The thread that retires an entry pushes it to its table's list (E52). If that
 * list was empty, the thread also pushes the table to the reclaimer's list (E54) and wakes the
 * reclaimer. A turn takes the reclaimer's list, and then the list of each table in it. Only when
 * the table's list has been taken can the table be pushed again, for the next turn. So a table is
 * in the reclaimer's list at most once. A turn must read a table's link before it takes the table's
 * list, because a new push changes the link.
 *
 * The claim. Turns need the claim (`reclaimer.thread`), which one thread of the process has at a
 * time:
 *
 *     from     to       by               when
 *     NONE     CLAIMED  creator          it creates a table
 *     NONE     CLAIMED  scheduler        it finds no free entry
 *     NONE     CLAIMED  destroyer        its table is still with the reclaimer
 *     CLAIMED  CLAIMED  any of these     pthread_create succeeded: the new thread has the claim
 *     CLAIMED  NONE     any of these     pthread_create failed: twi_reclaim_give_up
 *     CLAIMED  NONE     reclaimer        there is no table
 *
 * So CLAIMED does not mean that there is a thread: a caller may still be trying to make it.
 * Creators and schedulers rely on that caller and continue. They may be inside a read-side section,
 * so they must neither wait nor run a turn. If that caller fails, their tables have no reclaimer
 * until the next creator, scheduler or destroyer tries again.
 *
 * A destroyer must wait until the reclaimer is done with its table, or until it gets the claim
 * itself. With the claim it creates the thread, or runs one turn itself if that fails. A destroyer
 * without the claim sleeps on `reclaimer.waiting`, for two events: a table is done (table_done),
 * and the claim is given up (twi_reclaim_give_up). Each event is stored before `waiting` is read; a
 * destroyer marks `waiting` before it looks for both events (E80). So if a destroyer misses an
 * event, the event finds the mark and wakes the destroyer. The destroyer then looks again, and at
 * most one of several destroyers gets the claim; the others sleep until that destroyer has run its
 * turn or given up the claim.
 *
 * The end of the thread. A creator counts its table (E55) and then tries to claim. The thread gives
 * the claim up and then looks whether there are tables. At least one of the two sees the other, and
 * the swap of the claim decides which of them continues. This give-up wakes no destroyer. It need
 * not: a destroyer's table is still counted, so the thread sees the table and claims again, unless
 * another caller has the claim by then.
 *
 * A forked child has no reclaimer, and calls on its parent's tables are rejected. So the child
 * starts with empty lists.
 *
 * Progress: push is lock-free. A destroyer may have to wait for a grace period, a rest, and the
 * pthread_create of another caller.
 */
#include "keyed/reclaim.h"

#include "base/test_point.h"
#include "thread/fork.h"
#include "thread/park.h"
#include "thread/signals.h"

#include <errno.h>
#include <pthread.h>

enum { THREAD_NONE = 0, THREAD_CLAIMED = 1 };

enum {
	REST_NS = 1000000,
	/*
	 * Set in `waiting` before a destroyer sleeps on that value. waiters_wake adds one if it
	 * finds this bit set, which clears the bit. If a destroyer sets the bit again, that makes a
	 * new value, so a destroyer that is about to sleep on the old value does not sleep.
	 */
	WAITING_MARK = 1,
};

static struct {
	_Atomic(struct tw_keyed *) work; /* [atomic E54] */
	_Atomic uint32_t tables;         /* [atomic E55] */
	_Atomic uint32_t thread;         /* [atomic E55] */
	_Atomic uint32_t waiting;        /* [atomic E80] */
	struct twi_park park;
} reclaimer = {.park = {.event_fd = -1, .wait_fd = -1, .timer_fd = TWI_TIMER_FD_NONE}};

void twi_reclaim_push(struct tw_keyed *table)
{
	/*
	 * RELAXED, the load and the addition: the swap publishes them. A destroyer cannot miss the
	 * count, because it must first see that no entry is in use (E53).
	 */
	struct tw_keyed *first = twi_load_relaxed(&reclaimer.work);

	(void)twi_fetch_add_relaxed(&table->reclaims, 1); /* RELAXED: as above */
	do {
		table->work_next = first;
		/*
		 * E54: pairs with work_take; publishes the table's link. E8: must come before the
		 * look in twi_park_wake.
		 */
	} while (!twi_cas_seq_cst(&reclaimer.work, &first, table));
	twi_park_wake(&reclaimer.park);
}

/* Takes all tables that have work, with the entries that they have retired. */
static struct tw_keyed *work_take(void)
{
	/* E54: pairs with twi_reclaim_push. */
	struct tw_keyed *table = twi_exchange_acquire(&reclaimer.work, NULL);
	struct tw_keyed *taken = NULL;

	while (table != NULL) {
		struct tw_keyed *next = table->work_next;

		/*
		 * E52: pairs with twi_keyed_retire. Acquires the entries. Releases the read of the
		 * table's link, because from here on the table may be pushed again.
		 */
		table->grace = twi_exchange_acq_rel(&table->retired, NULL);
		table->grace_next = taken;
		taken = table;
		table = next;
	}
	return taken;
}

/* Wakes the destroyers after a table is done, or after the claim is given up. */
static void waiters_wake(void)
{
	/*
	 * E80: pairs with waiting_mark. The caller must have stored its event (that a table is
	 * done, or that the claim is free) before this load. Otherwise each side could miss the
	 * other.
	 */
	uint32_t waiting = twi_load_seq_cst(&reclaimer.waiting);

	/*
	 * RELAXED: this swap only decides which of two events wakes the destroyers. If this swap
	 * fails, the other event wakes all of them.
	 */
	if ((waiting & WAITING_MARK) != 0 &&
	    twi_cas_relaxed(&reclaimer.waiting, &waiting, waiting + 1))
		twi_futex_wake(&reclaimer.waiting);
}

static void table_done(struct tw_keyed *table)
{
	/*
	 * E54: pairs with table_is_back; this is the last access to the table. E80: must come
	 * before the load in waiters_wake.
	 */
	(void)twi_fetch_add_seq_cst(&table->reclaims, UINT32_MAX);
	waiters_wake();
}

bool twi_reclaim_turn(void)
{
	struct tw_keyed *table = work_take();

	if (table == NULL)
		return false;
	/* E56: each thread that was inside a section when the lists were taken has left it. */
	twi_rcu_synchronize();
	while (table != NULL) {
		struct tw_keyed *next = table->grace_next;

		twi_keyed_entries_free(table, table->grace);
		table_done(table);
		table = next;
	}
	return true;
}

/* Rests for a while. The park's state is awake meanwhile, so a push does not wake the thread. */
static void rest(void)
{
	(void)twi_futex_wait(&reclaimer.park.word, TWI_AWAKE, twi_until_ns(REST_NS));
}

static void sleep_until_pushed(void)
{
	twi_park_prepare(&reclaimer.park);
	/*
	 * E8, E55: both loads must come after twi_park_prepare. twi_reclaim_push and
	 * twi_reclaim_close store before they look for a sleeper.
	 */
	if (twi_load_seq_cst(&reclaimer.work) == NULL && twi_load_seq_cst(&reclaimer.tables) != 0)
		twi_park_wait(&reclaimer.park, INT64_MAX);
	twi_park_done(&reclaimer.park);
}

bool twi_reclaim_claim(void)
{
	uint32_t none = THREAD_NONE;

	/*
	 * E55: pairs with thread_ends and twi_reclaim_give_up; acquires the work of the thread that
	 * had the claim before. E80: a destroyer must call this after waiting_mark.
	 */
	return twi_cas_seq_cst(&reclaimer.thread, &none, THREAD_CLAIMED);
}

void twi_reclaim_give_up(void)
{
	/*
	 * E55: pairs with twi_reclaim_claim; publishes the caller's work. E80: must come before
	 * waiters_wake looks.
	 */
	twi_store_seq_cst(&reclaimer.thread, THREAD_NONE);
	waiters_wake();
}

/*
 * Gives the claim up because there is no table. Returns false if a table was created meanwhile and
 * this thread must continue.
 */
static bool thread_ends(void)
{
	/*
	 * E55: pairs with twi_reclaim_open. This thread must store before it loads. Otherwise the
	 * thread and a creator could miss each other.
	 */
	twi_store_seq_cst(&reclaimer.thread, THREAD_NONE);
	return twi_load_seq_cst(&reclaimer.tables) == 0 || !twi_reclaim_claim(); /* E55: as above */
}

static void *thread_body(void *unused)
{
	(void)pthread_setname_np(pthread_self(), "tw-reclaim");
	for (;;) {
		/*
		 * RELAXED: a stale value does no harm, because sleep_until_pushed and thread_ends
		 * load it again.
		 */
		bool wanted = twi_load_relaxed(&reclaimer.tables) != 0;

		if (twi_reclaim_turn())
			rest();
		else if (wanted)
			sleep_until_pushed();
		else if (thread_ends())
			return unused;
	}
}

static int detached_create(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error = pthread_attr_init(&attributes);

	if (error != 0)
		return error;
	error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (error == 0)
		error = pthread_create(&thread, &attributes, thread_body, NULL);
	(void)pthread_attr_destroy(&attributes);
	return error;
}

/*
 * Creates the reclaimer thread. The caller must have the claim. Returns 0 if the thread was
 * created; it then has the claim.
 */
static int thread_make(void)
{
	sigset_t most, before;
	int error;

	twi_signals_fill(&most);
	(void)pthread_sigmask(SIG_SETMASK, &most, &before);
	error = detached_create();
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	/*
	 * From pthread_create, EAGAIN means that there is no memory, or that there are too many
	 * threads.
	 */
	return error == EAGAIN ? -ENOMEM : -error;
}

/* Returns 0 if there is a thread, or if another caller is trying to make it. */
static int thread_ensure(void)
{
	int error = 0;

	if (twi_reclaim_claim())
		error = thread_make();
	if (error != 0)
		twi_reclaim_give_up();
	return error;
}

int twi_reclaim_open(void)
{
	int error;

	/* E55: pairs with thread_ends. The count must come before the look at the claim. */
	(void)twi_fetch_add_seq_cst(&reclaimer.tables, 1);
	error = thread_ensure();
	if (error != 0)
		twi_reclaim_close();
	return error;
}

void twi_reclaim_again(void)
{
	/* RELAXED: if the claim was given up just now, the next call sees it. */
	if (twi_load_relaxed(&reclaimer.thread) == THREAD_NONE)
		(void)thread_ensure();
}

void twi_reclaim_close(void)
{
	/*
	 * E8, E55: must come before the look in twi_park_wake. A table leaves the count only when
	 * it has no retired entries, so the reclaimer never ends too early.
	 */
	if (twi_fetch_add_seq_cst(&reclaimer.tables, UINT32_MAX) == 1)
		twi_park_wake(&reclaimer.park);
}

/* Returns whether no thread will touch the table any more. */
static bool table_is_back(struct tw_keyed *table)
{
	/* E54: pairs with table_done. E80: the look before a sleep must come after waiting_mark. */
	return twi_load_seq_cst(&table->reclaims) == 0;
}

/* Sets WAITING_MARK. Returns the new value of `waiting`, so that the caller can sleep on it. */
static uint32_t waiting_mark(void)
{
	/*
	 * E80: pairs with waiters_wake. Must come before the caller's table_is_back and
	 * twi_reclaim_claim.
	 */
	return twi_fetch_or_seq_cst(&reclaimer.waiting, WAITING_MARK) | WAITING_MARK;
}

/*
 * Creates the reclaimer, or runs one turn if that fails. The caller must have the claim, and the
 * reclaimer must not have finished with the caller's table.
 */
static void work_begin(void)
{
	if (thread_make() == 0)
		return;
	(void)twi_reclaim_turn();
	twi_reclaim_give_up();
}

static void sleep_until_event(uint32_t waiting)
{
	TWI_TEST_POINT("reclaim:waiting");
	(void)twi_futex_wait(&reclaimer.waiting, waiting, INT64_MAX);
}

void twi_reclaim_wait(struct tw_keyed *table)
{
	while (!table_is_back(table)) {
		uint32_t waiting = waiting_mark();

		if (table_is_back(table))
			return;
		if (twi_reclaim_claim())
			work_begin();
		else
			sleep_until_event(waiting);
	}
}

/* Empties the reclaimer's data in a forked child, where there is no other thread. */
static void child_begins(void)
{
	if (!twi_fork_watched())
		return;
	/* RELAXED: there is no other thread. */
	twi_store_relaxed(&reclaimer.work, NULL);
	twi_store_relaxed(&reclaimer.tables, 0);           /* RELAXED: as above */
	twi_store_relaxed(&reclaimer.thread, THREAD_NONE); /* RELAXED: as above */
	twi_store_relaxed(&reclaimer.waiting, 0);          /* RELAXED: as above */
	twi_park_init(&reclaimer.park);
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}
