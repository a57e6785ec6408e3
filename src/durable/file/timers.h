/* SPDX-License-Identifier: MIT */
/*
 * Timers in the tables timer and inbox, found by their ids.
 *
 * A row lies in one of the two tables, never in both. In timer it lies in the bucket of its
 * deadline. If that is not the bucket of its birth, which the id names, then a pointer row in the
 * table moved says where it is: one hop, rewritten by each move and deleted with the timer, in the
 * same transaction. A row in inbox has never moved, so it needs none. A row in timer whose end is
 * noted (ends.h) is there no more.
 *
 * All calls are made inside a transaction, and leave it to the caller.
 */
#ifndef TWI_DURABLE_FILE_TIMERS_H
#define TWI_DURABLE_FILE_TIMERS_H

#include "durable/file/ends.h"
#include "durable/file/plan.h"

#ifdef TWI_TEST_SMALL
/* Tests reach each bound in a few operations. */
enum {
	TWI_INBOX_BATCH = 6,
	TWI_INBOX_ROWS = 40,
	TWI_INBOX_SLICE = 10,
};
#else
enum {
	/* Few new rows go to the inbox, where they are neighbours; many have neighbours anyway. */
	TWI_INBOX_BATCH = 600,
	/* From so many rows on, upkeep moves them to their buckets. */
	TWI_INBOX_ROWS = 20000,
	/* Rows that one transaction moves: about 5 ms. */
	TWI_INBOX_SLICE = 2000,
};
#endif

struct twi_timers {
	struct twi_database *database;
	struct twi_ends ends;
	struct twi_plans plans;
	int64_t inbox_rows, inbox_first, inbox_last; /* at least all serials that are in it */
	int64_t known_last;  /* a timer of a greater serial is new, or lies where its id says */
	int64_t put_last;    /* a greater serial was not put since the open */
	unsigned char *copy; /* bytes of a row that is being changed */
	size_t copy_room;
};

/* Serials above `known_last` were not given out before. */
int twi_timers_init(struct twi_timers *timers, struct twi_database *database, int64_t known_last);
void twi_timers_done(struct twi_timers *timers);
/* After a rollback: the bounds of the inbox and the noted ends are read again. */
int twi_timers_refresh(struct twi_timers *timers);

/* 0: it is new and was put; 1: a timer or a dead letter has its id; or an error. */
int twi_timers_put(struct twi_timers *timers, const struct tw_durable_row *row, bool inbox);
/* 1 and the row, whose bytes stay until the next call; 0: there is none; or an error. */
int twi_timers_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret);
/* The same, for a row that lies in the bucket or in the inbox. */
int twi_timers_get_at(struct twi_timers *timers, int64_t bucket, int64_t serial,
		      struct tw_durable_row *ret);
/* Copies the bytes of a row, because the statement that has them goes on. */
int twi_timers_keep(struct twi_timers *timers, struct tw_durable_row *row);
/* Puts a row that twi_timers_get() gave back with other numbers, where its deadline belongs. */
int twi_timers_change(struct twi_timers *timers, const struct tw_durable_row *old,
		      const struct tw_durable_row *row);
/* 1: deleted, with its pointer and its key; 0: there is none; or an error. */
int twi_timers_delete(struct twi_timers *timers, struct tw_durable_id id);

/* 1 and the timer that has the key, 0, or an error. */
int twi_timers_key_get(struct twi_timers *timers, const void *key, uint32_t bytes,
		       struct tw_durable_id *ret);

/* Moves the oldest slice of the inbox, in a transaction of its own. 1: more are left. */
int twi_timers_slice(struct twi_timers *timers);

#endif
