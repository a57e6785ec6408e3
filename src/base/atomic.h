/* SPDX-License-Identifier: MIT */
/*
 * Atomic accesses with the order in their name. Only the orders in use exist.
 *
 * Every acquire, release and seq_cst access belongs to an edge of docs/memory-model.md and names it
 * at its site; a relaxed one says why that is enough.
 */
#ifndef TWI_BASE_ATOMIC_H
#define TWI_BASE_ATOMIC_H

#include <stdatomic.h>

#define twi_load_relaxed(object) atomic_load_explicit((object), memory_order_relaxed)
#define twi_load_acquire(object) atomic_load_explicit((object), memory_order_acquire)
#define twi_load_seq_cst(object) atomic_load_explicit((object), memory_order_seq_cst)

#define twi_store_relaxed(object, value)                                                           \
	atomic_store_explicit((object), (value), memory_order_relaxed)
#define twi_store_release(object, value)                                                           \
	atomic_store_explicit((object), (value), memory_order_release)
#define twi_store_seq_cst(object, value)                                                           \
	atomic_store_explicit((object), (value), memory_order_seq_cst)

#define twi_exchange_acquire(object, value)                                                        \
	atomic_exchange_explicit((object), (value), memory_order_acquire)
#define twi_exchange_seq_cst(object, value)                                                        \
	atomic_exchange_explicit((object), (value), memory_order_seq_cst)
#define twi_exchange_relaxed(object, value)                                                        \
	atomic_exchange_explicit((object), (value), memory_order_relaxed)

#define twi_fetch_add_relaxed(object, value)                                                       \
	atomic_fetch_add_explicit((object), (value), memory_order_relaxed)
#define twi_fetch_add_release(object, value)                                                       \
	atomic_fetch_add_explicit((object), (value), memory_order_release)
#define twi_fetch_add_seq_cst(object, value)                                                       \
	atomic_fetch_add_explicit((object), (value), memory_order_seq_cst)
#define twi_fetch_sub_relaxed(object, value)                                                       \
	atomic_fetch_sub_explicit((object), (value), memory_order_relaxed)
#define twi_fetch_sub_release(object, value)                                                       \
	atomic_fetch_sub_explicit((object), (value), memory_order_release)
#define twi_fetch_or_seq_cst(object, value)                                                        \
	atomic_fetch_or_explicit((object), (value), memory_order_seq_cst)
#define twi_fetch_and_release(object, value)                                                       \
	atomic_fetch_and_explicit((object), (value), memory_order_release)

/* A failed compare-and-swap writes what it saw to *expected; where it acquires, that too. */
#define twi_cas_acquire(object, expected, desired)                                                 \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_acquire, memory_order_acquire)
#define twi_cas_release(object, expected, desired)                                                 \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_release, memory_order_relaxed)
#define twi_cas_acq_rel(object, expected, desired)                                                 \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_acq_rel, memory_order_acquire)
#define twi_cas_relaxed(object, expected, desired)                                                 \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_relaxed, memory_order_relaxed)
#define twi_cas_seq_cst(object, expected, desired)                                                 \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_seq_cst, memory_order_seq_cst)

#define twi_fence_acquire() atomic_thread_fence(memory_order_acquire)
#define twi_fence_release() atomic_thread_fence(memory_order_release)

/* A counter with one writer: no locked instruction, and readers see whole values. */
#define twi_count_add(counter, value)                                                              \
	twi_store_relaxed((counter), twi_load_relaxed(counter) + (value))

#endif
