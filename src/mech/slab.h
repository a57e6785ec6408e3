/* SPDX-License-Identifier: MIT */
/*
 * Slabs: 2 MiB of 64-byte blocks that belong to the process and are never given back.
 *
 * That memory once a block stays a block is what lets a stale handle be read at any time. A block
 * has a 32-bit index, half of a pointer: slot entries keep that.
 *
 * Protocol. Threads carve runs of 256 blocks off the current slab by a counter in its head (LIN).
 * Who finds it used up makes a new one and installs it by compare-and-swap; who loses that race
 * puts its slab on the stack of spare ones, where the next thread in need looks first. Nobody waits
 * for anybody.
 *
 * Progress. carve is lock-free, with a system call once per 32,767 blocks.
 */
#ifndef TWI_MECH_SLAB_H
#define TWI_MECH_SLAB_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <ck_stack.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_BLOCK_BYTES = 64,
	TWI_SLAB_BYTES = 2 << 20,
	TWI_SLAB_BLOCKS = TWI_SLAB_BYTES / TWI_BLOCK_BYTES,
	/* A magazine, too: a change of magazines costs a few misses, which 256 takes share. */
	TWI_RUN_BLOCKS = 256,
	TWI_SLAB_RUNS = TWI_SLAB_BLOCKS / TWI_RUN_BLOCKS,
	/* As many as 32-bit indices name: 256 GiB. */
	TWI_SLABS_MAX = 1 << 17,
};

/* Lies in the first block of its slab. */
struct twi_slab {
	ck_stack_entry_t spare;     /* [handoff E5] while on the stack of spare slabs */
	uint32_t index;             /* [const] */
	_Atomic uint32_t run_count; /* [atomic] runs carved so far */
	uint32_t inherited_count;   /* [const] of them, those that came with a fork */
};

/* Slab by index. [handoff E6, E70] */
extern _Atomic(struct twi_slab *) twi_slab_table[TWI_SLABS_MAX];

/* Blocks [*ret_first, *ret_first + count) are the caller's. Returns count, 0 when there is no
 * memory. */
uint32_t twi_slab_carve(char **ret_first);

/* Makes slabs, touched ahead, until there are blocks for `count`. 0 or -ENOMEM. */
int twi_slab_reserve(uint64_t count);

/* Bounds the slabs of the process. 0: no bound. */
void twi_slab_cap_set(uint64_t bytes);

uint64_t twi_slab_bytes(void);

/*
 * In a forked child, where this thread alone uses the library: what threads of the parent were about
 * to do with slabs is done, and from here on it is known which blocks came from the parent.
 */
void twi_slab_inherit(void);

/* Visits each block that came from the parent, in the order of addresses. */
typedef void twi_block_visit(void *context, void *block);
void twi_slab_visit_inherited(twi_block_visit *visit, void *context);

/* Whether a pointer names a block of a slab. */
bool twi_slab_has(const void *pointer);

static inline uint32_t twi_block_index(const void *block)
{
	uintptr_t slab = (uintptr_t)block & ~(uintptr_t)(TWI_SLAB_BYTES - 1);
	uintptr_t offset = (uintptr_t)block & (uintptr_t)(TWI_SLAB_BYTES - 1);

	return ((const struct twi_slab *)slab)->index * TWI_SLAB_BLOCKS +
	       (uint32_t)(offset / TWI_BLOCK_BYTES);
}

static inline void *twi_block_at(uint32_t index)
{
	/* RELAXED: whoever has the index got it after the slab was published (E6). */
	struct twi_slab *slab = twi_load_relaxed(&twi_slab_table[index / TWI_SLAB_BLOCKS]);

	return (char *)slab + (size_t)(index % TWI_SLAB_BLOCKS) * TWI_BLOCK_BYTES;
}

#endif
