/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer (reclaim.h).
 *
 * The way of an entry. It is retired: pushed to its table's list (E52). Who finds that list empty
 * pushes the table to the reclaimer's (E54) and wakes it. A turn takes the reclaimer's list whole, and
 * then each table's list whole; from there on a table may be pushed again, for the next turn. So a
 * table is in the list once, and its link is read before its list is taken.
 *
 * The thread's life. A creator counts its table first (E55), then looks whether there is a thread; the
 * thread says first that it is none any more, then looks whether there are tables. At least one of them
 * sees the other; a swap decides which of them goes on. No thread can be had for a creator: then a
 * second creator, who saw the first one's try, has a table without a thread. Whoever creates one next, or
 * has to make more entries because none come back, tries again, and twi_reclaim_wait does the thread's
 * work itself where it has to.
 *
 * A forked child has tables of its parent, whose calls are refused, and no thread: it begins anew.
 *
 * Progress: push is lock-free; wait blocks for a grace period and a rest.
 */
#include "keyed/reclaim.h"

#include "mech/park.h"
#include "mech/signals.h"

#include <errno.h>
#include <pthread.h>

enum { THREAD_NONE = 0, THREAD_RUNS = 1 };

enum {
	REST_NS = 1000000,
	RECLAIMS_WAITER = 1,
	RECLAIMS_ONE = 2,
};

static struct {
	_Atomic(struct tw_keyed *) work; /* [atomic E54] */
	_Atomic uint32_t tables;         /* [atomic E55] */
	_Atomic uint32_t thread;         /* [atomic E55] */
	struct twi_park park;
} reclaimer = {.park = {.event_fd = -1, .wait_fd = -1, .timer_fd = TWI_TIMER_FD_NONE}};

void twi_reclaim_push(struct tw_keyed *table)
{
	/* RELAXED, both: the swap publishes; that this is not the last, the entry's count tells (E53). */
	struct tw_keyed *first = twi_load_relaxed(&reclaimer.work);

	(void)twi_fetch_add_relaxed(&table->reclaims, RECLAIMS_ONE); /* RELAXED */
	do {
		table->work_next = first;
		/* E54, pairs with work_take: the table's link. E8: before the look in wake. */
	} while (!twi_cas_seq_cst(&reclaimer.work, &first, table));
	twi_park_wake(&reclaimer.park);
}

/* All tables that have work, with what they have retired. */
static struct tw_keyed *work_take(void)
{
	/* E54, pairs with push. */
	struct tw_keyed *table = twi_exchange_acquire(&reclaimer.work, NULL);
	struct tw_keyed *taken = NULL;

	while (table != NULL) {
		struct tw_keyed *next = table->work_next;

		/*
		 * E52, pairs with twi_keyed_retire: the entries, and that its link has been read.
		 * From here on it may be pushed again.
		 */
		table->grace = twi_exchange_acq_rel(&table->retired, NULL);
		table->grace_next = taken;
		taken = table;
		table = next;
	}
	return taken;
}

static void table_done(struct tw_keyed *table)
{
	/* E54, pairs with wait: the last touch. */
	uint32_t before = twi_fetch_sub_release(&table->reclaims, RECLAIMS_ONE);

	if (before == RECLAIMS_ONE + RECLAIMS_WAITER)
		twi_futex_wake(&table->reclaims);
}

bool twi_reclaim_turn(void)
{
	struct tw_keyed *table = work_take();

	if (table == NULL)
		return false;
	/* E56: who was inside a section when they were taken has left it. */
	twi_rcu_synchronize();
	while (table != NULL) {
		struct tw_keyed *next = table->grace_next;

		twi_keyed_entries_free(table, table->grace);
		table_done(table);
		table = next;
	}
	return true;
}

/* Awake, so nobody wakes it. */
static void rest(void)
{
	(void)twi_futex_wait(&reclaimer.park.word, TWI_AWAKE, twi_until_ns(REST_NS));
}

static void sleep_until_pushed(void)
{
	twi_park_prepare(&reclaimer.park);
	/* E8, E55: both after prepare, whose partner stored before it looked for a sleeper. */
	if (twi_load_seq_cst(&reclaimer.work) == NULL && twi_load_seq_cst(&reclaimer.tables) != 0)
		twi_park_wait(&reclaimer.park, INT64_MAX);
	twi_park_done(&reclaimer.park);
}

bool twi_reclaim_claim(void)
{
	uint32_t none = THREAD_NONE;

	/* E55, pairs with thread_ends: what the thread before has left. */
	return twi_cas_seq_cst(&reclaimer.thread, &none, THREAD_RUNS);
}

/* There is no table. False: now there is one, and no other thread. */
static bool thread_ends(void)
{
	/* E55: store, then look; pairs with open. */
	twi_store_seq_cst(&reclaimer.thread, THREAD_NONE);
	return twi_load_seq_cst(&reclaimer.tables) == 0 || !twi_reclaim_claim(); /* E55 */
}

static void *thread_body(void *unused)
{
	(void)pthread_setname_np(pthread_self(), "tw-reclaim");
	for (;;) {
		/* RELAXED: both ways look once more. */
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

/* 0: there is one, or there is about to be. */
static int thread_ensure(void)
{
	sigset_t most, before;
	int error;

	if (!twi_reclaim_claim())
		return 0;
	twi_signals_fill(&most);
	(void)pthread_sigmask(SIG_SETMASK, &most, &before);
	error = detached_create();
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* For a thread, the system says EAGAIN where it means: no memory, or too many. */
	return error == EAGAIN ? -ENOMEM : -error;
}

static void thread_missed(void)
{
	/* E55, pairs with twi_reclaim_claim: what was done in its stead. */
	twi_store_release(&reclaimer.thread, THREAD_NONE);
}

int twi_reclaim_open(void)
{
	int error;

	/* E55: count, then look; pairs with thread_ends. */
	(void)twi_fetch_add_seq_cst(&reclaimer.tables, 1);
	error = thread_ensure();
	if (error != 0) {
		thread_missed();
		twi_reclaim_close();
	}
	return error;
}

void twi_reclaim_again(void)
{
	/* RELAXED: missed by now, the next one sees it. */
	if (twi_load_relaxed(&reclaimer.thread) == THREAD_NONE && thread_ensure() != 0)
		thread_missed();
}

void twi_reclaim_close(void)
{
	/* E8, E55: before the look in wake. The count is never below what is counted. */
	if (twi_fetch_add_seq_cst(&reclaimer.tables, UINT32_MAX) == 1)
		twi_park_wake(&reclaimer.park);
}

void twi_reclaim_wait(struct tw_keyed *table)
{
	uint32_t reclaims;

	if (thread_ensure() != 0) {
		while (twi_reclaim_turn())
			;
		thread_missed();
	}
	/* E54, pairs with table_done, by this or by the look: nobody touches the table any more. */
	reclaims = twi_fetch_or_seq_cst(&table->reclaims, RECLAIMS_WAITER) | RECLAIMS_WAITER;
	while (reclaims != RECLAIMS_WAITER) {
		(void)twi_futex_wait(&table->reclaims, reclaims, INT64_MAX);
		reclaims = twi_load_acquire(&table->reclaims); /* E54 */
	}
}

/* Runs in the child, where no other thread is. */
static void child_begins(void)
{
	/* RELAXED, all: alone. */
	twi_store_relaxed(&reclaimer.work, NULL);
	twi_store_relaxed(&reclaimer.tables, 0);           /* RELAXED */
	twi_store_relaxed(&reclaimer.thread, THREAD_NONE); /* RELAXED */
	twi_park_init(&reclaimer.park);
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}
