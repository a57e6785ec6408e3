/* SPDX-License-Identifier: MIT */
/*
 * SQLite's write-ahead log: its recovery at open, and when it is copied into the database.
 *
 * At open, a log may have a tail that an earlier process wrote but could not sync. Linux then
 * marked its pages as clean: they are readable, and no sync will ever write them. SQLite would take
 * them for committed, append behind them, or copy a part of them into the database before a power
 * loss. So open writes the whole log again, in place, and syncs it. After that each page of it is
 * durable, and the log is copied, and cut to nothing, before the first acknowledgement.
 *
 * While open, a checkpoint runs after the acknowledgements of a batch, when the log has grown by
 * TWI_LOG_PAGES. It cannot be cut into slices: at 4 MiB it takes 6 ms (16 MiB: 11 ms, for 8 % more
 * speed).
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

/* Makes the content of the log durable, and the log empty. -EBUSY: a reader prevents it. */
int twi_log_settle(struct twi_database *database);
/* Copies what no reader needs. A failure other than -EBUSY and -ENOSPC freezes. */
int twi_log_checkpoint(struct twi_database *database);
/*
 * The bytes of the log that the next commits cannot use again. If a reader was in the way of the
 * last checkpoint, it tries another one.
 */
uint64_t twi_log_bytes(struct twi_database *database);

#endif
