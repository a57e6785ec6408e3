/* SPDX-License-Identifier: MIT */
/*
 * Blocks of 64 bytes that any thread may take and any thread may give back, without locks.
 *
 * Each thread has a stock of two magazines (chains of blocks): it takes blocks from one and gives
 * blocks to the other. When the second magazine is full, it becomes the first if that one is empty.
 * Otherwise it goes to the depot. If a stock is empty, its thread takes a magazine from the depot,
 * or carves a run of blocks off a slab. (The two-magazine scheme is Bonwick's, "Magazines and
 * Vmem", 2001.) The blocks of a magazine keep the order in which they were given. So timeouts that
 * one thread schedules in sequence often lie next to each other.
 *
 * Ownership. A stock and the blocks in it belong to its thread. A magazine on the depot belongs to
 * no thread. The thread that pops a magazine's first block owns all blocks of the magazine (E5). A
 * taken block belongs to the thread that took it.
 *
 * Progress. take is wait-free if the stock has a block, give if the stock has space. Otherwise both
 * are lock-free.
 */
#ifndef TWI_MEMORY_POOL_H
#define TWI_MEMORY_POOL_H

#include "base/compiler.h"
#include "memory/slab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/*
	 * A block's cache line is prefetched this many takes ahead, because it may have to come
	 * from another core.
	 */
	TWI_BLOCK_AHEAD = 8,
	/*
	 * The worker prefetches the line that lies this many blocks further in memory
	 * (twi_pool_guess_ahead).
	 */
	TWI_BLOCK_GUESS = 4,
	/*
	 * A thread keeps up to this many blocks that it has given back itself, for its next takes.
	 */
	TWI_BLOCK_WARM = 16,
};

/*
 * A free block. The memory between its links keeps its contents. The state word is there, and must
 * keep its generation.
 */
struct twi_block {
	struct twi_block *next;
	ck_stack_entry_t depot; /* used only in a magazine's first block */
	char rest[TWI_BLOCK_BYTES - 3 * sizeof(void *)];
	struct twi_block *ahead; /* TWI_BLOCK_AHEAD blocks further in its magazine, or NULL */
};

_Static_assert(sizeof(struct twi_block) == TWI_BLOCK_BYTES, "as large as what it was");

/* [producer] all fields: only the stock's thread uses them. */
struct twi_stock {
	struct twi_block *take;
	struct twi_block *give;
	struct twi_block *give_last;
	uint32_t give_count;
	/* number of blocks that fill `give`, or 1 if the stock keeps none */
	uint32_t magazine_blocks;
	struct twi_block *recent[TWI_BLOCK_AHEAD]; /* the last blocks put into `give` */
	struct twi_block *warm[TWI_BLOCK_WARM];    /* a stack of blocks that the thread gave back */
	uint32_t warm_count;
};

/*
 * Prefetches the block that lies a few blocks further in memory. If another core has written a
 * chain of blocks, reading each link is a cache miss, so a prefetch by way of the links would come
 * too late. But blocks that one thread schedules in sequence mostly lie next to each other. So the
 * guess is mostly right, and a wrong one does no harm.
 */
static inline void twi_pool_guess_ahead(const void *block)
{
	TWI_PREFETCH_WRITE((const char *)block + TWI_BLOCK_GUESS * TWI_BLOCK_BYTES);
}

/*
 * [const] after load. If it is not NULL, a stock that keeps nothing calls it with each block that
 * twi_pool_take is about to return.
 */
extern void (*twi_pool_taken)(void *block);

/* Puts a magazine into the empty `take`. Returns false if there is no memory. */
bool twi_stock_refill(struct twi_stock *stock);

/* Moves a full `give` to `take` if `take` is empty, otherwise to the depot. */
void twi_stock_retire(struct twi_stock *stock);

/* Gives all blocks of the stock to the depot. */
void twi_stock_flush(struct twi_stock *stock);

/*
 * Empties the depot and `own`, the stock of the calling thread, attached or not. Called in a forked
 * child, where only this thread uses the library. Afterwards the fork recovery (timeout/recovery.h)
 * finds the free blocks.
 */
void twi_pool_forget(struct twi_stock *own);

/*
 * Makes an empty stock. A stock that keeps nothing takes single blocks from the depot, and gives
 * them back singly. It is for a thread that could exit without notifying the library: blocks in its
 * stock would be lost.
 */
void twi_stock_init(struct twi_stock *stock, bool keeps_nothing);

/* Returns a block, or NULL if there is no memory. */
static inline void *twi_pool_take(struct twi_stock *stock)
{
	struct twi_block *block = stock->take;

	if (TWI_UNLIKELY(block == NULL)) {
		if (!twi_stock_refill(stock))
			return NULL;
		block = stock->take;
	}
	stock->take = block->next;
	TWI_PREFETCH_WRITE(block->ahead);
	return block;
}

static inline void twi_pool_give(struct twi_stock *stock, void *memory)
{
	struct twi_block *block = memory;
	struct twi_block **recent = &stock->recent[stock->give_count % TWI_BLOCK_AHEAD];

	block->next = NULL;
	block->ahead = NULL;
	if (stock->give == NULL)
		stock->give = block;
	else
		stock->give_last->next = block;
	if (stock->give_count >= TWI_BLOCK_AHEAD)
		(*recent)->ahead = block;
	*recent = block;
	stock->give_last = block;
	if (TWI_UNLIKELY(++stock->give_count == stock->magazine_blocks))
		twi_stock_retire(stock);
}

/* Takes a warm block. There must be one. */
static inline void *twi_pool_get_warm(struct twi_stock *stock)
{
	return stock->warm[--stock->warm_count];
}

/* Takes a block. The stock must have one (twi_pool_ready). */
static inline void *twi_pool_take_ready(struct twi_stock *stock)
{
	struct twi_block *block;

	if (TWI_LIKELY(stock->warm_count > 0))
		return twi_pool_get_warm(stock);
	block = stock->take;
	stock->take = block->next;
	TWI_PREFETCH_WRITE(block->ahead);
	return block;
}

/* Returns whether the stock has a block. */
static inline bool twi_pool_ready(const struct twi_stock *stock)
{
	return stock->warm_count > 0 || stock->take != NULL;
}

/*
 * Takes a block, if possible the one that the thread gave last, which is still in its cache.
 * take_warm and give_warm are for a thread that both takes and gives.
 */
static inline void *twi_pool_take_warm(struct twi_stock *stock)
{
	if (TWI_LIKELY(stock->warm_count > 0))
		return twi_pool_get_warm(stock);
	return twi_pool_take(stock);
}

/* Makes sure that take_warm has a block to return. Returns false if there is no memory. */
static inline bool twi_pool_stocked(struct twi_stock *stock)
{
	return TWI_LIKELY(twi_pool_ready(stock)) || twi_stock_refill(stock);
}

/* Returns the block that take_warm returns next. There must be one (twi_pool_stocked). */
static inline void *twi_pool_next(const struct twi_stock *stock)
{
	return stock->warm_count > 0 ? stock->warm[stock->warm_count - 1] : stock->take;
}

static inline bool twi_pool_warm_room(const struct twi_stock *stock)
{
	return stock->warm_count < TWI_BLOCK_WARM && stock->magazine_blocks > 1;
}

/* Puts a block on the stack of warm blocks, which must have space (twi_pool_warm_room). */
static inline void twi_pool_put_warm(struct twi_stock *stock, void *memory)
{
	stock->warm[stock->warm_count++] = memory;
}

static inline void twi_pool_give_warm(struct twi_stock *stock, void *memory)
{
	if (TWI_LIKELY(twi_pool_warm_room(stock)))
		twi_pool_put_warm(stock, memory);
	else
		twi_pool_give(stock, memory);
}

/*
 * pool.c: does the same as give_warm for each block. Blocks that go to `give` keep the order of the
 * array.
 */
void twi_pool_give_many_warm(struct twi_stock *stock, void *const *memory, size_t count);

#endif
