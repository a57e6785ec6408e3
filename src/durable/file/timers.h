/* SPDX-License-Identifier: MIT */
/*
 * Timers in the tables timer and inbox, found by their ids.
 *
 * A row lies in one of the two tables, never in both. In `timer` it lies in the bucket of its
 * deadline. The table `inbox` has new rows that wait until upkeep moves them to their buckets. A
 * timer's id names its first bucket. If the timer now lies in another bucket, a pointer row in the
 * table `moved` names that bucket. Each move to another bucket writes or deletes the pointer in the
 * same transaction, and so does the end of the timer. A row in `inbox` has never moved, so it needs
 * no pointer. A row in `timer` whose end is noted (ends.h) counts as deleted.
 *
 * All functions but twi_timers_slice() must be called inside a transaction, which the caller ends.
 */
#ifndef TWI_DURABLE_FILE_TIMERS_H
#define TWI_DURABLE_FILE_TIMERS_H

#include "durable/file/ends.h"
#include "durable/file/plan.h"

#ifdef TWI_TEST_SMALL
/* Small numbers, so that tests reach each bound in a few operations. */
enum {
	TWI_INBOX_BATCH = 6,
	TWI_INBOX_ROWS = 40,
	TWI_INBOX_SLICE = 10,
};
#else
enum {
	/*
	 * A batch with fewer new rows than this puts them into the inbox, where they lie next to
	 * each other. In a larger batch, many rows lie next to each other in their buckets anyway.
	 */
	TWI_INBOX_BATCH = 600,
	/* If the inbox has this many rows, upkeep moves them to their buckets. */
	TWI_INBOX_ROWS = 20000,
	/* How many rows one transaction moves, in about 5 ms. */
	TWI_INBOX_SLICE = 2000,
};
#endif

struct twi_timers {
	struct twi_database *database;
	struct twi_ends ends;
	struct twi_plans plans;
	/* the inbox has no serial outside [inbox_first, inbox_last] */
	int64_t inbox_rows, inbox_first, inbox_last;
	/* Timers with a greater serial have neither moved nor become dead letters. */
	int64_t known_last;
	int64_t put_last;    /* the greatest serial that was put since the open */
	unsigned char *copy; /* bytes of a row that is being changed */
	size_t copy_room;
};

/* Initialises the tables' state. Serials above `known_last` were never reserved before. */
int twi_timers_init(struct twi_timers *timers, struct twi_database *database, int64_t known_last);
void twi_timers_done(struct twi_timers *timers);
/*
 * Reads the bounds of the inbox and the noted ends again. Must be called when the caller has rolled
 * a transaction back.
 */
int twi_timers_refresh(struct twi_timers *timers);

/*
 * Puts a new row into its bucket. If `inbox`, and the bucket is the one that the id names, puts the
 * row into the inbox instead. Returns 0 if done, 1 if a timer or a dead letter has its id, or an
 * error.
 */
int twi_timers_put(struct twi_timers *timers, const struct tw_durable_row *row, bool inbox);
/*
 * Finds a timer. Returns 1 and the row, 0 if there is none, or an error. The row's bytes stay valid
 * until the next call.
 */
int twi_timers_get(struct twi_timers *timers, struct tw_durable_id id, struct tw_durable_row *ret);
/* Finds a timer whose row lies in this bucket or in the inbox. Returns as twi_timers_get. */
int twi_timers_get_at(struct twi_timers *timers, int64_t bucket, int64_t serial,
		      struct tw_durable_row *ret);
/* Copies the bytes of a row. SQLite keeps them only until the statement's next step. */
int twi_timers_keep(struct twi_timers *timers, struct tw_durable_row *row);
/*
 * Replaces the row `old`, which comes from twi_timers_get(), by `row`, in the bucket of its new
 * deadline.
 */
int twi_timers_change(struct twi_timers *timers, const struct tw_durable_row *old,
		      const struct tw_durable_row *row);
/* Deletes a timer with its pointer and its key. Returns 1, 0 if there is none, or an error. */
int twi_timers_delete(struct twi_timers *timers, struct tw_durable_id id);

/*
 * Looks a key up. Returns 1 and the id of the timer that has it, 0 if there is none, or an error.
 */
int twi_timers_key_get(struct twi_timers *timers, const void *key, uint32_t bytes,
		       struct tw_durable_id *ret);

/*
 * Moves the rows with the lowest serials from the inbox to their buckets, in a transaction of its
 * own. Returns 1 if the inbox still has rows, 0 if it has none, or an error.
 */
int twi_timers_slice(struct twi_timers *timers);

#endif
