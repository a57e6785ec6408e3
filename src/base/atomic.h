/* SPDX-License-Identifier: MIT */
/*
 * Atomic accesses with the order in their name. Only the orders in use exist.
 *
 * Every acquire, release and seq_cst access belongs to an edge of docs/internals/memory-model.md. A
 * comment at the access names the edge. A comment at each relaxed access says why relaxed is
 * enough.
 */
#ifndef TWI_BASE_ATOMIC_H
#define TWI_BASE_ATOMIC_H

#include "base/compiler.h"

#include <ck_pr.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
#define twi_exchange_acq_rel(object, value)                                                        \
	atomic_exchange_explicit((object), (value), memory_order_acq_rel)
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
#define twi_fetch_or_relaxed(object, value)                                                        \
	atomic_fetch_or_explicit((object), (value), memory_order_relaxed)
#define twi_fetch_or_acquire(object, value)                                                        \
	atomic_fetch_or_explicit((object), (value), memory_order_acquire)
#define twi_fetch_or_acq_rel(object, value)                                                        \
	atomic_fetch_or_explicit((object), (value), memory_order_acq_rel)
#define twi_fetch_or_seq_cst(object, value)                                                        \
	atomic_fetch_or_explicit((object), (value), memory_order_seq_cst)
#define twi_fetch_and_seq_cst(object, value)                                                       \
	atomic_fetch_and_explicit((object), (value), memory_order_seq_cst)
#define twi_fetch_and_release(object, value)                                                       \
	atomic_fetch_and_explicit((object), (value), memory_order_release)

/*
 * If a compare-and-swap fails, it writes the value that it saw to *expected. If its order includes
 * acquire, it acquires that value, too.
 */
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

/*
 * A compare-and-swap of two adjacent words, 16-byte aligned, as one unit. The instruction is
 * ConcurrencyKit's, because C11's may take a lock. Each function returns true if both words were as
 * expected and were replaced. If it returns false, it does not report the values that it found.
 *
 * On some processors the swap itself is only relaxed, so TWI_PAIR_RELEASE and TWI_PAIR_ACQUIRE add
 * fences. ThreadSanitizer does not see the swap. In its builds the two macros report the edges
 * instead.
 */
struct twi_pair {
	uint64_t half[2];
};

#if TWI_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TWI_PAIR_RELEASE(pair) (__tsan_release(pair), __tsan_release((pair) + 1))
#define TWI_PAIR_ACQUIRE(pair) (__tsan_acquire(pair), __tsan_acquire((pair) + 1))
#else
#define TWI_PAIR_RELEASE(pair) atomic_thread_fence(memory_order_release)
#define TWI_PAIR_ACQUIRE(pair) atomic_thread_fence(memory_order_acquire)
#endif

static inline bool twi_pair_swap(_Atomic uint64_t *pair, struct twi_pair expected,
				 struct twi_pair desired)
{
	struct twi_pair seen;

	return ck_pr_cas_64_2_value((uint64_t *)(void *)pair, expected.half, desired.half,
				    seen.half);
}

static inline bool twi_cas_pair_acquire(_Atomic uint64_t *pair, struct twi_pair expected,
					struct twi_pair desired)
{
	bool swapped = twi_pair_swap(pair, expected, desired);

	TWI_PAIR_ACQUIRE(pair);
	return swapped;
}

static inline bool twi_cas_pair_acq_rel(_Atomic uint64_t *pair, struct twi_pair expected,
					struct twi_pair desired)
{
	TWI_PAIR_RELEASE(pair);
	return twi_cas_pair_acquire(pair, expected, desired);
}

/*
 * Reads both words of a pair as they were at one moment. On x86, a swap that fails returns such
 * values. Other processors build the swap from a load and a conditional store. There both words are
 * from one moment only if the store succeeds. So the loop stores the values back, unchanged, until
 * a store succeeds.
 */
#if defined(__x86_64__)
#define TWI_PAIR_COMPARE_WHOLE true
#else
#define TWI_PAIR_COMPARE_WHOLE false
#endif

static inline struct twi_pair twi_load_pair_relaxed(const _Atomic uint64_t *pair)
{
	uint64_t *target = (uint64_t *)(uintptr_t)pair;
	struct twi_pair seen = {{0, 0}};
	struct twi_pair expected;

	do
		expected = seen;
	while (!ck_pr_cas_64_2_value(target, expected.half, expected.half, seen.half) &&
	       !TWI_PAIR_COMPARE_WHOLE);
	return seen;
}

static inline struct twi_pair twi_load_pair_acquire(const _Atomic uint64_t *pair)
{
	struct twi_pair seen = twi_load_pair_relaxed(pair);

	TWI_PAIR_ACQUIRE((uint64_t *)(uintptr_t)pair);
	return seen;
}

#define twi_fence_acquire() atomic_thread_fence(memory_order_acquire)
#define twi_fence_compiler() atomic_signal_fence(memory_order_seq_cst)
#define twi_fence_release() atomic_thread_fence(memory_order_release)

/*
 * Adds to a counter that only one thread writes. Needs no locked instruction. Readers never see
 * half of a value.
 */
#define twi_count_add(counter, value)                                                              \
	twi_store_relaxed((counter), twi_load_relaxed(counter) + (value))

#endif
