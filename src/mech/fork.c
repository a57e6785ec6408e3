/* SPDX-License-Identifier: MIT */
#include "mech/fork.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "mech/rcu.h"
#include "mech/thread.h"

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
	/* RELAXED: read by a later fork of any thread, which libc's lock orders; a flag that only
	 * rises. */
	twi_store_relaxed(&watching, true);
}

bool twi_forked(void)
{
	/* RELAXED: changed where no other thread uses the library. */
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

/* Runs in the child, where no other thread is. */
static void child_begins(void)
{
	handled = false;
	inside = twi_thread_self.run != NULL || twi_thread_self.worker != NULL;
	twi_thread_inherit();
	/* RELAXED: alone. */
	if (twi_load_relaxed(&watching))
		twi_fork_epoch++;
}

/* Before any engine, which notes the epoch. */
static TWI_CONSTRUCTOR_FIRST void tsan_look(void)
{
	if (!twi_tsan_there())
		return;
	twi_fork_epoch = TWI_FORK_LOOK;
	twi_fork_take();
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}

/* After child_begins: handlers of the child run in the order in which they were registered. */
static void child_mended(void)
{
	twi_rcu_fork_child();
	handled = true;
}

int twi_fork_handlers_enable(void)
{
	/* A lock of liburcu's may be held by a thread that is not there: the next fork would wait for it. */
	if ((twi_fork_epoch & ~TWI_FORK_LOOK) != 0 && !handled)
		return -EPERM;
	/* RELAXED, all of it: who is first registers them; nothing comes with it. */
	if (twi_exchange_relaxed(&handlers_wanted, true))
		return 0;
	if (pthread_atfork(twi_rcu_fork_begin, twi_rcu_fork_parent, child_mended) == 0)
		return 0;
	twi_store_relaxed(&handlers_wanted, false); /* RELAXED: as above. */
	return -ENOMEM;
}
