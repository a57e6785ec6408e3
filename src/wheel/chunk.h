/* SPDX-License-Identifier: MIT */
/*
 * Chunks: a slot is a list of them. A chunk has 512 bytes and space for 61 slot entries.
 *
 * Each chunk belongs to the pool of one wheel. [worker], all of it. A fine wheel takes its chunks
 * from the outer wheel's pool. The pool allocates memory in blocks of many chunks, and frees it
 * when the wheel is destroyed. Until then it reuses the chunks. Another thread may fork while the
 * worker adds a block. The child later frees the wheel, so each block in the list must be complete.
 */
#ifndef TWI_WHEEL_CHUNK_H
#define TWI_WHEEL_CHUNK_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/memory.h>

enum {
	TWI_CHUNK_BYTES = 512,
	TWI_CHUNK_ENTRIES = 61,
};

/*
 * A pending timeout in its slot. Half of the due tick is enough to skip most entries that are not
 * due, without a look at their nodes.
 */
struct twi_entry {
	uint32_t block; /* index of the timeout's block */
	uint32_t due;   /* low half of the due tick */
};

struct twi_chunk {
	struct twi_chunk *next;
	struct twi_chunk *previous;
	uint32_t slot;  /* the number of the chunk's slot, or'ed with the pool's mark */
	uint32_t count; /* how many entries are in use: the first `count` */
	struct twi_entry entry[TWI_CHUNK_ENTRIES];
};

_Static_assert(sizeof(struct twi_chunk) == TWI_CHUNK_BYTES, "no padding");
_Static_assert(TWI_CHUNK_ENTRIES <= 61, "a place with a number from 61 on is no slot entry's");

struct twi_chunk_block;

struct twi_chunk_pool {
	const struct tw_allocator *allocator; /* [const] */
	/*
	 * [const] the pool that its chunks come from: itself or, in a fine wheel, the outer wheel's
	 */
	struct twi_chunk_pool *source;
	uint32_t mark; /* [const] a bit in the slot number of this pool's chunks, or 0 */
	struct twi_chunk *free TWI_WORKER_FIELD;                   /* [worker] */
	_Atomic(struct twi_chunk_block *) blocks TWI_WORKER_FIELD; /* [worker E70] */
	uint64_t bytes TWI_WORKER_FIELD;       /* [worker] bytes of all blocks */
	uint64_t block_count TWI_WORKER_FIELD; /* [worker] */
};

void twi_chunk_pool_init(struct twi_chunk_pool *pool, const struct tw_allocator *allocator);
void twi_chunk_pool_done(struct twi_chunk_pool *pool);

/* Returns an empty chunk, or NULL if there is no memory. */
TWI_WORKER_ONLY struct twi_chunk *twi_chunk_take(struct twi_chunk_pool *pool);
TWI_WORKER_ONLY void twi_chunk_give(struct twi_chunk_pool *pool, struct twi_chunk *chunk);

/*
 * Returns a node's place: the address of its chunk, with the entry's number in the low bits, which
 * are 0 in the address.
 */
static inline uintptr_t twi_place_of(struct twi_chunk *chunk, uint32_t number)
{
	return (uintptr_t)chunk | number;
}

static inline struct twi_chunk *twi_place_chunk(uintptr_t place)
{
	return (struct twi_chunk *)(place & ~(uintptr_t)(TWI_CHUNK_BYTES - 1));
}

static inline uint32_t twi_place_number(uintptr_t place)
{
	return (uint32_t)(place & (TWI_CHUNK_BYTES - 1));
}

#endif
