/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer: the one thread of a process that frees the entries that lookups may still see.
 *
 * Its work are the tables that have retired entries. It takes all of them, waits for one grace
 * period, and returns the entries to the free ones of their tables. Then it rests for a
 * millisecond, so that one grace period serves more entries. It sleeps while there is no work, and
 * ends when there is no table.
 */
#ifndef TWI_KEYED_RECLAIM_H
#define TWI_KEYED_RECLAIM_H

#include "keyed/entry.h"

/*
 * Counts one more table. Returns 0 if there is a reclaimer, or another caller is trying to make it.
 * Otherwise returns -ENOMEM, -EPERM or the system's error: no thread could be made, and the table
 * is not counted.
 */
int twi_reclaim_open(void);

/* Called if a table has no free entry. If there is no reclaimer, tries again to make one. */
void twi_reclaim_again(void);

/* Counts one table less. */
void twi_reclaim_close(void);

/* Gives a table to the reclaimer. The table's list of retired entries was empty before. */
void twi_reclaim_push(struct tw_keyed *table);

/*
 * Waits until all pushes of the table are done, and no thread touches it any more. Does the work
 * itself if no thread can be made.
 */
void twi_reclaim_wait(struct tw_keyed *table);

/*
 * Returns true if the caller has the claim from now on, until it makes the thread or gives the
 * claim up.
 */
bool twi_reclaim_claim(void);

/* Gives up the caller's claim, and wakes the destroyers that wait for it. */
void twi_reclaim_give_up(void);

/*
 * Runs one turn of the reclaimer's work. The caller must have the claim. Returns false if there was
 * no work.
 */
bool twi_reclaim_turn(void);

#endif
