/* SPDX-License-Identifier: MIT */
/*
 * Takes blocks until the pool carves a new run of blocks from a slab. Then it has taken all blocks
 * that were free. It marks each block in a map, and so notices a block that the pool has given out
 * twice.
 */
#include "account.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory.h"
#include "memory/pool.h"
#include "memory/slab.h"
#include "thread/fork.h"
#include "thread/thread.h"

static uint32_t slab_count(void)
{
	return (uint32_t)(twi_slab_bytes() / TWI_SLAB_BYTES);
}

/*
 * Returns how many blocks were carved. The first block of a slab is its head, which does not count.
 */
static uint64_t carved_of(const struct twi_slab *slab)
{
	uint64_t runs = slab != NULL ? twi_load_relaxed(&slab->run_count) : 0;

	if (runs > TWI_SLAB_RUNS)
		runs = TWI_SLAB_RUNS;
	return runs > 0 ? runs * TWI_RUN_BLOCKS - 1 : 0;
}

static uint64_t carved(void)
{
	uint64_t count = 0;

	for (uint32_t index = 0; index < slab_count(); index++)
		count += carved_of(twi_load_acquire(&twi_slab_table[index]));
	return count;
}

/* Returns a free block, or NULL when only blocks of a new run are left. */
static void *block_take(struct twi_stock *stock, uint64_t all)
{
	bool refills = stock->take == NULL;
	void *block = twi_pool_take(stock);

	return refills && carved() != all ? NULL : block;
}

static void fail(const char *what, uint64_t all, uint64_t found)
{
	fprintf(stderr, "account of blocks: %s: %llu carved, %llu free\n", what,
		(unsigned long long)all, (unsigned long long)found);
	fflush(NULL);
	(void)syscall(SYS_exit_group, ACCOUNT_EXIT_CODE);
}

static void free_blocks_count(bool *seen, uint64_t all)
{
	struct twi_stock stock;
	uint64_t found = 0;
	void *block;

	twi_stock_init(&stock, false);
	while ((block = block_take(&stock, all)) != NULL) {
		if (!twi_slab_has(block) || seen[twi_block_index(block)])
			fail("a block is free twice", all, found);
		seen[twi_block_index(block)] = true;
		found++;
	}
	if (found != all)
		fail("blocks have leaked", all, found);
}

void account_judge(void)
{
	uint64_t all = carved();
	bool *seen;

	if (twi_forked() || !twi_thread_alone() || all == 0)
		return;
	if (account_engines != 0 && account_engines() != 0)
		return;
	seen = calloc((size_t)slab_count() * TWI_SLAB_BLOCKS, sizeof *seen);
	if (seen == NULL)
		return;
	twi_allocator_set(NULL);
	twi_thread_release(&twi_thread_self);
	free_blocks_count(seen, all);
	free(seen);
	if (getenv("TESTS_ACCOUNT_TOLD") != NULL)
		fprintf(stderr, "account of blocks: even, %llu\n", (unsigned long long)all);
}

void account_begin(void)
{
	(void)atexit(account_judge);
}
