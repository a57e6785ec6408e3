/* SPDX-License-Identifier: MIT */
/*
 * The files of a store: PATH is the database, PATH-lock the lock. The lock is a POSIX lock, because
 * a forked child inherits other kinds of locks.
 *
 * The lock file stays when the store is closed. If an open makes the lock file and then fails, it
 * removes the file, so that a wrong path leaves no file behind. It removes the file while it holds
 * the lock. Another process may have opened the file before the removal, and may lock it
 * afterwards. So an open that has the lock checks that the path still leads to the locked file.
 * Otherwise a third process could make and lock a new file, and two processes would have the store
 * open.
 */
#ifndef TWI_DURABLE_FILE_FILES_H
#define TWI_DURABLE_FILE_FILES_H

#include <stdbool.h>

struct twi_files {
	char *path;  /* path of the database, without symbolic links */
	int lock;    /* descriptor of the lock file, or -1 */
	int claim;   /* place in the table of claim.h, or -1 */
	bool made;   /* this process made the lock file, and has its lock */
	bool memory; /* the file system is tmpfs, which a power loss empties */
};

/*
 * Checks the names, takes the lock, and makes an empty database file if there is none. Returns 0,
 * or:
 *   -ENOENT   the directory is missing
 *   -EISDIR   the path is a directory
 *   -ELOOP    the file is a symbolic link
 *   -EMLINK   the file has another hard link
 *   -ENOTSUP  the file is on a network file system
 *   -EACCES   the process may not read and write the files, or make files in the directory
 *   -ECHILD   an ancestor of this process had a store open when it forked
 *   -EBUSY    the file is open as a store already
 *   -EINVAL   the path is no regular file
 * or a code of the system.
 */
int twi_files_take(const char *path, struct twi_files *ret);
/* Drops the lock. The database must be closed before. */
void twi_files_drop(struct twi_files *files);
/* Drops the lock after a failed open. Removes the lock file if this open has made it. */
void twi_files_undo(struct twi_files *files);

/*
 * Takes the lock again. Returns false if another process has it now. This process loses its lock if
 * one of its threads opens and closes the lock file.
 */
bool twi_files_held(const struct twi_files *files);

/* Makes the entries of the path's directory durable. */
int twi_files_sync_directory(const char *path);
/* Returns PATH with an ending, or NULL if there is no memory. */
char *twi_files_name(const char *path, const char *ending);

#endif
