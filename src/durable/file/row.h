/* SPDX-License-Identifier: MIT */
/* A timer as a row of the tables timer, inbox and dead. */
#ifndef TWI_DURABLE_FILE_ROW_H
#define TWI_DURABLE_FILE_ROW_H

#include "durable/file/database.h"

#include <stddef.h>
#include <tickwheel/durable_store.h>

/* The width of a bucket: 64 seconds. Timers of a bucket lie next to each other in the file. */
#define TWI_BUCKET_NS (INT64_C(64) * 1000000000)

/*
 * In the file store, `kind` of a row is the number in the table `kind`. Callers of the store use
 * another number: the index in the array that open received. store.c translates between the two.
 */

/* Returns the bucket of a deadline. Deadlines before 1970 are rounded down, too. */
static inline int64_t twi_bucket(int64_t due_ns)
{
	return due_ns / TWI_BUCKET_NS - (due_ns % TWI_BUCKET_NS < 0);
}

/* Return the numbers of an id as signed numbers, as SQLite stores them. */
static inline int64_t twi_place(struct tw_durable_id id)
{
	return (int64_t)id.place;
}

static inline int64_t twi_serial(struct tw_durable_id id)
{
	return (int64_t)id.serial;
}

/* Binds all columns of a PUT statement. The bytes must stay until the statement has run. */
void twi_row_bind(sqlite3_stmt *statement, const struct tw_durable_row *row);
/*
 * Reads a row of a statement. The row's bytes stay valid until the statement's next step. Returns
 * -EUCLEAN if the row is damaged, or lies in the wrong bucket.
 */
int twi_row_read(sqlite3_stmt *statement, struct tw_durable_row *ret);

#endif
