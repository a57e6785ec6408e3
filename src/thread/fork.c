/* SPDX-License-Identifier: MIT */
#include "thread/fork.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "thread/futex.h"

uint32_t twi_fork_epoch;
_Atomic uint32_t twi_fork_taken; /* [atomic E161] */

/* How soon a waiting thread looks again, if it was not woken. */
enum { LOOK_AGAIN_NS = 1000 * 1000 };

static _Atomic bool watching; /* [atomic] */
static bool inside;           /* [const] between forks */
/* [atomic E161] 1 while a thread of a child takes over the library, otherwise 0 */
static _Atomic uint32_t taking;

void twi_fork_watch(void)
{
	/*
	 * RELAXED: the flag is set once and never cleared. A fork by another thread reads it in the
	 * child, and libc's lock around fork orders the two.
	 */
	twi_store_relaxed(&watching, true);
}

bool twi_forked(void)
{
	/* E161: a thread that may use the library sees what the take-over has made anew. */
	return twi_load_acquire(&twi_fork_taken) != twi_fork_epoch;
}

void twi_fork_take(void)
{
	twi_store_release(&twi_fork_taken, twi_fork_epoch); /* E161: pairs with twi_forked(). */
}

void twi_fork_take_begin(void)
{
	/* E161: acquires what the thread that last held `taking` has made anew. */
	while (twi_exchange_acquire(&taking, 1) != 0)
		(void)twi_futex_wait(&taking, 1, twi_until_ns(LOOK_AGAIN_NS));
}

void twi_fork_take_end(void)
{
	twi_store_release(&taking, 0); /* E161: pairs with twi_fork_take_begin(). */
	twi_futex_wake(&taking);
}

bool twi_fork_watched(void)
{
	/* RELAXED: as in twi_fork_watch. */
	return twi_load_relaxed(&watching);
}

bool twi_fork_inside(void)
{
	return inside;
}

void twi_fork_count(bool from_callback)
{
	inside = from_callback;
	twi_fork_epoch++;
	/* A thread that was taking over does not exist here. RELAXED: no other thread exists. */
	twi_store_relaxed(&taking, 0);
}

/*
 * If the program has ThreadSanitizer, lets all calls check their handles. Must run before any
 * engine is made, because an engine stores the epoch.
 */
static TWI_CONSTRUCTOR_FIRST void tsan_look(void)
{
	if (!twi_tsan_there())
		return;
	twi_fork_epoch = TWI_FORK_LOOK;
	twi_fork_take();
}
