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
 * | -EEXIST       | it is a database of another program                                         |
 * | -EMFILE       | this process has 1,024 stores open                                          |
 * | -EISDIR       | the path is that of a folder                                                |
 * | -ELOOP        | the path ends in a symbolic link                                            |
 * | -EMLINK       | the file has another hard link                                              |
 * | -EROFS        | the file system is read-only                                                |
 * | -EACCES       | the file may not be read and written                                        |
 * | -ENAMETOOLONG | the path is too long                                                        |
 */
#ifndef TICKWHEEL_DURABLE_FILE_H
#define TICKWHEEL_DURABLE_FILE_H

#include <tickwheel/durable_store.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Makes a store that keeps durable timers in a file of SQLite. The file is opened, and made if it
 * does not exist, by tw_durable_open. Its mode is 0600. Next to it are `path` with the endings
 * -lock, -reserve (8 MiB that a full disk gets back, so that ends can be written), -wal and -shm.
 *
 * tw_durable_open then also returns: -EBUSY (this or another process has it open, or a reader
 * prevents the recovery, or another thread opens it at this moment); -EMFILE (this process has 1,024
 * stores open); -EUCLEAN (it is damaged, or no database); -EEXIST (a database of another
 * program); -ENOTSUP (a version of the future, or a network file system); -ENOENT (the directory
 * does not exist); -EISDIR; -ELOOP (a symbolic link); -EMLINK (it has another hard link); -EROFS,
 * -EACCES, -ENOSPC, -ENAMETOOLONG, -EIO and others of the system. A file system in memory keeps
 * TW_DURABLE_LEVEL_PROCESS, others TW_DURABLE_LEVEL_DISK.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free but for memory. It does not touch the file.
 * Lifetime: `path` is copied. tw_durable_open takes the store over; its `close` frees it.
 * Returns: 0 and `*ret_store`; -EINVAL (NULL, an empty path); -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_durable_store_file(const char *path, struct tw_durable_store *ret_store);

TW_END_DECLS

#endif
