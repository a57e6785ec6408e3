/* SPDX-License-Identifier: MIT */
/*
 * A lock-free stack between threads: ConcurrencyKit's ck_stack, whose pop carries a counter against
 * ABA (a 128-bit compare-and-swap). What lies on it must be type-stable: a slow pop may read the
 * link of an entry that another thread has taken already.
 *
 * The fences order all of an entry's memory, not stores alone, on machines weaker than x86.
 * Progress: lock-free.
 */
#ifndef TWI_MECH_DEPOT_H
#define TWI_MECH_DEPOT_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <ck_stack.h>

#if TWI_TSAN
/* ConcurrencyKit's assembly is invisible to ThreadSanitizer: it is told the edge instead. */
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
	TWI_DEPOT_RELEASE(stack); /* E5, pairs with pop: publishes what hangs on the entry */
	ck_stack_push_mpmc(stack, entry);
}

static inline ck_stack_entry_t *twi_depot_pop(ck_stack_t *stack)
{
	ck_stack_entry_t *entry = ck_stack_pop_mpmc(stack);

	TWI_DEPOT_ACQUIRE(stack); /* E5 */
	return entry;
}

#endif
