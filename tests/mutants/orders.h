/* SPDX-License-Identifier: MIT */
/*
 * Functions that only mutants call: accesses of any order, and read-modify-writes in two steps.
 * This file is included before each source file of a mutant.
 */
#ifndef MUTANT_ORDERS_H
#define MUTANT_ORDERS_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Called between the two steps of a split read-modify-write. Programs define it to let other
 * threads run there.
 */
void mutant_between(void) __attribute__((weak));
#define MUTANT_BETWEEN() (mutant_between != 0 ? mutant_between() : (void)0)

#define MUTANT_FAILURE_relaxed memory_order_relaxed
#define MUTANT_FAILURE_release memory_order_relaxed
#define MUTANT_FAILURE_acquire memory_order_acquire
#define MUTANT_FAILURE_acq_rel memory_order_acquire
#define MUTANT_FAILURE_seq_cst memory_order_seq_cst

#define mutant_load(order, object) atomic_load_explicit((object), memory_order_##order)
#define mutant_store(order, object, value)                                                         \
	atomic_store_explicit((object), (value), memory_order_##order)
#define mutant_exchange(order, object, value)                                                      \
	atomic_exchange_explicit((object), (value), memory_order_##order)
#define mutant_fetch_add(order, object, value)                                                     \
	atomic_fetch_add_explicit((object), (value), memory_order_##order)
#define mutant_fetch_sub(order, object, value)                                                     \
	atomic_fetch_sub_explicit((object), (value), memory_order_##order)
#define mutant_fetch_or(order, object, value)                                                      \
	atomic_fetch_or_explicit((object), (value), memory_order_##order)
#define mutant_fetch_and(order, object, value)                                                     \
	atomic_fetch_and_explicit((object), (value), memory_order_##order)
#define mutant_cas(order, object, expected, desired)                                               \
	atomic_compare_exchange_strong_explicit((object), (expected), (desired),                   \
						memory_order_##order, MUTANT_FAILURE_##order)

#define mutant_cas_pair(order, pair, expected, desired)                                            \
	mutant_cas_pair_##order((pair), (expected), (desired))
#define mutant_cas_pair_relaxed(pair, expected, desired) twi_pair_swap(pair, expected, desired)
#define mutant_cas_pair_acquire(pair, expected, desired)                                           \
	twi_cas_pair_acquire(pair, expected, desired)
#define mutant_cas_pair_release(pair, expected, desired)                                           \
	({                                                                                         \
		TWI_PAIR_RELEASE(pair);                                                            \
		twi_pair_swap(pair, expected, desired);                                            \
	})

#define mutant_load_pair(order, pair) mutant_load_pair_##order(pair)
#define mutant_load_pair_relaxed(pair) twi_load_pair_relaxed(pair)
/* Loads each half separately. */
#define mutant_split_load_pair(pair)                                                               \
	({                                                                                         \
		const _Atomic uint64_t *mutant_pair = (pair);                                      \
		struct twi_pair mutant_seen;                                                       \
                                                                                                   \
		mutant_seen.half[0] = mutant_load(seq_cst, &mutant_pair[0]);                       \
		MUTANT_BETWEEN();                                                                  \
		mutant_seen.half[1] = mutant_load(seq_cst, &mutant_pair[1]);                       \
		mutant_seen;                                                                       \
	})

/*
 * Makes the change in two steps, both sequentially consistent, so that only the atomicity is lost.
 */
#define MUTANT_SPLIT(object, changed)                                                              \
	({                                                                                         \
		__auto_type mutant_object = (object);                                              \
		__auto_type mutant_before = mutant_load(seq_cst, mutant_object);                   \
		MUTANT_BETWEEN();                                                                  \
		mutant_store(seq_cst, mutant_object, (changed));                                   \
		mutant_before;                                                                     \
	})
#define mutant_split_exchange(object, value) MUTANT_SPLIT(object, value)
#define mutant_split_fetch_add(object, value) MUTANT_SPLIT(object, mutant_before + (value))
#define mutant_split_fetch_sub(object, value) MUTANT_SPLIT(object, mutant_before - (value))
#define mutant_split_fetch_or(object, value) MUTANT_SPLIT(object, mutant_before | (value))
#define mutant_split_fetch_and(object, value) MUTANT_SPLIT(object, mutant_before &(value))
#define mutant_split_cas(object, expected, desired)                                                \
	({                                                                                         \
		__auto_type mutant_object = (object);                                              \
		__auto_type mutant_expected = (expected);                                          \
		__auto_type mutant_before = mutant_load(seq_cst, mutant_object);                   \
		bool mutant_equal = mutant_before == *mutant_expected;                             \
		MUTANT_BETWEEN();                                                                  \
		if (mutant_equal)                                                                  \
			mutant_store(seq_cst, mutant_object, (desired));                           \
		*mutant_expected = mutant_before;                                                  \
		mutant_equal;                                                                      \
	})
#define mutant_split_cas_pair(pair, expected, desired)                                             \
	({                                                                                         \
		__auto_type mutant_pair = (pair);                                                  \
		struct twi_pair mutant_expected = (expected), mutant_desired = (desired);          \
		bool mutant_equal =                                                                \
			mutant_load(seq_cst, mutant_pair) == mutant_expected.half[0] &&            \
			mutant_load(seq_cst, mutant_pair + 1) == mutant_expected.half[1];          \
		MUTANT_BETWEEN();                                                                  \
		if (mutant_equal) {                                                                \
			mutant_store(seq_cst, mutant_pair, mutant_desired.half[0]);                \
			mutant_store(seq_cst, mutant_pair + 1, mutant_desired.half[1]);            \
		}                                                                                  \
		mutant_equal;                                                                      \
	})

#endif
