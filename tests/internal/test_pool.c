/* SPDX-License-Identifier: MIT */
/*
 * Gives blocks back to a stock: to one stock singly, to another as rows of several blocks in one
 * call. Both stocks must then have the same warm blocks and the same magazines, in the same order
 * and with the same prefetched blocks.
 *
 * Seen to fail with these defects: a row is not linked to the blocks given before it; the end of a
 * row is forgotten; the last blocks of a row are not prefetched for the next row; a magazine gets
 * more blocks than it may hold; no block is kept warm; a flush leaves the warm blocks, or one of
 * the two magazines, in the stock.
 */
#include "check.h"
#include "memory/pool.h"
#include "random.h"

#include <string.h>

enum {
	/*
	 * The number of warm blocks, plus the blocks of the magazine to take from, plus most of
	 * those of the magazine to give to. So no block goes to the depot.
	 */
	BLOCKS = TWI_BLOCK_WARM + 2 * TWI_RUN_BLOCKS - 1,
	ROUNDS = 50,
};

/* One of the two stocks, and the blocks that it gets. */
struct side {
	struct twi_stock stock;
	_Alignas(TWI_BLOCK_BYTES) struct twi_block block[BLOCKS];
};

static struct side singly, in_rows;

static long index_of(const struct side *side, const struct twi_block *block)
{
	return block == NULL ? -1 : (long)(block - side->block);
}

static void side_begin(struct side *side, bool keeps_nothing)
{
	memset(side, 0, sizeof *side);
	twi_stock_init(&side->stock, keeps_nothing);
}

static void give_singly(size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
		twi_pool_give_warm(&singly.stock, &singly.block[i]);
}

static void give_a_row(size_t from, size_t count)
{
	void *row[BLOCKS];

	for (size_t i = 0; i < count; i++)
		row[i] = &in_rows.block[from + i];
	twi_pool_give_many_warm(&in_rows.stock, row, count);
}

/*
 * Compares two lists of blocks: in each block, the next block and the one to prefetch must be the
 * same.
 */
static void chains_check(const struct twi_block *a, const struct twi_block *b)
{
	for (; a != NULL && b != NULL; a = a->next, b = b->next) {
		check_int(index_of(&in_rows, b), index_of(&singly, a));
		check_int(index_of(&in_rows, b->ahead), index_of(&singly, a->ahead));
	}
	check_true(a == NULL && b == NULL);
}

static void sides_check(void)
{
	const struct twi_stock *a = &singly.stock;
	const struct twi_stock *b = &in_rows.stock;

	check_int(b->warm_count, a->warm_count);
	for (uint32_t i = 0; i < a->warm_count; i++)
		check_int(index_of(&in_rows, b->warm[i]), index_of(&singly, a->warm[i]));
	chains_check(a->take, b->take);
	chains_check(a->give, b->give);
	check_int(b->give_count, a->give_count);
	for (uint32_t i = 0; i < TWI_BLOCK_AHEAD && i < a->give_count; i++)
		check_int(index_of(&in_rows, b->recent[i]), index_of(&singly, a->recent[i]));
	if (a->give_count > 0)
		check_int(index_of(&in_rows, b->give_last), index_of(&singly, a->give_last));
}

/* Gives rows of up to `most` blocks until all blocks are given, and compares. */
static void rows_check(struct random *random, size_t most)
{
	size_t given = 0;

	side_begin(&singly, false);
	side_begin(&in_rows, false);
	while (given < BLOCKS) {
		size_t count = (size_t)random_below(random, most) + 1;

		if (count > BLOCKS - given)
			count = BLOCKS - given;
		give_singly(given, count);
		give_a_row(given, count);
		given += count;
		sides_check();
	}
	check_true(singly.stock.take != NULL);
	check_int(singly.stock.give_count, TWI_RUN_BLOCKS - 1);
}

Test(pool, a_row_is_given_as_by_single_calls)
{
	struct random random = {.state = 1};

	for (int round = 0; round < ROUNDS; round++)
		rows_check(&random, round % 2 == 0 ? 40 : TWI_BLOCK_AHEAD + 2);
	rows_check(&random, BLOCKS);
}

/* A stock that keeps nothing must give the blocks of a row to the depot one by one. */
Test(pool, stock_that_keeps_nothing_returns_a_row_one_by_one)
{
	struct twi_stock other;

	side_begin(&in_rows, true);
	give_a_row(0, 5);
	check_int(in_rows.stock.warm_count, 0);
	check_true(in_rows.stock.take == NULL && in_rows.stock.give == NULL);
	twi_stock_init(&other, false);
	for (int i = 4; i >= 0; i--) {
		check_int(index_of(&in_rows, twi_pool_take(&other)), i);
		check_true(other.take == NULL);
	}
}

/*
 * Checks that a flush moves each block of the stock to the depot exactly once, so that a thread
 * that ends loses no block.
 */
static void flush_check(size_t given)
{
	bool seen[BLOCKS] = {false};
	struct twi_stock other;

	side_begin(&singly, false);
	give_singly(0, given);
	twi_stock_flush(&singly.stock);
	check_int(singly.stock.warm_count, 0);
	check_true(singly.stock.take == NULL && singly.stock.give == NULL);
	twi_stock_init(&other, false);
	for (size_t i = 0; i < given; i++) {
		long index = index_of(&singly, twi_pool_take(&other));

		check_at_least(index, 0);
		check_at_most(index, (long)given - 1);
		check_true(!seen[index]);
		seen[index] = true;
	}
	check_true(other.take == NULL);
}

Test(pool, a_flush_gives_back_all_that_a_stock_has)
{
	static const size_t given[] = {1,
				       TWI_BLOCK_WARM,
				       TWI_BLOCK_WARM + 1,
				       TWI_BLOCK_WARM + TWI_RUN_BLOCKS,
				       TWI_BLOCK_WARM + TWI_RUN_BLOCKS + 1,
				       BLOCKS};

	for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
		flush_check(given[i]);
}
