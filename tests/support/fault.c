/* SPDX-License-Identifier: MIT */
/* An allocator that fails on demand. */
#include "fault.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool fault_hit(struct fault *fault)
{
	long long call = atomic_fetch_add(&fault->calls, 1) + 1;
	long long from = atomic_load(&fault->fail_from);

	if (from == 0 || call < from || call > atomic_load(&fault->fail_to))
		return false;
	atomic_fetch_add(&fault->failed, 1);
	return true;
}

static void *fault_allocate(void *context, size_t bytes, size_t align)
{
	struct fault *fault = context;
	void *memory = NULL;

	if (fault_hit(fault))
		return NULL;
	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&memory, align, bytes) != 0)
		return NULL;
	atomic_fetch_add(&fault->live_bytes, (long long)bytes);
	return memory;
}

static void fault_release(void *context, void *memory, size_t bytes, size_t align)
{
	struct fault *fault = context;

	if (memory == NULL || bytes == 0 || (align & (align - 1)) != 0)
		atomic_fetch_add(&fault->bad_releases, 1);
	atomic_fetch_sub(&fault->live_bytes, (long long)bytes);
	/* Overwrites the memory, so that a caller that still uses it finds other bytes. */
	if (memory != NULL)
		memset(memory, 0xdf, bytes);
	free(memory);
}

void fault_init(struct fault *fault)
{
	*fault = (struct fault){.allocator = {fault_allocate, fault_release, fault}};
}

void fault_arm(struct fault *fault, long long k, long long count)
{
	long long from = atomic_load(&fault->calls) + k;

	atomic_store(&fault->fail_to, count == LLONG_MAX ? LLONG_MAX : from + count - 1);
	atomic_store(&fault->fail_from, from);
}

void fault_disarm(struct fault *fault)
{
	atomic_store(&fault->fail_from, 0);
}
