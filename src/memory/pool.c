/* SPDX-License-Identifier: MIT */
#include "memory/pool.h"

#include "base/test_point.h"
#include "memory/depot.h"

#include <string.h>

void (*twi_pool_taken)(void *block);

static TWI_CACHE_ALIGNED ck_stack_t depot = CK_STACK_INITIALIZER;

static struct twi_block *run_block(char *first, uint32_t number, uint32_t count)
{
	if (number >= count)
		return NULL;
	return (struct twi_block *)(void *)(first + (size_t)number * TWI_BLOCK_BYTES);
}

/*
 * Links the blocks of a newly carved run in address order. Their state words begin at generation 0,
 * which no handle has.
 */
static struct twi_block *run_chain(char *first, uint32_t count)
{
	memset(first, 0, (size_t)count * TWI_BLOCK_BYTES);
	for (uint32_t i = 0; i < count; i++) {
		struct twi_block *block = run_block(first, i, count);

		block->next = run_block(first, i + 1, count);
		block->ahead = run_block(first, i + TWI_BLOCK_AHEAD, count);
	}
	return run_block(first, 0, count);
}

static struct twi_block *depot_take(void)
{
	ck_stack_entry_t *entry = twi_depot_pop(&depot);

	return entry != NULL ? TWI_CONTAINER_OF(entry, struct twi_block, depot) : NULL;
}

static void depot_give(struct twi_block *magazine)
{
	TWI_TEST_POINT("depot:giving");
	if (magazine != NULL)
		twi_depot_push(&depot, &magazine->depot);
}

static struct twi_block *give_detach(struct twi_stock *stock)
{
	struct twi_block *magazine = stock->give;

	stock->give = NULL;
	stock->give_count = 0;
	return magazine;
}

void twi_stock_init(struct twi_stock *stock, bool keeps_nothing)
{
	*stock = (struct twi_stock){.magazine_blocks = keeps_nothing ? 1 : TWI_RUN_BLOCKS};
}

static struct twi_block *magazine_find(void)
{
	struct twi_block *magazine = depot_take();
	char *first;
	uint32_t count;

	if (magazine != NULL)
		return magazine;
	count = twi_slab_carve(&first);
	return count > 0 ? run_chain(first, count) : NULL;
}

/*
 * Leaves in the magazine only the block that the caller will take, and gives the others back to the
 * depot. Called for a stock that keeps nothing.
 */
static void magazine_cut(struct twi_block *magazine)
{
	depot_give(magazine->next);
	magazine->next = NULL;
	if (twi_pool_taken != NULL)
		twi_pool_taken(magazine);
}

TWI_COLD bool twi_stock_refill(struct twi_stock *stock)
{
	stock->take = give_detach(stock);
	if (stock->take != NULL)
		return true;
	TWI_TEST_POINT("pool:refill");
	stock->take = magazine_find();
	if (stock->take != NULL && stock->magazine_blocks == 1)
		magazine_cut(stock->take);
	return stock->take != NULL;
}

void twi_stock_retire(struct twi_stock *stock)
{
	struct twi_block *magazine = give_detach(stock);

	if (stock->take == NULL && stock->magazine_blocks > 1)
		stock->take = magazine;
	else
		depot_give(magazine);
}

void twi_stock_flush(struct twi_stock *stock)
{
	while (stock->warm_count > 0)
		twi_pool_give(stock, stock->warm[--stock->warm_count]);
	depot_give(stock->take);
	stock->take = NULL;
	depot_give(give_detach(stock));
}

void twi_pool_forget(struct twi_stock *own)
{
	ck_stack_init(&depot);
	twi_stock_init(own, own->magazine_blocks == 1);
}

/* Links the blocks of an array in its order. The last block has no successor yet. */
static void row_chain(void *const *row, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct twi_block *block = row[i];

		block->next = i + 1 < count ? row[i + 1] : NULL;
		block->ahead = i + TWI_BLOCK_AHEAD < count ? row[i + TWI_BLOCK_AHEAD] : NULL;
	}
}

/*
 * Updates `recent` and the `ahead` pointers, as twi_pool_give does for one block. Blocks that were
 * given earlier then point ahead to blocks of this array.
 */
static void row_remember(struct twi_stock *stock, void *const *row, size_t count)
{
	uint32_t given = stock->give_count;

	for (size_t i = 0; i < count && i < TWI_BLOCK_AHEAD; i++)
		if (given + i >= TWI_BLOCK_AHEAD)
			stock->recent[(given + i) % TWI_BLOCK_AHEAD]->ahead = row[i];
	for (size_t i = count < TWI_BLOCK_AHEAD ? 0 : count - TWI_BLOCK_AHEAD; i < count; i++)
		stock->recent[(given + i) % TWI_BLOCK_AHEAD] = row[i];
}

/* Gives an array of blocks, which must fit into the magazine `give`. */
static void row_give(struct twi_stock *stock, void *const *row, size_t count)
{
	row_chain(row, count);
	row_remember(stock, row, count);
	if (stock->give == NULL)
		stock->give = row[0];
	else
		stock->give_last->next = row[0];
	stock->give_last = row[count - 1];
	stock->give_count += (uint32_t)count;
	if (stock->give_count == stock->magazine_blocks)
		twi_stock_retire(stock);
}

void twi_pool_give_many_warm(struct twi_stock *stock, void *const *memory, size_t count)
{
	for (; count > 0 && twi_pool_warm_room(stock); memory++, count--)
		twi_pool_put_warm(stock, *memory);
	while (count > 0) {
		size_t room = stock->magazine_blocks - stock->give_count;
		size_t part = count < room ? count : room;

		row_give(stock, memory, part);
		memory += part;
		count -= part;
	}
}
