/* SPDX-License-Identifier: MIT */
/*
 * An open store in a file.
 *
 * Only one thread may use the store at a time. Each commit is one transaction of SQLite. Either it
 * is done, or it is refused as a whole (-EAGAIN, -ENOSPC), or its outcome is unknown. If the
 * outcome is unknown, the store is frozen: each call returns the error, and the store must be
 * opened again.
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
	/* the highest time of all commits; the time in the file may be a second behind */
	int64_t highest_ns;
	bool was_clean; /* the process that had the file open before closed it cleanly */
	bool open;
	char *reserve; /* path of the reserve file, see below */
	bool reserved;
};

/*
 * Opens a store. Returns 0, or a code of files.h or schema.h. Even after an error twi_file_close()
 * must be called.
 */
int twi_file_open(struct twi_file *file, const char *path);
/* Closes a store. `clean`: marks the file as cleanly closed, unless the store is frozen. */
void twi_file_close(struct twi_file *file, bool clean);

/* Reserves `count` serials, from *ret on. Each serial of a file is reserved only once. */
int twi_file_reserve(struct twi_file *file, uint64_t count, uint64_t *ret);
/* Stores the clock of the kinds that count elapsed time. */
int twi_file_clock_set(struct twi_file *file, const struct tw_durable_clock *clock);
/* Stores whether a kind is paused. The next open reads this mark. */
int twi_file_pause(struct twi_file *file, uint32_t number, bool paused);
/*
 * Raises the highest time to `now_ns`, and stores it if its second has changed. Must be called
 * inside a transaction.
 */
int twi_file_time(struct twi_file *file, int64_t now_ns);
/*
 * Freezes the store with -ESTALE if the path no longer leads to the file, or if the process has
 * lost the lock to another process. Makes two system calls.
 */
void twi_file_guard(struct twi_file *file);
/* Freezes the store after an error that allows no further write. */
void twi_file_freeze(struct twi_file *file, int error);

/*
 * Make and remove the reserve file, which only takes up space. If the disk is full, the store
 * removes the reserve file, so that timers can still end. It makes the file again after a later
 * checkpoint.
 */
void twi_file_room_take(struct twi_file *file);
void twi_file_room_give(struct twi_file *file);

#endif
