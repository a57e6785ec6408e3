/* SPDX-License-Identifier: MIT */
/*
 * Ends that are noted, and whose rows are deleted later.
 *
 * Timers end in the order of their deadlines, but the rows of a bucket are sorted by serial. So each
 * end would change another page. Instead it is appended to the table `ended`, whose pages it shares
 * with its neighbours in time. When a bucket is long past, its rows are deleted in the order of the
 * file, and then its ends. Until then the row is in the table `timer` and counts as gone.
 *
 * Only a timer without a key, at the place of its birth, and not in the inbox is noted. All noted
 * ends are in memory, in a hash table by their serials. Without memory an end deletes its row at
 * once. An end far ahead does so too, because it would wait for days.
 *
 * All calls but twi_ends_slice() are made inside a transaction, and leave it to the caller.
 */
#ifndef TWI_DURABLE_FILE_ENDS_H
#define TWI_DURABLE_FILE_ENDS_H

#include "durable/file/row.h"

enum {
#ifdef TWI_TEST_SMALL
	/* Tests reach each bound in a few operations. */
	TWI_ENDS_MAX = 40,
	TWI_ENDS_SLICE = 8,
	TWI_ENDS_SOON = 8,
	TWI_ENDS_COLD = -5,
#else
	/* Noted ends: 24 bytes each, twice for the gaps of the table. */
	TWI_ENDS_MAX = 1 << 19,
	/* Rows that one transaction deletes: about 5 ms. */
	TWI_ENDS_SLICE = 2000,
	/* Buckets ahead of the time, up to which ends are noted. */
	TWI_ENDS_SOON = 1,
	/* Buckets behind the time, from which on their rows are deleted. */
	TWI_ENDS_COLD = 2,
#endif
};

struct twi_end {
	int64_t place, serial;
	int64_t number; /* of its row; 0: a free place in the table */
};

struct twi_ends {
	struct twi_database *database;
	struct twi_end *table;
	size_t room, count; /* room: a power of two, or 0 */
	int64_t now_bucket; /* of the highest time */
	int64_t oldest;     /* no noted end is of an earlier bucket */
	int64_t number_last;
	struct twi_end *work; /* the ends of the bucket that is being deleted */
	size_t work_count, work_done;
	bool rows_deleted; /* of the work; its ends follow, by number */
};

/* Reads the table; also after a rollback. */
int twi_ends_read(struct twi_ends *ends);
void twi_ends_done(struct twi_ends *ends);

bool twi_ends_have(const struct twi_ends *ends, int64_t place, int64_t serial);
/* Whether an end at this place is to be noted. */
bool twi_ends_wanted(const struct twi_ends *ends, int64_t place);
/* 1: noted; 0: no memory; or an error. */
int twi_ends_add(struct twi_ends *ends, int64_t place, int64_t serial);
/* Deletes the row of a noted end now, because its id is used again. */
int twi_ends_settle(struct twi_ends *ends, int64_t place, int64_t serial);

/* Whether a bucket with noted ends is long past. */
bool twi_ends_cold(const struct twi_ends *ends);
/* Deletes some of its rows, in a transaction of its own. Not synced, as a slice of the inbox. */
int twi_ends_slice(struct twi_ends *ends);

#endif
