/* SPDX-License-Identifier: MIT */
/*
 * An open store in a file, and the state after a failure.
 *
 * Only one thread may use it at a time. Each commit is one transaction of SQLite. Either it is
 * done, or it is refused as a whole (-EAGAIN, -ENOSPC), or its outcome is unknown. In the last case
 * the store is frozen: each call returns the error, and the store must be opened again.
 */
#ifndef TWI_DURABLE_FILE_FILE_H
#define TWI_DURABLE_FILE_FILE_H

#include "durable/file/files.h"
#include "durable/file/schema.h"
#include "durable/file/timers.h"

struct twi_file {
	struct twi_files files;
	struct twi_database database;
	struct twi_timers timers;
	struct twi_meta meta;
	/* the highest time of all commits; that in the file may be a second behind */
	int64_t highest_ns;
	bool was_clean; /* the process that had the file before closed it */
	bool open;
	char *reserve; /* name of a file that is removed when the disk is full */
	bool reserved;
};

/*
 * Opens a store. Returns 0, or a code of files.h or schema.h. Even after an error twi_file_close()
 * must be called.
 */
int twi_file_open(struct twi_file *file, const char *path);
/* Closes a store. `clean`: marks the file as closed by its process, unless it is frozen. */
void twi_file_close(struct twi_file *file, bool clean);

/*
 * Reserves `count` serials, from *ret on. They were never reserved before, and never will be again.
 */
int twi_file_reserve(struct twi_file *file, uint64_t count, uint64_t *ret);
/* Stores the clock of the kinds that count elapsed time. */
int twi_file_clock_set(struct twi_file *file, const struct tw_durable_clock *clock);
/* Stores whether the runs of a kind are paused after the next open, too. */
int twi_file_pause(struct twi_file *file, uint32_t number, bool paused);
/* Stores the highest time that was seen. Must be called inside a transaction. */
int twi_file_time(struct twi_file *file, int64_t now_ns);
/* Freezes the store after an error that allows no further write. */
void twi_file_freeze(struct twi_file *file, int error);

/*
 * Take and give up the reserve file. The store gives it up when the disk is full, so that timers
 * can still end, and takes it again later.
 */
void twi_file_room_take(struct twi_file *file);
void twi_file_room_give(struct twi_file *file);

#endif
