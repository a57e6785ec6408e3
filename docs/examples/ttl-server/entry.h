/* SPDX-License-Identifier: MIT */
/* A key, its value and its deadline, as the table has them. Only the files of the store include
 * this. */
#ifndef TTL_SERVER_ENTRY_H
#define TTL_SERVER_ENTRY_H

/* If uthash has no memory for an entry, it clears the entry's `store` instead of ending the
 * program. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(entry) ((entry)->store = NULL)

#include "store.h"

#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	struct store *store;
	struct alarm *expiry;
	int64_t deadline_ns;
	char *value;
	size_t value_bytes;
	size_t key_bytes;
	char key[];
};

#endif
