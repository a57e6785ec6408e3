/* SPDX-License-Identifier: MIT */
#include "mech/pool.h"

#include "base/test_point.h"
#include "mech/depot.h"

#include <string.h>

static TWI_CACHE_ALIGNED ck_stack_t depot = CK_STACK_INITIALIZER;

static struct twi_block *run_block(char *first, uint32_t number, uint32_t count)
{
	if (number >= count)
		return NULL;
	return (struct twi_block *)(void *)(first + (size_t)number * TWI_BLOCK_BYTES);
}

/* Chains a fresh run in address order. Its state words begin at generation 0: no handle names them.
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

/* All but one block goes back. */
static void magazine_cut(struct twi_block *magazine)
{
	depot_give(magazine->next);
	magazine->next = NULL;
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
