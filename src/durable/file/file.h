/* SPDX-License-Identifier: MIT */
/*
 * An open store in a file, and the state after a failure.
 *
 * One thread at a time. Each commit is one transaction of SQLite. It is done, or refused as a whole
 * (-EAGAIN, -ENOSPC), or unknown: then the store is frozen, answers each call by that error, and
 * must be opened again.
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
	int64_t highest_ns; /* of all commits; the file may be a second behind */
	bool was_clean;     /* the process before closed it */
	bool open;
	char *reserve; /* name of a file that is given back to a full disk */
	bool reserved;
};

/* Returns 0, or what files.h and schema.h say. Then twi_file_close() is still to be called. */
int twi_file_open(struct twi_file *file, const char *path);
void twi_file_close(struct twi_file *file, bool clean);

/* The numbers from *ret on, `count` of them, were never used and never will be again. */
int twi_file_reserve(struct twi_file *file, uint64_t count, uint64_t *ret);
/* Keeps the clock of kinds that count elapsed time. */
int twi_file_clock_set(struct twi_file *file, const struct tw_durable_clock *clock);
/* Whether runs of a kind are paused at the next open, too. */
int twi_file_pause(struct twi_file *file, uint32_t number, bool paused);
/* Inside a transaction: keeps the highest time that was seen. */
int twi_file_time(struct twi_file *file, int64_t now_ns);
/* An error after which nothing may be written. */
void twi_file_freeze(struct twi_file *file, int error);

/* Room for ends on a full disk: given up when the disk is full, taken again when it is not. */
void twi_file_room_take(struct twi_file *file);
void twi_file_room_give(struct twi_file *file);

#endif
