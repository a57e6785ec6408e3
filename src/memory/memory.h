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

/*
 * Returns the current allocator, never NULL. The caller must keep the pointer, to free the memory
 * with the same allocator.
 */
const struct tw_allocator *twi_allocator(void);

/*
 * Returns memory aligned to `align`. Returns NULL if there is no memory, or if the allocator
 * returns memory with another alignment. The thread cannot be cancelled inside the allocator.
 */
void *twi_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align);

/* Gives memory back to its allocator. The thread cannot be cancelled inside it. */
void twi_release(const struct tw_allocator *allocator, void *memory, size_t bytes, size_t align);

/* Does the same as twi_allocate, and the memory is zeroed. */
void *twi_allocate_zeroed(const struct tw_allocator *allocator, size_t bytes, size_t align);

#endif
