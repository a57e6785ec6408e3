/* SPDX-License-Identifier: MIT */
/* An allocator that refuses pages of far lanes. So threads beyond the near numbers share a lane. */
#ifndef FREEZE_NO_LANES_H
#define FREEZE_NO_LANES_H

#include "race.h"
#include "worker/lane.h"

#include <stdlib.h>
#include <tickwheel.h>

static void *no_lanes_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	if (bytes % sizeof(struct twi_lane_block) == 0)
		return NULL;
	return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void no_lanes_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

/* Sets this allocator. Must be called before the first engine is created. */
static inline void no_lanes_set(void)
{
	static const struct tw_allocator allocator = {
		.allocate = no_lanes_allocate,
		.release = no_lanes_release,
	};

	RACE_CHECK(tw_memory_allocator_set(&allocator) == 0);
}

#endif
