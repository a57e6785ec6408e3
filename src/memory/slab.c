/* SPDX-License-Identifier: MIT */
#include "memory/slab.h"

#include "base/test_point.h"
#include "memory/depot.h"
#include "memory/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct twi_slab) <= TWI_BLOCK_BYTES, "the head fits its block");

_Atomic(struct twi_slab *) twi_slab_table[TWI_SLABS_MAX];

enum {
	/*
	 * One more slab is reserved, because the blocks in the stocks of other threads, and in the
	 * runs that they have carved, may not be available to the caller.
	 */
	SLABS_UNDER_WAY = 1,
};

static _Atomic(struct twi_slab *) current_slab;   /* [atomic E6] */
static _Atomic uint32_t slab_count;               /* [atomic] slabs that exist or are being made */
static _Atomic uint32_t next_index;               /* [atomic] */
static _Atomic uint32_t slab_cap = TWI_SLABS_MAX; /* [atomic] */
static _Alignas(16) ck_stack_t spare_slabs = CK_STACK_INITIALIZER;

/*
 * Counts one more slab before it is made. Returns false if the cap is reached. RELAXED: no other
 * data is read because of these numbers.
 */
static bool count_take(void)
{
	uint32_t count = twi_load_relaxed(&slab_count);

	do {
		if (count >= twi_load_relaxed(&slab_cap))
			return false;
	} while (!twi_cas_relaxed(&slab_count, &count, count + 1));
	return true;
}

static struct twi_slab *slab_allocate(void)
{
	return twi_allocate(twi_allocator(), TWI_SLAB_BYTES, TWI_SLAB_BYTES);
}

/*
 * Advises the kernel to use a huge page, except for the first slab. A process that needs a second
 * slab will probably fill it. Then one huge page costs less than 512 page faults.
 */
static void advise_huge(struct twi_slab *slab, uint32_t index)
{
	if (index > 0)
		(void)madvise(slab, TWI_SLAB_BYTES, MADV_HUGEPAGE);
}

static TWI_COLD struct twi_slab *slab_make(void)
{
	struct twi_slab *slab;
	uint32_t index;

	if (!count_take())
		return NULL;
	slab = slab_allocate();
	if (slab == NULL) {
		/* RELAXED: as in count_take, whose count this takes back. */
		(void)twi_fetch_add_relaxed(&slab_count, (uint32_t)-1);
		return NULL;
	}
	/* RELAXED: the index must only be unique. */
	index = twi_fetch_add_relaxed(&next_index, 1);
	advise_huge(slab, index);
	slab->index = index;
	slab->inherited_count = 0;
	/* RELAXED: this number is published with the slab. */
	twi_store_relaxed(&slab->run_count, 0);
	/*
	 * E70: pairs with slab_at() in a forked child, which must find only complete heads. Other
	 * threads get the slab by other edges: slab_install() publishes the current slab, and the
	 * stack publishes the spare slabs.
	 */
	twi_store_release(&twi_slab_table[index], slab);
	return slab;
}

/* Takes a spare slab. E5: acquires the writes of the thread that made it. */
static struct twi_slab *slab_spare(void)
{
	ck_stack_entry_t *entry = twi_depot_pop(&spare_slabs);

	return entry != NULL ? TWI_CONTAINER_OF(entry, struct twi_slab, spare) : NULL;
}

/*
 * Replaces `full` as the current slab, unless another thread has already done so. Returns false if
 * there is no memory.
 */
static bool slab_install(struct twi_slab *full)
{
	struct twi_slab *fresh = slab_spare();

	if (fresh == NULL)
		fresh = slab_make();
	if (fresh == NULL)
		return twi_load_relaxed(&current_slab) !=
		       full; /* RELAXED: the pointer is compared, not followed */
	TWI_TEST_POINT("slab:installing");
	/*
	 * E6: pairs with twi_slab_carve(). Publishes the slab's head. Otherwise a thread could
	 * carve a run off the slab and not see its index.
	 */
	if (!twi_cas_release(&current_slab, &full, fresh))
		twi_depot_push(&spare_slabs, &fresh->spare);
	return true;
}

/*
 * Carves a run off the slab. Returns its number of blocks, or 0 if the slab is used up. RELAXED:
 * the counter decides which thread gets a run, and no other thread uses the run's memory.
 */
static uint32_t run_carve(struct twi_slab *slab, char **ret_first)
{
	uint32_t run;

	if (slab == NULL || twi_load_relaxed(&slab->run_count) >= TWI_SLAB_RUNS)
		return 0;
	run = twi_fetch_add_relaxed(&slab->run_count, 1);
	if (run >= TWI_SLAB_RUNS)
		return 0;
	*ret_first = (char *)slab + (size_t)run * TWI_RUN_BLOCKS * TWI_BLOCK_BYTES;
	if (run > 0)
		return TWI_RUN_BLOCKS;
	*ret_first += TWI_BLOCK_BYTES;
	return TWI_RUN_BLOCKS - 1;
}

uint32_t twi_slab_carve(char **ret_first)
{
	for (;;) {
		/* E6: pairs with slab_install(), so that the slab's head is visible. */
		struct twi_slab *slab = twi_load_acquire(&current_slab);
		uint32_t count = run_carve(slab, ret_first);

		if (count > 0)
			return count;
		if (!slab_install(slab))
			return 0;
	}
}

/*
 * Makes the kernel allocate a slab's pages now, without changing their contents. If the system call
 * fails, writes zeros instead, but only to a fresh slab.
 */
static void slab_populate(struct twi_slab *slab, bool fresh)
{
#ifdef MADV_POPULATE_WRITE
	if (madvise(slab, TWI_SLAB_BYTES, MADV_POPULATE_WRITE) == 0)
		return;
#endif
	if (fresh)
		memset((char *)slab + TWI_BLOCK_BYTES, 0, TWI_SLAB_BYTES - TWI_BLOCK_BYTES);
}

static void populate_existing(void)
{
	for (uint32_t index = 0; index < TWI_SLABS_MAX; index++) {
		/* RELAXED: the slab's contents are not read. */
		struct twi_slab *slab = twi_load_relaxed(&twi_slab_table[index]);

		if (slab == NULL)
			return;
		slab_populate(slab, false);
	}
}

/* RELAXED: no other data is read because of these numbers. */
int twi_slab_reserve(uint64_t count)
{
	uint64_t needed = count / (TWI_SLAB_BLOCKS - 1) + 1 + SLABS_UNDER_WAY;

	if (needed > twi_load_relaxed(&slab_cap))
		return -ENOMEM;
	populate_existing();
	while (twi_load_relaxed(&slab_count) < needed) {
		struct twi_slab *slab = slab_make();

		if (slab == NULL)
			return -ENOMEM;
		slab_populate(slab, true);
		twi_depot_push(&spare_slabs, &slab->spare);
	}
	return 0;
}

void twi_slab_cap_set(uint64_t bytes)
{
	uint64_t slabs = bytes / TWI_SLAB_BYTES;

	if (bytes == 0 || slabs > TWI_SLABS_MAX)
		slabs = TWI_SLABS_MAX;
	/* RELAXED: no other data is read because of this number. */
	twi_store_relaxed(&slab_cap, (uint32_t)slabs);
}

uint64_t twi_slab_bytes(void)
{
	/* RELAXED: one number, and no other data is read because of its value. */
	return (uint64_t)twi_load_relaxed(&next_index) * TWI_SLAB_BYTES;
}

static uint32_t index_end(void)
{
	/* RELAXED: the bound only rises, and each table entry is checked. */
	uint32_t end = twi_load_relaxed(&next_index);

	return end < TWI_SLABS_MAX ? end : TWI_SLABS_MAX;
}

static struct twi_slab *slab_at(uint32_t index)
{
	/* E70: pairs with slab_make(), so that a forked child finds only complete heads. */
	return twi_load_acquire(&twi_slab_table[index]);
}

static uint32_t carved_count(struct twi_slab *slab)
{
	/* RELAXED: in the forked child no other thread uses the library. */
	uint32_t count = twi_load_relaxed(&slab->run_count);

	return count < TWI_SLAB_RUNS ? count : TWI_SLAB_RUNS;
}

/* RELAXED, all of it: no other thread uses the library. */
void twi_slab_inherit(void)
{
	uint32_t count = 0;

	ck_stack_init(&spare_slabs);
	for (uint32_t index = 0; index < index_end(); index++) {
		struct twi_slab *slab = slab_at(index);

		/*
		 * A thread of the parent was making this slab at the fork. That thread does not
		 * exist in the child, so the index stays unused.
		 */
		if (slab == NULL)
			continue;
		count++;
		slab->inherited_count = carved_count(slab);
		/*
		 * The child does not know which slabs were spare, so all slabs become spare. If
		 * slab_install() takes one that is used up, or that has been the current one until
		 * then, twi_slab_carve() tries again.
		 */
		twi_depot_push(&spare_slabs, &slab->spare);
	}
	twi_store_relaxed(&slab_count, count); /* RELAXED: as above. */
}

static void slab_visit(struct twi_slab *slab, twi_block_visit *visit, void *context)
{
	uint32_t end = slab->inherited_count * TWI_RUN_BLOCKS;

	/* The first block is the slab's head. */
	for (uint32_t number = 1; number < end; number++)
		visit(context, (char *)slab + (size_t)number * TWI_BLOCK_BYTES);
}

void twi_slab_visit_inherited(twi_block_visit *visit, void *context)
{
	for (uint32_t index = 0; index < index_end(); index++) {
		struct twi_slab *slab = slab_at(index);

		if (slab != NULL)
			slab_visit(slab, visit, context);
	}
}

static bool slab_known(const struct twi_slab *wanted)
{
	for (uint32_t index = 0; index < index_end(); index++) {
		if (slab_at(index) == wanted)
			return true;
	}
	return false;
}

bool twi_slab_has(const void *pointer)
{
	/*
	 * Caches the slab that was found last, because related pointers often lie in the same slab.
	 * The pointer is only compared, never followed.
	 */
	static _Thread_local const struct twi_slab *last;
	uintptr_t address = (uintptr_t)pointer;
	const struct twi_slab *slab =
		(const struct twi_slab *)(address & ~(uintptr_t)(TWI_SLAB_BYTES - 1));

	if (slab == NULL || address % TWI_BLOCK_BYTES != 0 || address == (uintptr_t)slab)
		return false;
	if (slab != last && slab_known(slab))
		last = slab;
	return slab == last;
}
