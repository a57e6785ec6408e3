/* SPDX-License-Identifier: MIT */
/* A batch of operations as one transaction. */
#ifndef TWI_DURABLE_FILE_COMMIT_H
#define TWI_DURABLE_FILE_COMMIT_H

#include "durable/file/file.h"

/* As `commit` of the store's interface. `kinds` has the file's number for each of the caller's. */
int twi_file_commit(struct twi_file *file, struct tw_durable_op *ops, size_t count, int64_t now_ns,
		    const uint32_t *kinds);

#endif
