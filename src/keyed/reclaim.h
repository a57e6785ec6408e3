/* SPDX-License-Identifier: MIT */
/*
 * The reclaimer: the one thread of a process that gives back what lookups may still see.
 *
 * A table that has retired entries is work for it. It takes all that there is, waits for one grace
 * period, puts the entries among the free ones of their tables, and rests for a millisecond, so that
 * more comes together. It sleeps while there is no work, and ends when there is no table.
 */
#ifndef TWI_KEYED_RECLAIM_H
#define TWI_KEYED_RECLAIM_H

#include "keyed/entry.h"

/* One more table: there is a thread from here on. 0, or -ENOMEM, -EPERM, or what the system says. */
int twi_reclaim_open(void);

/* A table has no free entry: if there is no thread, another try. */
void twi_reclaim_again(void);

/* One table less. */
void twi_reclaim_close(void);

/* There is work for a table that had none. */
void twi_reclaim_push(struct tw_keyed *table);

/* All that was pushed has been done, and nobody touches the table. Waits. */
void twi_reclaim_wait(struct tw_keyed *table);

/* The caller is the thread from here on, if there is none. */
bool twi_reclaim_claim(void);

/* What the thread does again and again; false: there was nothing to do. One caller at a time. */
bool twi_reclaim_turn(void);

#endif
