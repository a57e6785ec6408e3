/* SPDX-License-Identifier: MIT */
/*
 * Noted ends: timers that have ended, and whose rows are deleted later.
 *
 * Timers end in the order of their deadlines, but the rows of a bucket are sorted by serial. If an
 * end deleted its row at once, nearly each end would change a different page. Instead, the end is
 * appended to the table `ended`, where ends that follow each other share pages. When a bucket is
 * long past, its ended rows are deleted in the order of the file, and then their noted ends. Until
 * then an ended row stays in the table `timer`, but the timer counts as deleted.
 *
 * An end is noted only if the timer has no key, lies in the bucket that its id names, and is not in
 * the inbox (the table of new rows that wait for their buckets). All noted ends are in memory, in a
 * hash table by their serials. In three cases an end deletes its row at once instead: there is no
 * memory; TWI_ENDS_MAX ends are noted; or the timer's bucket is far ahead, so that the end could
 * stay noted for days.
 *
 * All functions but twi_ends_slice() must be called inside a transaction, which the caller ends.
 */
#ifndef TWI_DURABLE_FILE_ENDS_H
#define TWI_DURABLE_FILE_ENDS_H

#include "durable/file/row.h"

enum {
#ifdef TWI_TEST_SMALL
	/* Small numbers, so that tests reach each bound in a few operations. */
	TWI_ENDS_MAX = 40,
	TWI_ENDS_SLICE = 8,
	TWI_ENDS_SOON = 8,
	TWI_ENDS_COLD = -5,
#else
	/*
	 * The most noted ends. Each takes 24 bytes, and at least as much again, because half of the
	 * table stays free.
	 */
	TWI_ENDS_MAX = 1 << 19,
	/* How many rows one transaction deletes, in about 5 ms. */
	TWI_ENDS_SLICE = 2000,
	/* Ends are noted up to this many buckets ahead of the present time. */
	TWI_ENDS_SOON = 1,
	/*
	 * The rows of noted ends are deleted when their bucket is more than this many buckets
	 * behind.
	 */
	TWI_ENDS_COLD = 2,
#endif
};

struct twi_end {
	int64_t place, serial;
	int64_t number; /* number of its row in `ended`; 0 marks a free place in the table */
};

struct twi_ends {
	struct twi_database *database;
	struct twi_end *table;
	size_t room, count; /* room: places of the table, a power of two or 0; count: noted ends */
	int64_t now_bucket; /* the bucket of the highest time */
	int64_t oldest;     /* no noted end belongs to an earlier bucket */
	int64_t number_last;
	struct twi_end *work; /* the ends of the bucket that is being deleted */
	size_t work_count, work_done;
	bool rows_deleted; /* the rows of `work` are deleted; the ends follow, by number */
};

/* Reads the table `ended`. Must also be called when the caller has rolled a transaction back. */
int twi_ends_read(struct twi_ends *ends);
void twi_ends_done(struct twi_ends *ends);

bool twi_ends_have(const struct twi_ends *ends, int64_t place, int64_t serial);
/* Returns whether an end in this bucket should be noted. */
bool twi_ends_wanted(const struct twi_ends *ends, int64_t place);
/* Notes an end. Returns 1 if done, 0 if there is no memory, or an error. */
int twi_ends_add(struct twi_ends *ends, int64_t place, int64_t serial);
/* Deletes a noted end and its row now, because its id is used again. */
int twi_ends_settle(struct twi_ends *ends, int64_t place, int64_t serial);

/* Returns whether a bucket with noted ends is long past. */
bool twi_ends_cold(const struct twi_ends *ends);
/*
 * Deletes some rows of a bucket that is long past, in a transaction of its own. Its commit does not
 * sync: if a power loss undoes the commit, the file has the rows and their noted ends again.
 */
int twi_ends_slice(struct twi_ends *ends);

#endif
