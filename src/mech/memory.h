/* SPDX-License-Identifier: MIT */
/*
 * Where memory comes from: the user's allocator, or mmap.
 */
#ifndef TWI_MECH_MEMORY_H
#define TWI_MECH_MEMORY_H

#include <stddef.h>
#include <tickwheel/memory.h>

/* NULL sets the built-in allocator again. */
void twi_allocator_set(const struct tw_allocator *allocator);

/* The allocator of now; keep it to release by. Never NULL. */
const struct tw_allocator *twi_allocator(void);

/* Memory at a multiple of `align`, or NULL: also when the allocator does not keep to that. */
void *twi_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align);

/* The same, zeroed. */
void *twi_allocate_zeroed(const struct tw_allocator *allocator, size_t bytes, size_t align);

#endif
