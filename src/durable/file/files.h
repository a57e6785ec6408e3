/* SPDX-License-Identifier: MIT */
/*
 * The names of a store: PATH is the database, PATH-lock the lock. The lock is a POSIX one, because
 * other kinds live on in a forked child. The lock file stays when the store is closed: a removed
 * one could still be locked while another process makes and locks a new one.
 */
#ifndef TWI_DURABLE_FILE_FILES_H
#define TWI_DURABLE_FILE_FILES_H

#include <stdbool.h>

struct twi_files {
	char *path;  /* of the database, without links in it */
	int lock;    /* descriptor of the lock file, -1: none */
	int claim;   /* in the table of this process, -1: none */
	bool memory; /* the file system is lost with the power: tmpfs */
};

/*
 * Checks the names, takes the lock, and makes the database file, empty, if there is none. Returns
 * 0, -ENOENT the directory is missing, -EISDIR, -ELOOP a link, -EMLINK another hard link, -ENOTSUP
 * a network file system, -EBUSY it is open already, -EINVAL no regular file, or a code of the
 * system.
 */
int twi_files_take(const char *path, struct twi_files *ret);
/* Drops the lock. Only after the database is closed. */
void twi_files_drop(struct twi_files *files);

/* The descriptor's directory entries are durable afterwards. */
int twi_files_sync_directory(const char *path);
/* PATH and an ending. NULL: no memory. */
char *twi_files_name(const char *path, const char *ending);

#endif
