/* SPDX-License-Identifier: MIT */
/* Commits a batch of operations as one transaction. */
#ifndef TWI_DURABLE_FILE_COMMIT_H
#define TWI_DURABLE_FILE_COMMIT_H

#include "durable/file/file.h"

/*
 * Commits as `commit` of the store's interface does. kinds[i] is the file's number for the caller's
 * kind i.
 */
int twi_file_commit(struct twi_file *file, struct tw_durable_op *ops, size_t count, int64_t now_ns,
		    const uint32_t *kinds);

#endif
