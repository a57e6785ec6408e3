/* SPDX-License-Identifier: MIT */
/*
 * Makes the tables of the file, version 4, and reads and writes the small ones: the record of the
 * file itself, the names of the kinds, the paused kinds, and the clock of the kinds that count
 * elapsed time. docs/internals/durable-file.md describes all tables.
 */
#ifndef TWI_DURABLE_FILE_SCHEMA_H
#define TWI_DURABLE_FILE_SCHEMA_H

#include "durable/file/database.h"

#include <tickwheel/durable_store.h>

enum {
	/* "twdf", in the header of the database. */
	TWI_SCHEMA_APPLICATION = 0x74776466,
	TWI_SCHEMA_VERSION = 4,
};

/* The one row of the table meta. */
struct twi_meta {
	int64_t serial;  /* only serials below this number may be in use */
	int64_t epoch;   /* how often the file was opened */
	int64_t clean;   /* 1 if the last process that had the file open closed it, otherwise 0 */
	int64_t wall_ns; /* the highest wall-clock time of a commit; may be a second behind */
};

/*
 * Finds out what the file is, without writing to it. Returns its version; 0 if it is empty; -EEXIST
 * if it is a database of another program; -ENOTSUP if it has a later version; -EUCLEAN if it is no
 * database.
 */
int twi_schema_look(struct twi_database *database);
/* Makes the tables of an empty file, or converts those of an old version. */
int twi_schema_make(struct twi_database *database, int version);

/* Reads the record of the file. Returns -EUCLEAN if it is missing or damaged. */
int twi_meta_get(struct twi_database *database, struct twi_meta *ret);
/* Writes the record of the file. Must be called inside a transaction. */
int twi_meta_set(struct twi_database *database, const struct twi_meta *meta);

/*
 * Reads the clock of the kinds that count elapsed time. Returns -ENOENT if there is none, -EUCLEAN
 * if it is damaged.
 */
int twi_clock_get(struct twi_database *database, struct tw_durable_clock *ret);
/* Writes that clock. Must be called inside a transaction. */
int twi_clock_set(struct twi_database *database, const struct tw_durable_clock *clock);

/* Adds a kind. Must be called inside a transaction. */
int twi_kind_add(struct twi_database *database, uint32_t number, const char *name);
/*
 * Passes each kind to `give`, in the order of their numbers. The name is only valid during the
 * call.
 */
int twi_kind_all(struct twi_database *database,
		 int (*give)(void *to, uint32_t number, const char *name), void *to);

/* Marks a kind as paused, or removes the mark. Must be called inside a transaction. */
int twi_paused_set(struct twi_database *database, uint32_t number, bool paused);
/* Passes the numbers of all paused kinds to `give`, in ascending order. */
int twi_paused_all(struct twi_database *database, int (*give)(void *to, uint32_t number), void *to);

#endif
