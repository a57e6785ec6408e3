/* SPDX-License-Identifier: MIT */
/*
 * An allocator that rejects memory for the rings of lanes. Engines created while it is set push
 * everything to the link queues. An engine keeps the allocator that it was created with.
 */
#ifndef TESTS_RINGLESS_H
#define TESTS_RINGLESS_H

#include "queue/ring.h"

#include <stdlib.h>
#include <tickwheel/memory.h>

static inline void *ringless_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	if (bytes == twi_ring_bytes(TWI_RING_LEAST - 1) && align == TWI_CACHE_LINE)
		return NULL;
	return posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) == 0
		       ? memory
		       : NULL;
}

static inline void ringless_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

static const struct tw_allocator ringless_allocator = {
	.allocate = ringless_allocate,
	.release = ringless_release,
};

/* Sets whether engines created from now on have no rings. */
static inline void ringless_set(bool ringless)
{
	(void)tw_memory_allocator_set(ringless ? &ringless_allocator : NULL);
}

#endif
