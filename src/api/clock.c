/* SPDX-License-Identifier: MIT */
/* The public functions of clocks. */
#include "clock/counter.h"
#include "clock/tsc.h"
#include "clock/virtual.h"
#include "engine/misuse.h"
#include "memory/memory.h"
#include "turn/snapshot.h"

#include <errno.h>
#include <stddef.h>
#include <tickwheel/clock.h>
#include <tickwheel/loop.h>
#include <tickwheel/timeout.h>
#include <tickwheel/wall.h>

/* A clock of any type, and the allocator of its memory. */
struct owned_clock {
	union {
		/* each type of clock begins with this field, so pointers can be cast */
		struct tw_clock clock;
		struct twi_clock_virtual moved;
		struct twi_clock_system system;
		struct twi_clock_tsc tsc;
	};
	const struct tw_allocator *allocator; /* [const] */
};

_Static_assert(offsetof(struct twi_clock_virtual, clock) == 0, "a clock is found at its owner");
_Static_assert(offsetof(struct twi_clock_system, clock) == 0, "a clock is found at its owner");
_Static_assert(offsetof(struct twi_clock_tsc, system) == 0, "a clock is found at its owner");

static void owned_release(struct owned_clock *owned)
{
	const struct tw_allocator *allocator = owned->allocator;

	twi_release(allocator, owned, sizeof *owned, TWI_CACHE_LINE);
}

/*
 * Allocates a clock. Returns NULL if there is no memory. A clock has cache lines of its own,
 * because a clock of type TW_CLOCK_TSC stores its samples there (clock/tsc.c).
 */
static struct owned_clock *owned_allocate(void)
{
	const struct tw_allocator *allocator = twi_allocator();
	struct owned_clock *owned = twi_allocate_zeroed(allocator, sizeof *owned, TWI_CACHE_LINE);

	if (owned != NULL)
		owned->allocator = allocator;
	return owned;
}

static int owned_init(struct owned_clock *owned, enum tw_clock_type type)
{
	switch (type) {
	case TW_CLOCK_MONOTONIC:
		return twi_clock_monotonic_init(&owned->system);
	case TW_CLOCK_BOOTTIME:
		return twi_clock_boottime_init(&owned->system);
	case TW_CLOCK_COARSE:
		return twi_clock_coarse_init(&owned->system);
	case TW_CLOCK_TSC:
		twi_clock_tsc_init(&owned->tsc, twi_tsc_rate());
		return 0;
	default:
		return -EINVAL;
	}
}

int tw_clock_create(enum tw_clock_type type, struct tw_clock **ret_clock)
{
	struct owned_clock *owned;
	int error;

	if (ret_clock == NULL || (unsigned)type >= TW_CLOCK_VIRTUAL)
		return -EINVAL;
	owned = owned_allocate();
	if (owned == NULL)
		return -ENOMEM;
	error = owned_init(owned, type);
	if (error != 0)
		owned_release(owned);
	else
		*ret_clock = &owned->clock;
	return error;
}

int tw_clock_create_virtual(int64_t now_ns, struct tw_clock **ret_clock)
{
	struct owned_clock *owned;

	if (ret_clock == NULL || now_ns < 0 || now_ns == TW_NEVER)
		return -EINVAL;
	owned = owned_allocate();
	if (owned == NULL)
		return -ENOMEM;
	twi_clock_virtual_init(&owned->moved, now_ns);
	*ret_clock = &owned->clock;
	return 0;
}

int tw_clock_set(struct tw_clock *clock, int64_t now_ns)
{
	if (clock == NULL)
		return -EINVAL;
	return twi_clock_virtual_set(clock, now_ns) == 0
		       ? 0
		       : twi_misuse(NULL, TWI_MISUSE_CLOCK_SET, -EINVAL);
}

static int run_check(const struct tw_engine *engine, int64_t until_ns)
{
	if (engine == NULL || until_ns < 0 || until_ns == TW_NEVER)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (!engine->worker.clock->ops->moved || until_ns < twi_clock_now_ns(engine->worker.clock))
		return -EINVAL;
	return twi_engine_inside(engine) ? twi_misuse(engine, TWI_MISUSE_FLUSH_INSIDE, -EDEADLK)
					 : 0;
}

/*
 * Runs the timeouts that are due at the clock's present time. Returns the time when the next
 * timeout is due, or an error.
 */
static int64_t due_run(struct tw_engine *engine)
{
	struct twi_snapshot snapshot = {.due_only = true};
	int64_t error;

	if (engine->worker.loop) {
		error = tw_engine_poll(engine, 0);
		return error < 0 ? error : tw_engine_next_due(engine);
	}
	error = tw_engine_flush(engine, TW_NEVER);
	if (error == 0)
		error = twi_snapshot_ask(&engine->worker, &snapshot, INT64_MAX);
	return error != 0 ? error : snapshot.next_due_ns;
}

int tw_engine_run_until(struct tw_engine *engine, int64_t until_ns)
{
	int error = run_check(engine, until_ns);
	struct tw_clock *clock;
	int64_t next_ns;

	if (error != 0)
		return error;
	clock = engine->worker.clock;
	while ((next_ns = due_run(engine)) >= 0 && next_ns <= until_ns) {
		if (next_ns > twi_clock_now_ns(clock))
			(void)twi_clock_virtual_set(clock, next_ns);
	}
	if (next_ns < 0)
		return (int)next_ns;
	if (until_ns > twi_clock_now_ns(clock))
		(void)twi_clock_virtual_set(clock, until_ns);
	next_ns = due_run(engine);
	return next_ns < 0 ? (int)next_ns : 0;
}

int tw_clock_set_wall(struct tw_clock *clock, int64_t wall_ns)
{
	if (clock == NULL)
		return -EINVAL;
	return twi_clock_virtual_set_wall(clock, wall_ns) == 0
		       ? 0
		       : twi_misuse(NULL, TWI_MISUSE_CLOCK_SET, -EINVAL);
}

int64_t tw_clock_now(struct tw_clock *clock)
{
	return clock != NULL ? clock->ops->now_ns(clock) : -EINVAL;
}

int tw_clock_type(struct tw_clock *clock)
{
	return clock != NULL ? (int)clock->ops->type(clock) : -EINVAL;
}

int64_t tw_clock_lag(struct tw_clock *clock)
{
	return clock != NULL ? clock->lag_ns : -EINVAL;
}

int tw_clock_destroy(struct tw_clock *clock)
{
	if (clock == NULL)
		return 0;
	if (clock->ops->busy(clock))
		return twi_misuse(NULL, TWI_MISUSE_CLOCK_IN_USE, -EBUSY);
	owned_release(TWI_CONTAINER_OF(clock, struct owned_clock, clock));
	return 0;
}
