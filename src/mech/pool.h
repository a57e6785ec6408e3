/* SPDX-License-Identifier: MIT */
/*
 * Blocks of 64 bytes, from any thread to any thread, without locks.
 *
 * Each thread has a stock of two magazines (chains of blocks): one it takes from, one it gives to.
 * A full magazine goes to the depot, an empty stock is filled from there, or with a run off a slab
 * (the two-magazine scheme is Bonwick's, "Magazines and Vmem", 2001). The blocks of a magazine keep
 * the order in which they were given: what one thread scheduled in sequence lies side by side.
 *
 * Who owns what. A stock and what is in it: its thread. A magazine on the depot: nobody; its blocks
 * come with the entry (E5). A taken block: the taker.
 *
 * Progress. take and give are wait-free while the stock serves, else lock-free.
 */
#ifndef TWI_MECH_POOL_H
#define TWI_MECH_POOL_H

#include "base/compiler.h"
#include "mech/slab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* A block's line is asked for this many takes ahead: it comes from another core. */
	TWI_BLOCK_AHEAD = 8,
	/* So far ahead the worker asks for a line by its address, before a link has named it. */
	TWI_BLOCK_GUESS = 4,
	/* So many blocks that a thread gives back itself wait for its next takes. */
	TWI_BLOCK_WARM = 16,
};

/* A block while it is free. What lies between belongs to what it was, its state word among it. */
struct twi_block {
	struct twi_block *next;
	ck_stack_entry_t depot; /* of a magazine's first block */
	char rest[TWI_BLOCK_BYTES - 3 * sizeof(void *)];
	struct twi_block *ahead; /* TWI_BLOCK_AHEAD blocks further in its magazine, or NULL */
};

_Static_assert(sizeof(struct twi_block) == TWI_BLOCK_BYTES, "as large as what it was");

/* [producer] all of it: its thread's alone. */
struct twi_stock {
	struct twi_block *take;
	struct twi_block *give;
	struct twi_block *give_last;
	uint32_t give_count;
	uint32_t magazine_blocks; /* when `give` is full; 1: the stock keeps nothing */
	struct twi_block *recent[TWI_BLOCK_AHEAD]; /* the last ones given */
	struct twi_block *warm[TWI_BLOCK_WARM];    /* a stack: the thread's own, back at once */
	uint32_t warm_count;
};

/*
 * What one thread schedules in sequence lies side by side, mostly. A chain that another core has
 * written is a miss per link; the line a few blocks on is a good guess, and a wrong one harmless.
 */
static inline void twi_pool_guess_ahead(const void *block)
{
	TWI_PREFETCH_WRITE((const char *)block + TWI_BLOCK_GUESS * TWI_BLOCK_BYTES);
}

/*
 * [const] after load. Called with each block that a stock which keeps nothing is about to hand out; NULL:
 * nobody asks.
 */
extern void (*twi_pool_taken)(void *block);

/* Puts a magazine into an empty `take`. False: no memory. */
bool twi_stock_refill(struct twi_stock *stock);

/* Moves a full `give` to where it serves next. */
void twi_stock_retire(struct twi_stock *stock);

/* Gives all of it to the depot. */
void twi_stock_flush(struct twi_stock *stock);

/*
 * In a forked child, where this thread alone uses the library: no block is free any more. Which are
 * is for others to find out (timeout/heritage.h). `own`: the stock of this thread, attached or not.
 */
void twi_pool_forget(struct twi_stock *own);

/*
 * An empty stock begins. One that keeps nothing takes and gives block by block: for a thread whose
 * end nobody would tell.
 */
void twi_stock_init(struct twi_stock *stock, bool keeps_nothing);

/* A block, or NULL when there is no memory. */
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

/* Where there is one. */
static inline void *twi_pool_get_warm(struct twi_stock *stock)
{
	return stock->warm[--stock->warm_count];
}

/* Where one is at hand. */
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

/* Whether the thread has a block at hand. */
static inline bool twi_pool_ready(const struct twi_stock *stock)
{
	return stock->warm_count > 0 || stock->take != NULL;
}

/* As take and give, for a thread that does both: the last one given is the next one taken. */
static inline void *twi_pool_take_warm(struct twi_stock *stock)
{
	if (TWI_LIKELY(stock->warm_count > 0))
		return twi_pool_get_warm(stock);
	return twi_pool_take(stock);
}

static inline bool twi_pool_warm_room(const struct twi_stock *stock)
{
	return stock->warm_count < TWI_BLOCK_WARM && stock->magazine_blocks > 1;
}

/* Where there is room. */
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

/* pool.c: as give_warm for each of them, which lie side by side from now on. */
void twi_pool_give_many_warm(struct twi_stock *stock, void *const *memory, size_t count);

#endif
