/* SPDX-License-Identifier: MIT */
/* [io] Timers in memory: armed in the engine, parked, loaded from the store, freed. */
#ifndef TWI_DURABLE_KEEP_H
#define TWI_DURABLE_KEEP_H

#include "durable/set.h"

/* Whether a deadline lies where all timers are in memory. */
bool twi_keep_near(const struct tw_durable *set, const struct twi_durable_kind *kind,
		   struct tw_durable_id id, int64_t due_ns);

/* Puts a timer that the store has, or that lingers, into the table of those in memory. */
void twi_keep_add(struct tw_durable *set, struct twi_durable_timer *timer);

/* A timer that should be in memory is not: loads again from there on. */
void twi_keep_return(struct tw_durable *set, const struct twi_durable_kind *kind,
		     struct tw_durable_id id, int64_t due_ns);

/* Arms a waiting timer for its deadline, or for now: then it is due, and its turn has come. */
void twi_keep_arm(struct tw_durable *set, struct twi_durable_timer *timer);
void twi_keep_arm_now(struct tw_durable *set, struct twi_durable_timer *timer);
/* At its deadline, but not before some milliseconds: a server has said that it may not run yet. */
void twi_keep_arm_soon(struct tw_durable *set, struct twi_durable_timer *timer);

/* Takes an ended or held timer out of memory. It is freed when no thread can see it. */
void twi_keep_release(struct tw_durable *set, struct twi_durable_timer *timer);

/* Puts a due timer behind the others that wait for their kind, or for the set. */
void twi_keep_park(struct tw_durable *set, struct twi_durable_timer *timer, enum twi_list on);
/* Arms the first ones that wait for a kind, as many as may run. */
void twi_keep_unpark(struct tw_durable *set, struct twi_durable_kind *kind);
/* The same for those that wait for the set. */
void twi_keep_unhold(struct tw_durable *set);

/* Tries again with the timers whose timeouts were on their way, or could not be made. */
void twi_keep_limbo(struct tw_durable *set);
/* Frees the released timers. */
void twi_keep_collect(struct tw_durable *set);
/* Takes away the timeouts of all timers. True: none is left in the engine. */
bool twi_keep_disarm_all(struct tw_durable *set);
/* Sets the timeouts of all timers anew, after a step of the wall clock. */
void twi_keep_rearm_all(struct tw_durable *set);
/* Takes those that a session of the past has claimed, and that wait, out of memory. */
void twi_keep_drop_stale(struct tw_durable *set);
/* Timers whose start was stored, and that wait still: at most `max`, each of them once. */
size_t twi_keep_started(struct tw_durable *set, struct twi_durable_timer **ret, size_t max);
/* At the end: frees all timers. */
void twi_keep_free_all(struct tw_durable *set);

/* A tw_durable_give: makes a row of the store a timer in memory, unless it is there. 1: the row of a
 * shared store is not wanted. */
int twi_keep_load(void *set, const struct tw_durable_row *row);

#endif
