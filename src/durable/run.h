/* SPDX-License-Identifier: MIT */
/* A timer in the engine: armed by a caller or by the I/O thread, run by the engine. */
#ifndef TWI_DURABLE_RUN_H
#define TWI_DURABLE_RUN_H

#include "durable/set.h"

/*
 * Sets the engine's timeout of a timer that has none, by the engine's clock. For the timer's owner, whose handle it is
 * (set.h). A negative code: the engine has no memory or no place, and the timer is not armed.
 */
int twi_run_arm(struct tw_durable *set, struct twi_durable_timer *timer, int64_t at_ns);

/* A run that was not in its callback has ended: another one of its kind may begin. */
void twi_run_leave(struct twi_durable_kind *kind);

/* For callbacks: the set stays until the callback has left it. */
static inline void twi_run_enter(struct tw_durable *set)
{
	/* RELAXED: the timeout, which is under way, keeps the set until this is counted. */
	(void)twi_fetch_add_relaxed(&set->inside, 1);
}

static inline void twi_run_exit(struct tw_durable *set)
{
	/* E106: the callback's last access to the set. */
	(void)twi_fetch_sub_release(&set->inside, 1);
}

/* For the I/O thread, when no timeout is left: whether a callback may still touch the set. */
static inline bool twi_run_any(struct tw_durable *set)
{
	/* E106: pairs with the last exit. Without it the set's memory could be freed before. */
	return twi_load_acquire(&set->inside) != 0;
}

#endif
