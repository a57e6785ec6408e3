/* SPDX-License-Identifier: MIT */
#include "mech/fork.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "mech/thread.h"

#include <pthread.h>
#include <stddef.h>

uint32_t twi_fork_epoch;

static _Atomic bool watching; /* [atomic] */

void twi_fork_watch(void)
{
	/* RELAXED: read by a later fork of any thread, which libc's lock orders; a flag that only
	 * rises. */
	twi_store_relaxed(&watching, true);
}

/* Runs in the child, where no other thread is. */
static void child_begins(void)
{
	/* RELAXED: alone. */
	if (twi_load_relaxed(&watching))
		twi_fork_epoch++;
	/* The wheels are the parent's. */
	twi_thread_self.wheel_of = NULL;
}

static TWI_CONSTRUCTOR void handler_register(void)
{
	(void)pthread_atfork(NULL, NULL, child_begins);
}
