/* SPDX-License-Identifier: MIT */
/*
 * A simulated disk that fails. The program that links this file replaces the system calls by which
 * SQLite and the file store reach a file. Files of one watched directory are real, so reads, locks
 * and modes are real too. But the disk also records each write, which becomes durable only with a
 * later sync.
 *
 * disk_restart() puts the files into a state that a power loss may leave. A write that was not
 * synced is kept, dropped, or torn at a multiple of 512 bytes. Each sector is decided separately,
 * so later writes may stay without earlier ones. A name that was not synced in its directory is
 * lost, and a removed name may return. After a failed sync the data is still readable, but is never
 * durable, because Linux marks the pages as clean. The same bytes must be written again.
 *
 * The replacement is below SQLite's VFS instead of inside it. So it also sees the calls that the
 * store makes without SQLite, and it tests how SQLite handles EINTR and short writes.
 *
 * Only one thread at a time may use it.
 */
#ifndef TESTS_DURABLE_DISK_H
#define TESTS_DURABLE_DISK_H

#include <stdbool.h>
#include <stdint.h>

enum disk_call {
	DISK_OPEN,
	DISK_READ,
	DISK_WRITE,
	DISK_TRUNCATE,
	DISK_SYNC,
	DISK_UNLINK,
	DISK_ANY, /* any call that is not a read */
	DISK_CALLS,
};

/* A value of `error` for disk_fail(): the call handles only a part of the bytes. */
#define DISK_SHORT (-1)

enum disk_loss {
	DISK_KEEP,   /* as if only the process had ended: nothing is lost */
	DISK_DROP,   /* everything that was not synced is lost */
	DISK_RANDOM, /* each sector and each name is lost or kept at random */
};

/* Watches the files of `directory`, an absolute path. Their present contents count as durable. */
void disk_begin(const char *directory);
void disk_end(void);

/*
 * Makes the `nth` call from now on (1 is the next one) fail with `error`. If `sticky` is true, each
 * later call fails too.
 */
void disk_fail(enum disk_call call, uint64_t nth, int error, bool sticky);
/* Makes the `nth` call from now on that is not a read, and all later ones, do nothing and fail. */
void disk_die(uint64_t nth);
/* Ends all faults of disk_fail() and of disk_die(). */
void disk_heal(void);

/* Returns the number of calls, and of bytes written, since disk_begin(). */
uint64_t disk_count(enum disk_call call);
uint64_t disk_bytes(void);
/* Returns whether a fault of disk_fail() or disk_die() has struck. */
bool disk_struck(void);

/*
 * Ends all faults, then loses writes and names according to `loss`; `seed` makes the random
 * choices. No file of the directory may be open.
 */
void disk_restart(enum disk_loss loss, uint64_t seed);

#endif
