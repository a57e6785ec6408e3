/* SPDX-License-Identifier: MIT */
/*
 * Slabs. A slab is 2 MiB of 64-byte blocks. It belongs to the process and is never freed.
 *
 * Memory that was once a block stays a block, so that the block of a stale handle can be read at
 * any time. Each block has a 32-bit index. Slot entries hold this index instead of a pointer,
 * because it has half the size.
 *
 * Protocol. Threads carve runs of 256 blocks off the current slab, by an atomic increment of a
 * counter in its head (the linearization point). If a thread finds the slab used up, it makes a new
 * one and installs it by compare-and-swap. If another thread was faster, the thread puts its own
 * slab on the stack of spare slabs. The next thread that needs a slab looks there first. No thread
 * waits for another.
 *
 * Progress. carve is lock-free. It makes system calls once per 32,767 blocks.
 */
#ifndef TWI_MEMORY_SLAB_H
#define TWI_MEMORY_SLAB_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <ck_stack.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_BLOCK_BYTES = 64,
	TWI_SLAB_BYTES = 2 << 20,
	TWI_SLAB_BLOCKS = TWI_SLAB_BYTES / TWI_BLOCK_BYTES,
	/*
	 * The number of blocks in a run, and in a magazine. A change of magazines costs a few cache
	 * misses, but only once in 256 takes.
	 */
	TWI_RUN_BLOCKS = 256,
	TWI_SLAB_RUNS = TWI_SLAB_BLOCKS / TWI_RUN_BLOCKS,
	/* As many slabs as 32-bit indices can name. They hold 256 GiB. */
	TWI_SLABS_MAX = 1 << 17,
};

/* The head of a slab. It lies in the slab's first block. */
struct twi_slab {
	ck_stack_entry_t spare;     /* [handoff E5] while on the stack of spare slabs */
	uint32_t index;             /* [const] */
	_Atomic uint32_t run_count; /* [atomic] runs carved so far */
	uint32_t inherited_count; /* [const] runs carved before the fork that began this process */
};

/* The slabs by index. [handoff E6, E70] */
extern _Atomic(struct twi_slab *) twi_slab_table[TWI_SLABS_MAX];

/*
 * Gives the caller `count` consecutive blocks from `*ret_first` on. Returns `count`, or 0 if there
 * is no memory.
 */
uint32_t twi_slab_carve(char **ret_first);

/*
 * Makes slabs until there are blocks for `count` timeouts, and lets the kernel allocate the pages
 * of all slabs now. Returns 0 or -ENOMEM.
 */
int twi_slab_reserve(uint64_t count);

/* Sets the most bytes that the process's slabs may have. 0 removes the bound. */
void twi_slab_cap_set(uint64_t bytes);

uint64_t twi_slab_bytes(void);

/*
 * Completes the steps that threads of the parent had begun on slabs, and records which blocks came
 * from the parent. Called in a forked child, where only this thread uses the library.
 */
void twi_slab_inherit(void);

/* Visits each block that came from the parent, in the order of addresses. */
typedef void twi_block_visit(void *context, void *block);
void twi_slab_visit_inherited(twi_block_visit *visit, void *context);

/* Returns whether the pointer is the address of a block in a slab. */
bool twi_slab_has(const void *pointer);

static inline uint32_t twi_block_index(const void *block)
{
	uintptr_t slab = (uintptr_t)block & ~(uintptr_t)(TWI_SLAB_BYTES - 1);
	uintptr_t offset = (uintptr_t)block & (uintptr_t)(TWI_SLAB_BYTES - 1);

	return ((const struct twi_slab *)slab)->index * TWI_SLAB_BLOCKS +
	       (uint32_t)(offset / TWI_BLOCK_BYTES);
}

/* Returns the block of that index, which must be in this slab. */
static inline void *twi_slab_block(struct twi_slab *slab, uint32_t index)
{
	return (char *)slab + (size_t)(index % TWI_SLAB_BLOCKS) * TWI_BLOCK_BYTES;
}

static inline void *twi_block_at(uint32_t index)
{
	/* RELAXED: a thread that has the index got it after the slab was published (E6). */
	struct twi_slab *slab = twi_load_relaxed(&twi_slab_table[index / TWI_SLAB_BLOCKS]);

	return twi_slab_block(slab, index);
}

#endif
