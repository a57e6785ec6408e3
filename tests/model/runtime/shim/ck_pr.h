/* SPDX-License-Identifier: MIT */
/*
 * Replaces ConcurrencyKit's header of the same name, so that ck_stack.h runs on the model's memory.
 *
 * Loads and swaps are relaxed, and the two fences order no more than their names say (only stores,
 * only loads), as on a processor with weak memory.
 */
#ifndef CK_PR_H
#define CK_PR_H

#include <ck_cc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CK_F_PR_CAS_PTR_2_VALUE

bool model_ck_cas_64_2(uint64_t *target, const uint64_t *expected, const uint64_t *desired,
		       uint64_t *ret_seen);
void *model_ck_load(const void *target);
bool model_ck_swap(void *target, void *expected, void *desired, void *ret_seen);
bool model_ck_swap_2(void *target, void *expected, void *desired, void *ret_seen);
void model_ck_store(void *target, const void *value);
void *model_ck_exchange(void *target, void *value);
void model_ck_fence_store(void);
void model_ck_fence_load(void);
extern _Atomic unsigned model_fence;

#define ck_pr_load_ptr(source) ((CK_CC_TYPEOF(*(source), (void *)))model_ck_load(source))
#define ck_pr_store_ptr(target, value) model_ck_store((target), (value))
#define ck_pr_cas_ptr_value(target, expected, desired, seen)                                       \
	model_ck_swap((target), (expected), (desired), (seen))
#define ck_pr_cas_ptr_2_value(target, expected, desired, seen)                                     \
	model_ck_swap_2((target), (expected), (desired), (seen))
#define ck_pr_cas_64_2_value(target, expected, desired, seen)                                      \
	model_ck_cas_64_2((target), (expected), (desired), (seen))
#define ck_pr_fas_ptr(target, value) model_ck_exchange((target), (value))
#define ck_pr_fence_store_atomic() model_ck_fence_store()
#define ck_pr_fence_store() model_ck_fence_store()
#define ck_pr_fence_load() model_ck_fence_load()
/*
 * Stands for a full fence. Of two threads that make it, the second sees all that the first did
 * before, because both change one word.
 */
#define ck_pr_fence_strict_memory()                                                                \
	((void)atomic_fetch_add_explicit(&model_fence, 1, memory_order_acq_rel))

static inline bool ck_pr_cas_ptr(void *target, void *expected, void *desired)
{
	void *seen;

	return model_ck_swap(target, expected, desired, &seen);
}

#endif
