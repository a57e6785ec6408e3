/* SPDX-License-Identifier: MIT */
/*
 * Atomic objects with weak memory: the C11 model as an abstract machine runs it.
 *
 * Each object keeps the last few stores of its modification order. A store has its value, its fiber
 * and time, the writes that it publishes, and the fibers that have seen it.
 *
 *   load    returns the newest of the stores that happened before the load, or any newer store. If
 *           an access that happened before the load has read a store, the load returns no older
 *           one. Acquire takes over the writes that the store publishes; relaxed keeps them for
 *           an acquire fence.
 *   store   is placed last in modification order, or before stores that nothing yet orders before
 *           it, but never between a read-modify-write and the store that it read. Release publishes
 *           all that came before; relaxed publishes what the last release fence covered.
 *   RMW     reads the last store and is placed after it; passes on the writes that this store
 *           publishes. A failed compare-and-swap is a load.
 *   seq_cst in addition, reads no store older than those that sequentially consistent accesses of
 *           the object have read or stored so far. Their order is the order of the run or, if a
 *           harness asks for it, any that C11 allows (order.h).
 *
 * Not modelled: a load that sees a store of its own future (load buffering); a read-modify-write
 * that is not last; more than ATOMIC_HISTORY stores; seq_cst fences (a run that meets one fails);
 * objects that are accessed in two sizes, except that a futex waits for half of a state word.
 */
#ifndef MODEL_ATOMIC_H
#define MODEL_ATOMIC_H

#include "runtime/memory.h"

enum { ATOMIC_HISTORY = 8 };

/* one of the compiler's __ATOMIC_* orders */
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
/* Swaps both halves of 16 bytes in one step, relaxed. Stores the value read in `ret_seen`. */
bool atomic_double_swap_at(uint64_t *address, const uint64_t *expected, const uint64_t *desired,
			   uint64_t *ret_seen, const void *pc);
/* Applies a load fence to the double swaps of which the fiber has read one half. */
void atomic_pairs_see(void);

/* fence.c */
void atomic_fence(atomic_order order, const void *pc);

/* Apply ConcurrencyKit's fences: one orders only stores, the other only loads. */
void atomic_fence_stores(void);
void atomic_fence_loads(void);

/* Returns the newest value, as the kernel reads it. The address may be any part of an object. */
uint32_t atomic_kernel_read(const void *address);

/* Handles an ordinary access to a piece of memory that contains atomic objects. */
void atomic_plain_access(struct granule *granule, uintptr_t begin, size_t bytes, bool writes,
			 const void *pc);

/* Forgets all objects. */
void atomic_end(void);

#endif
