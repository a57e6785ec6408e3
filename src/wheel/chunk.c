/* SPDX-License-Identifier: MIT */
#include "wheel/chunk.h"

#include "base/atomic.h"
#include "base/compiler.h"
#include "memory/memory.h"

/* The head of a block of chunks. It lies where the block's first chunk would be. */
struct twi_chunk_block {
	struct twi_chunk_block *next;
	size_t bytes;
};

enum {
	BLOCK_BYTES_MIN = 64 << 10,
	BLOCK_BYTES_MAX = 8 << 20,
	/*
	 * A new block has 1/BLOCK_PART of the pool's memory, so that there are few allocations and
	 * little waste.
	 */
	BLOCK_PART = 16,
};

void twi_chunk_pool_init(struct twi_chunk_pool *pool, const struct tw_allocator *allocator)
{
	*pool = (struct twi_chunk_pool){.allocator = allocator, .source = pool};
}

TWI_WORKER_UNCHECKED void twi_chunk_pool_done(struct twi_chunk_pool *pool)
{
	/* E70: in a forked child, acquires the blocks that the parent's worker has added. */
	struct twi_chunk_block *block = twi_load_acquire(&pool->blocks);

	while (block != NULL) {
		struct twi_chunk_block *next = block->next;

		twi_release(pool->allocator, block, block->bytes, TWI_CHUNK_BYTES);
		block = next;
	}
	/* RELAXED: no other thread uses the pool. */
	twi_store_relaxed(&pool->blocks, NULL);
	pool->free = NULL;
}

static TWI_WORKER_ONLY size_t next_block_bytes(const struct twi_chunk_pool *pool)
{
	uint64_t bytes = pool->bytes / BLOCK_PART / BLOCK_BYTES_MIN * BLOCK_BYTES_MIN;

	if (bytes < BLOCK_BYTES_MIN)
		return BLOCK_BYTES_MIN;
	return bytes > BLOCK_BYTES_MAX ? BLOCK_BYTES_MAX : (size_t)bytes;
}

static TWI_COLD TWI_WORKER_ONLY void pool_grow(struct twi_chunk_pool *pool)
{
	size_t bytes = next_block_bytes(pool);
	struct twi_chunk_block *block = twi_allocate(pool->allocator, bytes, TWI_CHUNK_BYTES);

	if (block == NULL)
		return;
	/* RELAXED: only the worker writes the list. */
	block->next = twi_load_relaxed(&pool->blocks);
	block->bytes = bytes;
	/* E70: releases the complete block, because a forked child may find and free it. */
	twi_store_release(&pool->blocks, block);
	pool->bytes += bytes;
	pool->block_count++;
	/* Adds the chunks in reverse order, so that the block's first chunk is taken first. */
	for (size_t at = bytes - TWI_CHUNK_BYTES; at > 0; at -= TWI_CHUNK_BYTES)
		twi_chunk_give(pool, (struct twi_chunk *)(void *)((char *)block + at));
}

struct twi_chunk *twi_chunk_take(struct twi_chunk_pool *pool)
{
	struct twi_chunk *chunk;

	pool = pool->source;
	if (TWI_UNLIKELY(pool->free == NULL))
		pool_grow(pool);
	chunk = pool->free;
	if (TWI_LIKELY(chunk != NULL)) {
		pool->free = chunk->next;
		chunk->count = 0;
	}
	return chunk;
}

void twi_chunk_give(struct twi_chunk_pool *pool, struct twi_chunk *chunk)
{
	pool = pool->source;
	chunk->next = pool->free;
	pool->free = chunk;
}
