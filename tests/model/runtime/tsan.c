/* SPDX-License-Identifier: MIT */
/*
 * The functions that compilers call for -fsanitize=thread, and ConcurrencyKit's accesses. The
 * compilers prescribe the names and their leading underscores.
 */
#include "runtime/atomic.h"
#include "runtime/barrier.h"

#include <string.h>

#define PC __builtin_return_address(0)

#define PLAIN(bytes)                                                                               \
	void __tsan_read##bytes(void *address);                                                    \
	void __tsan_write##bytes(void *address);                                                   \
	void __tsan_unaligned_read##bytes(void *address);                                          \
	void __tsan_unaligned_write##bytes(void *address);                                         \
	void __tsan_volatile_read##bytes(void *address);                                           \
	void __tsan_volatile_write##bytes(void *address);                                          \
	void __tsan_read##bytes(void *address)                                                     \
	{                                                                                          \
		memory_read(address, bytes, PC);                                                   \
	}                                                                                          \
	void __tsan_write##bytes(void *address)                                                    \
	{                                                                                          \
		memory_write(address, bytes, PC);                                                  \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(void *address)                                           \
	{                                                                                          \
		memory_read(address, bytes, PC);                                                   \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(void *address)                                          \
	{                                                                                          \
		memory_write(address, bytes, PC);                                                  \
	}                                                                                          \
	void __tsan_volatile_read##bytes(void *address)                                            \
	{                                                                                          \
		memory_read(address, bytes, PC);                                                   \
	}                                                                                          \
	void __tsan_volatile_write##bytes(void *address)                                           \
	{                                                                                          \
		memory_write(address, bytes, PC);                                                  \
	}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *address, size_t bytes)
{
	memory_read(address, bytes, PC);
}

void __tsan_write_range(void *address, size_t bytes)
{
	memory_write(address, bytes, PC);
}

void __tsan_atomic_thread_fence(int order)
{
	atomic_fence(order, PC);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	barrier_compiler_fence();
}

static uint64_t change_exchange(uint64_t before, uint64_t operand)
{
	(void)before;
	return operand;
}

static uint64_t change_add(uint64_t before, uint64_t operand)
{
	return before + operand;
}

static uint64_t change_sub(uint64_t before, uint64_t operand)
{
	return before - operand;
}

static uint64_t change_and(uint64_t before, uint64_t operand)
{
	return before & operand;
}

static uint64_t change_or(uint64_t before, uint64_t operand)
{
	return before | operand;
}

static uint64_t change_xor(uint64_t before, uint64_t operand)
{
	return before ^ operand;
}

#define CHANGE(bits, name, change)                                                                 \
	uint##bits##_t __tsan_atomic##bits##_##name(void *address, uint##bits##_t operand,         \
						    int order);                                    \
	uint##bits##_t __tsan_atomic##bits##_##name(void *address, uint##bits##_t operand,         \
						    int order)                                     \
	{                                                                                          \
		return (uint##bits##_t)atomic_change_at(address, bits / 8, change, operand, order, \
							PC);                                       \
	}

#define SWAP(bits, name)                                                                           \
	int __tsan_atomic##bits##_##name(void *address, uint##bits##_t *expected,                  \
					 uint##bits##_t desired, int success, int failure);        \
	int __tsan_atomic##bits##_##name(void *address, uint##bits##_t *expected,                  \
					 uint##bits##_t desired, int success, int failure)         \
	{                                                                                          \
		uint##bits##_t seen = (uint##bits##_t)atomic_swap_at(                              \
			address, bits / 8, *expected, desired, success, failure, PC);              \
		int equal = seen == *expected;                                                     \
                                                                                                   \
		*expected = seen;                                                                  \
		return equal;                                                                      \
	}

#define ATOMIC(bits)                                                                               \
	uint##bits##_t __tsan_atomic##bits##_load(const void *address, int order);                 \
	void __tsan_atomic##bits##_store(void *address, uint##bits##_t value, int order);          \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		void *address, uint##bits##_t expected, uint##bits##_t desired, int success,       \
		int failure);                                                                      \
	uint##bits##_t __tsan_atomic##bits##_load(const void *address, int order)                  \
	{                                                                                          \
		return (uint##bits##_t)atomic_load_at(address, bits / 8, order, PC);               \
	}                                                                                          \
	void __tsan_atomic##bits##_store(void *address, uint##bits##_t value, int order)           \
	{                                                                                          \
		atomic_store_at(address, bits / 8, value, order, PC);                              \
	}                                                                                          \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                 \
		void *address, uint##bits##_t expected, uint##bits##_t desired, int success,       \
		int failure)                                                                       \
	{                                                                                          \
		return (uint##bits##_t)atomic_swap_at(address, bits / 8, expected, desired,        \
						      success, failure, PC);                       \
	}                                                                                          \
	SWAP(bits, compare_exchange_strong)                                                        \
	SWAP(bits, compare_exchange_weak)                                                          \
	CHANGE(bits, exchange, change_exchange)                                                    \
	CHANGE(bits, fetch_add, change_add)                                                        \
	CHANGE(bits, fetch_sub, change_sub)                                                        \
	CHANGE(bits, fetch_and, change_and)                                                        \
	CHANGE(bits, fetch_or, change_or)                                                          \
	CHANGE(bits, fetch_xor, change_xor)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void *model_ck_load(const void *target);
bool model_ck_swap(void *target, void *expected, void *desired, void *ret_seen);
bool model_ck_swap_2(void *target, void *expected, void *desired, void *ret_seen);
bool model_ck_cas_64_2(uint64_t *target, const uint64_t *expected, const uint64_t *desired,
		       uint64_t *ret_seen);
void model_ck_store(void *target, const void *value);
void *model_ck_exchange(void *target, void *value);
void model_ck_fence_store(void);
void model_ck_fence_load(void);

void *model_ck_load(const void *target)
{
	return (void *)atomic_load_at(target, sizeof(void *), __ATOMIC_RELAXED, PC);
}

bool model_ck_swap(void *target, void *expected, void *desired, void *ret_seen)
{
	uint64_t seen = atomic_swap_at(target, sizeof(void *), (uintptr_t)expected,
				       (uintptr_t)desired, __ATOMIC_RELAXED, __ATOMIC_RELAXED, PC);

	memcpy(ret_seen, &seen, sizeof seen);
	return seen == (uintptr_t)expected;
}

bool model_ck_swap_2(void *target, void *expected, void *desired, void *ret_seen)
{
	uint64_t wanted[2], next[2], seen[2];
	bool equal;

	memcpy(wanted, expected, sizeof wanted);
	memcpy(next, desired, sizeof next);
	equal = atomic_double_swap_at(target, wanted, next, seen, PC);
	memcpy(ret_seen, seen, sizeof seen);
	return equal;
}

bool model_ck_cas_64_2(uint64_t *target, const uint64_t *expected, const uint64_t *desired,
		       uint64_t *ret_seen)
{
	return atomic_double_swap_at(target, expected, desired, ret_seen, PC);
}

void model_ck_store(void *target, const void *value)
{
	atomic_store_at(target, sizeof(void *), (uintptr_t)value, __ATOMIC_RELAXED, PC);
}

void *model_ck_exchange(void *target, void *value)
{
	return (void *)atomic_change_at(target, sizeof(void *), change_exchange, (uintptr_t)value,
					__ATOMIC_RELAXED, PC);
}

void model_ck_fence_store(void)
{
	if (fibers.running)
		atomic_fence_stores();
}

void model_ck_fence_load(void)
{
	if (fibers.running)
		atomic_fence_loads();
}
