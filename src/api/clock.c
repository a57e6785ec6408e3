/* SPDX-License-Identifier: MIT */
/*
 * Virtual clocks, as users see them.
 */
#include "mech/clock_virtual.h"
#include "mech/memory.h"

#include <errno.h>
#include <stddef.h>
#include <tickwheel/clock.h>
#include <tickwheel/timeout.h>

/* A virtual clock, and where its memory came from. */
struct owned_clock {
	struct twi_clock_virtual clock;
	const struct tw_allocator *allocator; /* [const] */
};

int tw_clock_create_virtual(int64_t now_ns, struct tw_clock **ret_clock)
{
	const struct tw_allocator *allocator = twi_allocator();
	struct owned_clock *owned;

	if (ret_clock == NULL || now_ns < 0 || now_ns == TW_NEVER)
		return -EINVAL;
	owned = twi_allocate_zeroed(allocator, sizeof *owned, _Alignof(struct owned_clock));
	if (owned == NULL)
		return -ENOMEM;
	owned->allocator = allocator;
	twi_clock_virtual_init(&owned->clock, now_ns);
	*ret_clock = &owned->clock.clock;
	return 0;
}

int tw_clock_set(struct tw_clock *clock, int64_t now_ns)
{
	return clock != NULL ? twi_clock_virtual_set(clock, now_ns) : -EINVAL;
}

int tw_clock_destroy(struct tw_clock *clock)
{
	struct owned_clock *owned = TWI_CONTAINER_OF(clock, struct owned_clock, clock.clock);
	const struct tw_allocator *allocator;

	if (clock == NULL)
		return 0;
	if (twi_clock_virtual_busy(clock))
		return -EBUSY;
	allocator = owned->allocator;
	allocator->release(allocator->context, owned, sizeof *owned, _Alignof(struct owned_clock));
	return 0;
}
