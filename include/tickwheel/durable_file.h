/* SPDX-License-Identifier: MIT */
/**
 * @file durable_file.h
 * The default store of durable timers: one file, for one process at a time.
 *
 * Codes of tw_durable_open with this store:
 *
 * | code          | meaning                                                                     |
 * |---------------|-----------------------------------------------------------------------------|
 * | -EUCLEAN      | the file is damaged, or is no database                                      |
 * | -EEXIST       | the file is a database of another program                                   |
 * | -EMFILE       | this process has 1,024 stores open                                          |
 * | -EISDIR       | the path is that of a directory                                             |
 * | -ELOOP        | the path ends in a symbolic link                                            |
 * | -EMLINK       | the file has another hard link                                              |
 * | -EROFS        | the file system is read-only                                                |
 * | -EACCES       | the process may not write the files, or make files in their directory       |
 * | -ECHILD       | an ancestor of this process had a store open when it forked                 |
 * | -ENAMETOOLONG | the path is too long                                                        |
 */
#ifndef TICKWHEEL_DURABLE_FILE_H
#define TICKWHEEL_DURABLE_FILE_H

#include <tickwheel/durable_store.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Makes a store that keeps durable timers in a file of SQLite. tw_durable_open opens the file, and
 * creates it, with mode 0600, if it does not exist. Next to it are files with the name `path` and
 * the endings -lock, -reserve, -wal and -shm. The file -reserve has 8 MiB, which are freed if the
 * disk is full, so that the ends of timers can still be written. If tw_durable_open fails, it
 * removes the file -lock that it has made.
 *
 * While the store is open, no thread of the process may open and close one of these files, because
 * Linux then drops the process's locks on it. Nor may the file be moved or removed. The store
 * notices both within a second; then the set fails with -ESTALE.
 *
 * With this store, tw_durable_open also returns: -EBUSY (this or another process has the file open,
 * a reader prevents the recovery, or another thread opens it at this moment); -EMFILE (this process
 * has 1,024 stores open); -EUCLEAN (the file is damaged, or is no database); -EEXIST (a database of
 * another program); -ENOTSUP (the format of a later version, or a network file system); -ENOENT
 * (the directory does not exist); -EISDIR; -ELOOP (a symbolic link); -EMLINK (the file has another
 * hard link); -ECHILD (an ancestor of this process had such a store open when it forked: SQLite
 * does not work in this process before exec); -EROFS, -EACCES, -ENOSPC, -ENAMETOOLONG, -EIO and
 * other codes of the system. On a file system in memory the store has the level
 * TW_DURABLE_LEVEL_PROCESS, on others TW_DURABLE_LEVEL_DISK.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free, except that it allocates memory. It does not touch the file.
 * Lifetime: `path` is copied. tw_durable_open takes the store over; the store's `close` frees it.
 * Returns: 0 and `*ret_store`; -EINVAL (NULL, an empty path); -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_store_file(const char *path, struct tw_durable_store *ret_store);

TW_END_DECLS

#endif
