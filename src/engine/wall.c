/* SPDX-License-Identifier: MIT */
/*
 * The data that an engine needs for wall timeouts. The first wall timeout makes it (expiry/wall.h).
 *
 * Any thread may make the data, without a lock. It fills in all fields, and then publishes the data
 * by one compare-and-swap. A thread that loses the race destroys its own copy, and uses the
 * winner's.
 *
 * The watch counts each step of the wall clock, and wakes the worker. Before `open` is set, the
 * watch only counts, because the worker may not exist yet or may be set up again. The thread that
 * sets `open` then looks at the count. So either the watch or this thread wakes the worker.
 */
#include "expiry/wall.h"
#include "base/atomic.h"
#include "engine/engine.h"
#include "memory/memory.h"

#include <errno.h>

/*
 * Counts a step of the wall clock, and wakes the worker. The watch calls this function after each
 * step.
 */
static void wall_stepped(void *context)
{
	struct twi_wall *wall = context;

	/* E8: pairs with twi_wall_stepped(). The count must be raised before the wake. */
	(void)twi_fetch_add_seq_cst(&wall->own_steps, 1);
	TWI_TEST_POINT("wall:stepped");
	/* E8: pairs with twi_wall_open(). */
	if (twi_load_seq_cst(&wall->open))
		twi_park_wake(wall->park);
}

static TWI_WORKER_UNCHECKED void wall_free(struct twi_wall *wall)
{
	const struct tw_allocator *allocator = wall->allocator;

	if (wall->listed != NULL)
		twi_release(allocator, wall->listed, wall->listed_room * sizeof *wall->listed,
			    TWI_CACHE_LINE);
	twi_release(allocator, wall, sizeof *wall, TWI_CACHE_LINE);
}

TWI_WORKER_UNCHECKED int twi_wall_create(struct twi_worker *worker, struct twi_wall **ret_wall)
{
	struct tw_clock *clock = worker->clock;
	struct twi_wall *wall =
		twi_allocate_zeroed(worker->allocator, sizeof *wall, TWI_CACHE_LINE);
	int error;

	if (wall == NULL)
		return -ENOMEM;
	wall->allocator = worker->allocator;
	wall->park = &worker->park;
	wall->watched = clock->ops->wall_steps == NULL;
	if (wall->watched) {
		wall->steps = &wall->own_steps;
		error = twi_step_watch_start(&wall->watch, wall_stepped, wall);
		if (error != 0) {
			wall_free(wall);
			return error;
		}
	} else {
		wall->steps = clock->ops->wall_steps(clock);
		/* E8: the wall clock, which is read below, shows all steps of this count. */
		wall->steps_seen = twi_load_seq_cst(wall->steps);
	}
	/* The watch counts each step from here on. */
	wall->ahead_ns = twi_wall_ahead_ns(clock);
	*ret_wall = wall;
	return 0;
}

void twi_wall_open(struct twi_wall *wall)
{
	/* E8: pairs with wall_stepped(). The store must come before the look at the count. */
	twi_store_seq_cst(&wall->open, true);
	/* E8: as above. */
	if (twi_load_seq_cst(&wall->own_steps) != 0)
		twi_park_wake(wall->park);
}

void twi_wall_unwatch(struct twi_wall *wall)
{
	if (wall == NULL || !wall->watched)
		return;
	wall->watched = false;
	twi_step_watch_end(&wall->watch);
}

void twi_wall_destroy(struct twi_wall *wall, bool forked)
{
	if (wall == NULL)
		return;
	if (wall->watched && forked)
		twi_step_watch_forget(&wall->watch);
	else
		twi_wall_unwatch(wall);
	wall_free(wall);
}

int twi_engine_wall(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;
	struct twi_wall *expected = NULL;
	struct twi_wall *wall;
	int error;

	if (TWI_LIKELY(twi_wall_of(worker) != NULL))
		return 0;
	error = twi_wall_create(worker, &wall);
	if (error != 0)
		return error;
	TWI_TEST_POINT("wall:made");
	/*
	 * RELAXED: the swap below publishes the mark. It must be set before any thread can push a
	 * timeout with a date.
	 */
	(void)twi_fetch_or_relaxed(&worker->marks, TWI_MARK_WALL);
	/* E110: pairs with twi_wall_of(), so that its caller finds all fields. */
	if (!twi_cas_acq_rel(&worker->wall, &expected, wall)) {
		twi_wall_destroy(wall, false);
		return 0;
	}
	twi_wall_open(wall);
	return 0;
}
