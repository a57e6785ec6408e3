/* SPDX-License-Identifier: MIT */
#include "thread/fork.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "thread/rcu.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

uint32_t twi_fork_epoch;
_Atomic uint32_t twi_fork_taken; /* [atomic] */

static _Atomic bool watching;        /* [atomic] */
static _Atomic bool handlers_wanted; /* [atomic] */
static bool inside;                  /* [const] between forks */
static bool handled;                 /* [const] between forks */

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
	/* RELAXED: the value changes only while no other thread uses the library. */
	return twi_load_relaxed(&twi_fork_taken) != twi_fork_epoch;
}

void twi_fork_take(void)
{
	/* RELAXED: as above. */
	twi_store_relaxed(&twi_fork_taken, twi_fork_epoch);
}

bool twi_fork_inside(void)
{
	return inside;
}

bool twi_fork_handled(void)
{
	return handled;
}

void twi_fork_count(bool from_callback)
{
	handled = false;
	inside = from_callback;
	/* RELAXED: no other thread exists. */
	if (twi_load_relaxed(&watching))
		twi_fork_epoch++;
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

/*
 * Runs liburcu's handler in the child. Runs after the handler of thread.c, because child handlers
 * run in the order in which they were registered.
 */
static void child_mended(void)
{
	twi_rcu_fork_child();
	handled = true;
}

int twi_fork_handlers_enable(void)
{
	/*
	 * In this child, a lock of liburcu may be held by a thread that does not exist here. With
	 * the handlers, the child's next fork would wait for that lock for ever.
	 */
	if ((twi_fork_epoch & ~TWI_FORK_LOOK) != 0 && !handled)
		return -EPERM;
	/* RELAXED, all accesses: the flag only decides which caller registers the handlers. */
	if (twi_exchange_relaxed(&handlers_wanted, true))
		return 0;
	if (pthread_atfork(twi_rcu_fork_begin, twi_rcu_fork_parent, child_mended) == 0)
		return 0;
	twi_store_relaxed(&handlers_wanted, false); /* RELAXED: as above. */
	return -ENOMEM;
}
