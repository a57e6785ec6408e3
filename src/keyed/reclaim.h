/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer: the one thread of a process that frees the entries that lookups may still see.
 *
 * A table that has retired entries is work for it. It takes all work that there is, waits for one
 * grace period, puts the entries among the free ones of their tables, and rests for a millisecond,
 * so that more work comes together. It sleeps while there is no work, and ends when there is no
 * table.
 */
#ifndef TWI_KEYED_RECLAIM_H
#define TWI_KEYED_RECLAIM_H

#include "keyed/entry.h"

/*
 * Counts one more table. 0: there is a thread, or another caller is trying to make it. Otherwise
 * returns -ENOMEM, -EPERM or the system's error: no thread could be made, and the table is not
 * counted.
 */
int twi_reclaim_open(void);

/* Called if a table has no free entry: if there is no thread, tries again to make one. */
void twi_reclaim_again(void);

/* Counts one table less. */
void twi_reclaim_close(void);

/* Gives the reclaimer a table that had no work before. */
void twi_reclaim_push(struct tw_keyed *table);

/*
 * Waits until all that was pushed is done, and no thread touches the table. Does the work itself if
 * no thread can be made.
 */
void twi_reclaim_wait(struct tw_keyed *table);

/* True: the caller has the claim from here on, until it makes the thread or gives the claim up. */
bool twi_reclaim_claim(void);

/* Gives up the caller's claim, and wakes the destroyers that wait for it. */
void twi_reclaim_give_up(void);

/*
 * Runs one turn of the reclaimer's work. The caller must have the claim. False: there was no work.
 */
bool twi_reclaim_turn(void);

#endif
