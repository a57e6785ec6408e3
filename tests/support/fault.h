/* SPDX-License-Identifier: MIT */
/*
 * An allocator for tw_memory_allocator_set. It fails on demand and counts the memory that is in
 * use.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/memory.h>

struct fault {
	struct tw_allocator allocator;
	/* How many calls of allocate (or of fault_hit) were made. */
	atomic_llong calls;
	/* The first call that fails, counted from 1. 0: none. */
	atomic_llong fail_from;
	/* The last call that fails. */
	atomic_llong fail_to;
	/* How many calls failed. */
	atomic_llong failed;
	/* How many bytes are allocated and not released. */
	atomic_llong live_bytes;
	/* How many releases had an implausible size or alignment. */
	atomic_llong bad_releases;
};

void fault_init(struct fault *fault);

/* Makes the k-th call from now fail (counted from 1), and the `count` - 1 calls after it. */
void fault_arm(struct fault *fault, long long k, long long count);
void fault_disarm(struct fault *fault);

/* Counts a call of the operation that can fail. Returns true if this call must fail. */
bool fault_hit(struct fault *fault);

#endif
