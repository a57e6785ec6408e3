/* SPDX-License-Identifier: MIT */
/*
 * An allocator for tw_memory_allocator_set that fails on demand and keeps count of what is out.
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/memory.h>

struct fault {
	struct tw_allocator allocator;
	/* Calls of allocate (or of fault_hit) so far. */
	atomic_llong calls;
	/* The first call that fails, counted from 1; 0: none. */
	atomic_llong fail_from;
	/* The last call that fails. */
	atomic_llong fail_to;
	/* Calls that failed. */
	atomic_llong failed;
	/* Bytes given out and not taken back. */
	atomic_llong live_bytes;
	/* Releases whose size or alignment was not a plausible one. */
	atomic_llong bad_releases;
};

void fault_init(struct fault *fault);

/* Lets the k-th call from now, counted from 1, and the `count` - 1 after it fail. */
void fault_arm(struct fault *fault, long long k, long long count);
void fault_disarm(struct fault *fault);

/* Counts a call of whatever the fault stands for. True: this call is to fail. */
bool fault_hit(struct fault *fault);

#endif
