/* SPDX-License-Identifier: MIT */
/*
 * The table of the files that this process has open as stores. A POSIX lock does not exclude other
 * threads of the process that has it. Worse, if the process opened the lock file again and closed
 * it, the lock would be lost. So a store first claims the identity of the lock file, which stat()
 * returns without opening the file.
 *
 * A claimant writes the identity to a free place, and then looks for it in all other places. Of two
 * claimants of one file, at least one finds the other's identity, and gives up. If both claim at
 * the same moment, both may give up.
 *
 * A forked child inherits the claims of its parent. While it has them, it may claim nothing: SQLite
 * was open in the parent, and the child has a copy of SQLite's tables and mutexes. In the child
 * SQLite would count the parent's locks as the child's own, and take none. Or it would wait for a
 * mutex that no thread of the child holds.
 *
 * Progress: wait-free.
 */
#ifndef TWI_DURABLE_FILE_CLAIM_H
#define TWI_DURABLE_FILE_CLAIM_H

#include <stdint.h>

/*
 * Returns the place of the claim. Returns -EBUSY if this process has the file or claims it at this
 * moment, -EMFILE if the process has 1,024 files open, and -ECHILD if an ancestor of this process
 * had a file open when it forked.
 */
int twi_claim_take(uint64_t device, uint64_t inode);
void twi_claim_drop(int place);

#endif
