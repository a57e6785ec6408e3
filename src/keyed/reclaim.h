/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer: the one thread of a process that frees the entries that lookups may still see.
 *
 * In one turn it takes all tables that have retired entries, waits for one grace period, and pushes
 * the entries onto the free stacks of their tables. Then it rests for a millisecond, so that one
 * grace period serves more entries. The thread sleeps while no table has retired entries, and ends
 * when there is no table.
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

/* Tries again to make the reclaimer, if there is none. Called if a table has no free entry. */
void twi_reclaim_again(void);

/* Takes one table out of the count. The reclaimer ends when the count is 0. */
void twi_reclaim_close(void);

/* Gives a table to the reclaimer. The table's list of retired entries was empty before. */
void twi_reclaim_push(struct tw_keyed *table);

/*
 * Waits until the reclaimer has finished all pushes of the table, and no thread touches it any
 * more. If no reclaimer can be created, the caller does the work itself.
 */
void twi_reclaim_wait(struct tw_keyed *table);

/*
 * Tries to get the claim, which a thread needs to run turns (reclaim.c). Returns true if the caller
 * has it now, until it creates the reclaimer or gives the claim up.
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
