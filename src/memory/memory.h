/* SPDX-License-Identifier: MIT */
/*
 * The source of memory: the user's allocator, or mmap.
 */
#ifndef TWI_MEMORY_MEMORY_H
#define TWI_MEMORY_MEMORY_H

#include <stddef.h>
#include <tickwheel/memory.h>

/* Sets the allocator. NULL sets the built-in one again. */
void twi_allocator_set(const struct tw_allocator *allocator);

/* Returns the current allocator, never NULL. The caller should keep it to release by. */
const struct tw_allocator *twi_allocator(void);

/* Returns memory at a multiple of `align`, or NULL, also if the allocator does not keep to that. */
void *twi_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align);

/* The same, but the memory is zeroed. */
void *twi_allocate_zeroed(const struct tw_allocator *allocator, size_t bytes, size_t align);

#endif
