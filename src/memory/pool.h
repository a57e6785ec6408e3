/* SPDX-License-Identifier: MIT */
/*
 * Blocks of 64 bytes that any thread may take and any thread may give back, without locks.
 *
 * Each thread has a stock of two magazines (chains of blocks): it takes from one and gives to the
 * other. A full magazine goes to the depot. An empty stock is filled from there, or with a run off
 * a slab (the two-magazine scheme is Bonwick's, "Magazines and Vmem", 2001). The blocks of a
 * magazine keep the order in which they were given, so timeouts that one thread schedules in
 * sequence often lie next to each other.
 *
 * Ownership. A stock and the blocks in it belong to its thread. A magazine on the depot belongs to
 * no thread; its blocks come with the entry (E5). A taken block belongs to the thread that took it.
 *
 * Progress. take and give are wait-free if the stock has a block or a free place, otherwise
 * lock-free.
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
	 * A block's cache line is prefetched this many takes ahead, because it comes from another
	 * core.
	 */
	TWI_BLOCK_AHEAD = 8,
	/*
	 * The worker prefetches the line this many blocks on by its address, before it has read a
	 * link to it.
	 */
	TWI_BLOCK_GUESS = 4,
	/* This many of the blocks that a thread gives back itself are kept for its next takes. */
	TWI_BLOCK_WARM = 16,
};

/*
 * A free block. The memory between its links still holds the block's former contents, its state
 * word among them.
 */
struct twi_block {
	struct twi_block *next;
	ck_stack_entry_t depot; /* used in a magazine's first block */
	char rest[TWI_BLOCK_BYTES - 3 * sizeof(void *)];
	struct twi_block *ahead; /* TWI_BLOCK_AHEAD blocks further in its magazine, or NULL */
};

_Static_assert(sizeof(struct twi_block) == TWI_BLOCK_BYTES, "as large as what it was");

/* [producer] all fields: they are the thread's own. */
struct twi_stock {
	struct twi_block *take;
	struct twi_block *give;
	struct twi_block *give_last;
	uint32_t give_count;
	uint32_t magazine_blocks; /* `give` is full at this count; 1: the stock keeps no blocks */
	struct twi_block *recent[TWI_BLOCK_AHEAD]; /* the blocks given last */
	struct twi_block *warm[TWI_BLOCK_WARM];    /* a stack of blocks that it gave back itself */
	uint32_t warm_count;
};

/*
 * Blocks that one thread schedules in sequence mostly lie next to each other. If another core has
 * written a chain, each link is a miss. So the line a few blocks on is a good guess, and a wrong
 * one does no harm.
 */
static inline void twi_pool_guess_ahead(const void *block)
{
	TWI_PREFETCH_WRITE((const char *)block + TWI_BLOCK_GUESS * TWI_BLOCK_BYTES);
}

/*
 * [const] after load. A stock that keeps nothing calls this with each block that it is about to
 * return. NULL: no call.
 */
extern void (*twi_pool_taken)(void *block);

/* Puts a magazine into an empty `take`. False if there is no memory. */
bool twi_stock_refill(struct twi_stock *stock);

/* Moves a full `give` to `take` if that is empty, otherwise to the depot. */
void twi_stock_retire(struct twi_stock *stock);

/* Gives all blocks of the stock to the depot. */
void twi_stock_flush(struct twi_stock *stock);

/*
 * Called in a forked child, where only this thread uses the library. Afterwards the pool has no
 * free blocks; timeout/recovery.h finds out which ones are free. `own` is the stock of this thread,
 * attached or not.
 */
void twi_pool_forget(struct twi_stock *own);

/*
 * Makes an empty stock. A stock that keeps nothing takes and gives single blocks. It is for a
 * thread that could exit without notifying the library.
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

/* There must be a warm block. */
static inline void *twi_pool_get_warm(struct twi_stock *stock)
{
	return stock->warm[--stock->warm_count];
}

/* There must be a block at hand (twi_pool_ready). */
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

/* Returns whether the thread has a block at hand. */
static inline bool twi_pool_ready(const struct twi_stock *stock)
{
	return stock->warm_count > 0 || stock->take != NULL;
}

/*
 * take_warm and give_warm are for a thread that both takes and gives: the block given last is the
 * next one taken.
 */
static inline void *twi_pool_take_warm(struct twi_stock *stock)
{
	if (TWI_LIKELY(stock->warm_count > 0))
		return twi_pool_get_warm(stock);
	return twi_pool_take(stock);
}

/* Makes sure that take_warm has a block to return. False if there is no memory. */
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

/* There must be a free place (twi_pool_warm_room). */
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

/* pool.c: as give_warm for each block. From now on the blocks lie next to each other. */
void twi_pool_give_many_warm(struct twi_stock *stock, void *const *memory, size_t count);

#endif
