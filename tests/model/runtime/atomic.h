/* SPDX-License-Identifier: MIT */
/*
 * Atomic objects with a weak memory, after the C11 model as an abstract machine runs it.
 *
 * Each object keeps its modification order: the last few stores, each with its value, its fiber and
 * time, the writes that it publishes, and the fibers that have seen it.
 *
 *   load    any store that coherence allows: none older than one that happened before, or that was
 *           read by an access that happened before. Acquire takes over the store's writes; relaxed
 *           keeps it for an acquire fence.
 *   store   falls last in modification order, or before stores that nothing yet orders against it,
 *           but never between a read-modify-write and its store. Release publishes all that
 *           came before; relaxed, what the last release fence covered.
 *   RMW     reads the last store and falls behind it; hands on the writes that it publishes. A failed
 *           compare-and-swap is a load.
 *   seq_cst additionally none older than those that sequentially consistent accesses of the object have
 *           read or stored so far: their order is the order of the run, or, where a harness asks
 *           for it, any that C11 allows (order.h).
 *
 * Not modelled: a load that sees a store of its own future (load buffering); a read-modify-write
 * that is not last; more than ATOMIC_HISTORY stores; seq_cst fences (a run that meets one fails);
 * objects that are accessed in two sizes, save that a futex waits for half of a word.
 */
#ifndef MODEL_ATOMIC_H
#define MODEL_ATOMIC_H

#include "runtime/memory.h"

enum { ATOMIC_HISTORY = 8 };

/* __ATOMIC_* of the compiler. */
typedef int atomic_order;

static inline bool atomic_acquires(atomic_order order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME ||
	       order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static inline bool atomic_releases(atomic_order order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

typedef uint64_t atomic_change(uint64_t before, uint64_t operand);

uint64_t atomic_load_at(const void *address, size_t bytes, atomic_order order, const void *pc);
void atomic_store_at(void *address, size_t bytes, uint64_t value, atomic_order order,
		     const void *pc);
uint64_t atomic_change_at(void *address, size_t bytes, atomic_change *change, uint64_t operand,
			  atomic_order order, const void *pc);
/* Returns the value read. If it equals `expected`, the swap succeeded. */
uint64_t atomic_swap_at(void *address, size_t bytes, uint64_t expected, uint64_t desired,
			atomic_order success, atomic_order failure, const void *pc);
/* Both halves of 16 bytes at once, relaxed. The value read goes to `ret_seen`. */
bool atomic_double_swap_at(uint64_t *address, const uint64_t *expected, const uint64_t *desired,
			   uint64_t *ret_seen, const void *pc);
/* The effect of a fence of loads on double swaps of which one half was read. */
void atomic_pairs_see(void);

/* fence.c */
void atomic_fence(atomic_order order, const void *pc);

/* ConcurrencyKit's: orders only stores, or only loads. */
void atomic_fence_stores(void);
void atomic_fence_loads(void);

/* The newest value, as the kernel reads it; any part of an object. */
uint32_t atomic_kernel_read(const void *address);

/* An ordinary access to a piece with atomic objects in it. */
void atomic_plain_access(struct granule *granule, uintptr_t begin, size_t bytes, bool writes,
			 const void *pc);

/* Forgets all objects. */
void atomic_end(void);

#endif
