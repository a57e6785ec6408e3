/* SPDX-License-Identifier: MIT */
/*
 * A lock-free stack between threads: ConcurrencyKit's ck_stack. Its pop compares a counter as well,
 * against ABA (a 128-bit compare-and-swap). The entries must lie in type-stable memory, because a
 * slow pop may read the link of an entry that another thread has already taken.
 *
 * The fences order all of an entry's memory, not only its stores, on machines weaker than x86.
 * Progress: lock-free.
 */
#ifndef TWI_MEMORY_DEPOT_H
#define TWI_MEMORY_DEPOT_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <ck_stack.h>

#if TWI_TSAN
/* ThreadSanitizer does not see ConcurrencyKit's assembly, so the edge is reported to it instead. */
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
	 * that memory must come before, too.
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
