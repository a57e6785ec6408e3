/* SPDX-License-Identifier: MIT */
/*
 * SQLite's write-ahead log: how an open recovers the log, and when the log is copied into the
 * database.
 *
 * At open, a log may have a tail that an earlier process wrote but could not sync. After the failed
 * sync Linux marked the pages of the tail as clean: they are readable, but no later sync writes
 * them to the disk. SQLite would treat such pages as committed. It would append behind them, or
 * copy some of them into the database before a power loss. So an open writes the whole log again,
 * in place, and syncs it. After that each page of the log is durable. Before the first
 * acknowledgement the log is copied into the database and truncated.
 *
 * While the file is open, a checkpoint runs after the acknowledgements of a batch if the log has
 * grown by TWI_LOG_PAGES. A checkpoint cannot be cut into slices. A checkpoint of 4 MiB takes 6 ms.
 * (With 16 MiB it takes 11 ms, and the store is 8 % faster.)
 */
#ifndef TWI_DURABLE_FILE_LOG_H
#define TWI_DURABLE_FILE_LOG_H

#include "durable/file/database.h"

enum {
#ifdef TWI_TEST_SMALL
	TWI_LOG_PAGES = 32,
#else
	TWI_LOG_PAGES = 1024,
#endif
};

/*
 * Makes the content of the log durable, and empties the log. Returns -EBUSY if a reader prevents
 * that.
 */
int twi_log_settle(struct twi_database *database);
/*
 * Copies the part of the log that no reader needs into the database. An error other than -EBUSY and
 * -ENOSPC freezes the connection.
 */
int twi_log_checkpoint(struct twi_database *database);
/*
 * Returns the bytes of the log that the next commits cannot use again. If a reader was in the way
 * of the last checkpoint, tries another one first.
 */
uint64_t twi_log_bytes(struct twi_database *database);

#endif
