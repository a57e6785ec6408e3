/* SPDX-License-Identifier: MIT */
/*
 * A lock-free stack between threads: ConcurrencyKit's ck_stack. Its pop is a 128-bit
 * compare-and-swap of the top pointer and a counter, because with the pointer alone it would have
 * the ABA problem. The entries must lie in type-stable memory, because a slow pop may read the link
 * of an entry that another thread has already taken.
 *
 * On machines with a weaker memory order than x86, the two fences below order all accesses to an
 * entry's memory, loads too. Progress: lock-free.
 */
#ifndef TWI_MEMORY_DEPOT_H
#define TWI_MEMORY_DEPOT_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <ck_stack.h>

#if TWI_TSAN
/* ThreadSanitizer does not see ConcurrencyKit's assembly, so these macros report the edge. */
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TWI_DEPOT_RELEASE(stack) __tsan_release(stack)
#define TWI_DEPOT_ACQUIRE(stack) __tsan_acquire(stack)
#else
#define TWI_DEPOT_RELEASE(stack) twi_fence_release()
#define TWI_DEPOT_ACQUIRE(stack) twi_fence_acquire()
#endif

static inline void twi_depot_push(ck_stack_t *stack, ck_stack_entry_t *entry)
{
	/*
	 * E5: pairs with twi_depot_pop(). Publishes the entry's memory. The former owner's reads of
	 * that memory must also be complete before the next owner writes to it.
	 */
	TWI_DEPOT_RELEASE(stack);
	ck_stack_push_mpmc(stack, entry);
}

static inline ck_stack_entry_t *twi_depot_pop(ck_stack_t *stack)
{
	ck_stack_entry_t *entry = ck_stack_pop_mpmc(stack);

	TWI_DEPOT_ACQUIRE(stack); /* E5: pairs with twi_depot_push(). */
	return entry;
}

#endif
