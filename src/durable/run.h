/* SPDX-License-Identifier: MIT */
/*
 * Arms timers in the engine, for callers and for the I/O thread, and runs them in the engine's
 * callback.
 */
#ifndef TWI_DURABLE_RUN_H
#define TWI_DURABLE_RUN_H

#include "durable/set.h"

/*
 * Arms a timer: schedules its timeout in the engine, at a time of the engine's clock. The timer
 * must have no timeout. Only the thread that owns `handle` may call it (set.h). Returns 0, or a
 * negative code if the engine has no memory or its limit of pending timeouts is reached; then the
 * timer is not armed.
 */
int twi_run_arm(struct tw_durable *set, struct twi_durable_timer *timer, int64_t at_ns);

/* Counts the end of a run, so that another run of its kind may begin. */
void twi_run_leave(struct twi_durable_kind *kind);

/* Counts a callback as inside. The set is not freed before the callback has called twi_run_exit. */
static inline void twi_run_enter(struct tw_durable *set)
{
	/*
	 * RELAXED: the timeout is still running in the engine, so the set is not freed before this
	 * addition.
	 */
	(void)twi_fetch_add_relaxed(&set->inside, 1);
}

static inline void twi_run_exit(struct tw_durable *set)
{
	/* E106: the callback's last access to the set. */
	(void)twi_fetch_sub_release(&set->inside, 1);
}

/*
 * Returns whether a callback may still touch the set. The I/O thread calls it when the engine has
 * no timeout of the set left.
 */
static inline bool twi_run_any(struct tw_durable *set)
{
	/*
	 * E106: pairs with the last exit. Without it the set could be freed before the callback's
	 * last access.
	 */
	return twi_load_acquire(&set->inside) != 0;
}

#endif
