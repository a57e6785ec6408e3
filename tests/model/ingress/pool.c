/* SPDX-License-Identifier: MIT */
/*
 * Blocks of memory that go through the depot or come from slabs. Each block has one owner at a
 * time, and the owner sees everything that the former owner wrote (E5, E6).
 *
 * The depot's stack is ConcurrencyKit's own code, which runs on the model's memory. Its fences
 * order only stores, or only loads, so the library's fences have to do the rest.
 *
 * Seen to fail with these defects:
 * - twi_depot_push() has no release fence;
 * - twi_depot_pop() has no acquire fence;
 * - the stack's pop does not raise its counter (ABA);
 * - slab_install() installs a slab relaxed, or twi_slab_carve() loads it relaxed.
 */
#include "memory/pool.h"
#include "memory/depot.h"
#include "memory/slab.h"
#include "model.h"

#include <tickwheel.h>

struct entry {
	ck_stack_entry_t link;
	unsigned value;
	bool owned;
};

static _Alignas(16) ck_stack_t stack;
static struct entry entries[4];
static struct twi_stock stocks[MODEL_FIBERS];

static void stack_begin(void)
{
	for (int i = 2; i >= 0; i--)
		twi_depot_push(&stack, &entries[i].link);
	entries[3].owned = true;
}

static struct entry *pop(void)
{
	ck_stack_entry_t *link = twi_depot_pop(&stack);
	struct entry *entry = TWI_CONTAINER_OF(link, struct entry, link);

	if (link == NULL)
		return NULL;
	MODEL_CHECK(!entry->owned);
	entry->owned = true;
	entry->value++;
	return entry;
}

static void push(struct entry *entry)
{
	if (entry == NULL)
		return;
	MODEL_CHECK(entry->value < 100);
	entry->owned = false;
	/*
	 * The last access is a read. Only a fence that orders reads keeps it before the next
	 * owner's write.
	 */
	MODEL_CHECK(entry->value < 100);
	twi_depot_push(&stack, &entry->link);
}

static void pop_one(void)
{
	(void)pop();
}

static void pop_and_return(void)
{
	push(pop());
}

/*
 * Pops two entries and pushes the first, while the second is still taken. If a pop on another
 * thread does not compare the counter, that pop does not notice that the head has changed meanwhile
 * (ABA).
 */
static void pop_two_return_first(void)
{
	struct entry *first = pop();

	(void)pop();
	push(first);
}

static void push_another(void)
{
	push(&entries[3]);
}

static void drain(void)
{
	unsigned owned = 0;

	while (pop() != NULL)
		;
	for (int i = 0; i < 4; i++)
		owned += entries[i].owned;
	MODEL_CHECK(owned == 4);
}

/* Sets up stocks whose magazines hold one block each. */
static void stock_begin(void)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++)
		twi_stock_init(&stocks[i], true);
	twi_pool_give(&stocks[0], twi_pool_take(&stocks[0]));
}

static void take_and_give(void)
{
	struct twi_stock *stock = &stocks[model_self()];
	unsigned char *block = twi_pool_take(stock);

	/* This is the part of a block that the pool never uses while the block is free. */
	for (unsigned i = 16; i < 48; i += 8)
		*(volatile uint64_t *)(void *)(block + i) = model_self();
	MODEL_CHECK(*(volatile uint64_t *)(void *)(block + 16) == model_self());
	twi_pool_give(stock, block);
}

static void take_and_give_twice(void)
{
	take_and_give();
	take_and_give();
}

/* Sets up a slab that has one run of blocks left. */
static void slab_begin(void)
{
	char *first;

	MODEL_CHECK(twi_slab_carve(&first) > 0);
	twi_store_relaxed(&twi_slab_table[0]->run_count, TWI_SLAB_RUNS - 1);
}

static void carve(void)
{
	char *first;
	uint32_t count = twi_slab_carve(&first);

	MODEL_CHECK(count == TWI_RUN_BLOCKS || count == TWI_RUN_BLOCKS - 1);
	for (uint32_t i = 0; i < count; i += TWI_RUN_BLOCKS / 2) {
		char *block = first + (size_t)i * TWI_BLOCK_BYTES;

		*(volatile uint64_t *)(void *)block = model_self();
		MODEL_CHECK(twi_block_at(twi_block_index(block)) == block);
	}
}

static void carve_twice(void)
{
	carve();
	carve();
}

/* Reserves memory. Spare slabs go through the stack of spare slabs. */
static void reserve(void)
{
	MODEL_CHECK(tw_memory_reserve(TWI_SLAB_BLOCKS) == 0);
}

MODEL_HARNESS(depot_aba, .proves = "if the head comes back during a pop, no entry gets two owners",
	      .setup = stack_begin, .thread = {pop_one, pop_two_return_first}, .finish = drain,
	      .preemptions = 3, .weak = 2, .random_runs = 2000);
MODEL_HARNESS(depot_push_pop, .proves = "pushes and pops of three threads lose and double no entry",
	      .setup = stack_begin, .thread = {pop_and_return, pop_and_return, push_another},
	      .finish = drain, .preemptions = 2, .weak = 2, .random_runs = 2000);
MODEL_HARNESS(pool_blocks, .proves = "a block of the pool has one owner at a time",
	      .setup = stock_begin, .thread = {take_and_give, take_and_give_twice},
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(slab_install, .proves = "two threads may exhaust a slab while a third one carves",
	      .setup = slab_begin, .thread = {carve, carve_twice, carve}, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(slab_reserve, .proves = "slabs may be reserved while other threads carve",
	      .setup = slab_begin, .thread = {carve_twice, reserve}, .preemptions = 2, .weak = 1,
	      .random_runs = 500);
