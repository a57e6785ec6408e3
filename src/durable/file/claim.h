/* SPDX-License-Identifier: MIT */
/*
 * Which files this process has open as stores. A POSIX lock does not exclude its own process. Worse,
 * a second open and close of the lock file would drop the lock. So a store claims the identity of
 * the file first, by a number that stat() gives, without opening the file.
 *
 * The table has one word for each identity and process that ever was. A word never changes after
 * it was set, so two threads with the same identity always meet at the same place. A forked child
 * has another process number, and so claims places of its own: the parent's claims do not bind it.
 *
 * Progress: lock-free.
 */
#ifndef TWI_DURABLE_FILE_CLAIM_H
#define TWI_DURABLE_FILE_CLAIM_H

#include <stdint.h>

/* Returns the place of the claim, -EBUSY if this process has it, -EMFILE if the table is full. */
int twi_claim_take(uint64_t device, uint64_t inode);
void twi_claim_drop(int place);

#endif
