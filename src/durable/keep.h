/* SPDX-License-Identifier: MIT */
/* [io] Timers in memory: armed in the engine, parked, loaded from the store, freed. */
#ifndef TWI_DURABLE_KEEP_H
#define TWI_DURABLE_KEEP_H

#include "durable/set.h"

/* Returns whether a deadline lies in the near window, where all timers are in memory. */
bool twi_keep_near(const struct tw_durable *set, const struct twi_durable_kind *kind,
		   struct tw_durable_id id, int64_t due_ns);

/* Puts a timer that the store has, or that lingers, into the hash table of the timers in memory. */
void twi_keep_add(struct tw_durable *set, struct twi_durable_timer *timer);

/* Lets the next load begin at the deadline of a timer that should be in memory but is not. */
void twi_keep_return(struct tw_durable *set, const struct twi_durable_kind *kind,
		     struct tw_durable_id id, int64_t due_ns);

/*
 * Arm a waiting timer: twi_keep_arm for its deadline, or twi_keep_arm_now for now, if it is due and
 * may run.
 */
void twi_keep_arm(struct tw_durable *set, struct twi_durable_timer *timer);
void twi_keep_arm_now(struct tw_durable *set, struct twi_durable_timer *timer);
/*
 * Arms a waiting timer for its deadline, but not within the next milliseconds, because a server has
 * refused its start.
 */
void twi_keep_arm_soon(struct tw_durable *set, struct twi_durable_timer *timer);

/*
 * Takes an ended or held timer out of memory. The timer is freed when no thread can still read it.
 */
void twi_keep_release(struct tw_durable *set, struct twi_durable_timer *timer);

/*
 * Appends a due timer to the list `on`: PARKED if it waits for its kind, HELD if it waits for the
 * set.
 */
void twi_keep_park(struct tw_durable *set, struct twi_durable_timer *timer, enum twi_list on);
/* Arms the first timers that wait for a kind, as many as may run. */
void twi_keep_unpark(struct tw_durable *set, struct twi_durable_kind *kind);
/* Arms all timers that wait for the set. */
void twi_keep_unhold(struct tw_durable *set);

/*
 * Frees or arms the timers of the list `limbo`, if this is possible now. They are on the list
 * because their callbacks were running, or their timeouts could not be made.
 */
void twi_keep_limbo(struct tw_durable *set);
/* Frees the released timers. */
void twi_keep_collect(struct tw_durable *set);
/* Cancels the timeouts of all timers. Returns true if none is left in the engine. */
bool twi_keep_disarm_all(struct tw_durable *set);
/* Sets the timeouts of all timers again, after a step of the wall clock. */
void twi_keep_rearm_all(struct tw_durable *set);
/* Takes the waiting timers that an earlier session has claimed out of memory. */
void twi_keep_drop_stale(struct tw_durable *set);
/*
 * Finds timers that still wait although their start was stored. Writes at most `max` of them to
 * `ret`, and returns how many. No timer is found by more than one call.
 */
size_t twi_keep_started(struct tw_durable *set, struct twi_durable_timer **ret, size_t max);
/* Frees a timer that no other thread can reach. The timer may be NULL. Any thread may call this. */
void twi_timer_free(struct twi_durable_timer *timer);
/* Frees all timers, at the end of a set. */
void twi_keep_free_all(struct tw_durable *set);

/*
 * Makes a timer in memory from a row of the store, unless it is in memory already. A hook of type
 * tw_durable_give. Returns 0; or 1 if the set does not need this row of a shared store; or -ENOMEM.
 */
int twi_keep_load(void *set, const struct tw_durable_row *row);

#endif
