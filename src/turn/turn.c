/* SPDX-License-Identifier: MIT */
/*
 * One turn of the worker, and the check of its wheel. A turn has three steps:
 *
 *     1. reclaim the nodes that came by a cancel queue
 *     2. transfer a batch out of rings and ingress queues
 *     3. expire the timeouts that are due
 *
 * A ring holds both kinds of nodes, those to reclaim and those to transfer, in the order of the
 * pushes. Step 2 handles both. If more than a batch waits, the next turn follows at once. Otherwise
 * the worker parks until the next due tick.
 */
#include "turn/turn.h"

#include "base/atomic.h"
#include "expiry/expire.h"
#include "expiry/wall.h"
#include "ingress/reclaim.h"
#include "ingress/transfer.h"
#include "thread/log.h"
#include "turn/fresh.h"
#include "worker/left.h"
#include "worker/role.h"

/* Checks only the count and the next due tick, because this is cheap enough for every turn. */
static TWI_WORKER_ONLY const char *cheap_check(const struct twi_wheel *wheel)
{
	if (wheel->count == 0 && twi_wheel_next_due(wheel) != TWI_TICK_NEVER)
		return "an empty wheel has something due";
	if (wheel->count != 0 && twi_wheel_next_due(wheel) < wheel->now + !wheel->open)
		return "something is due in the past";
	return NULL;
}

static TWI_COLD TWI_WORKER_ONLY void wheel_check(struct twi_worker *worker)
{
	const char *wrong = worker->check == TW_CHECK_FULL ? twi_wheel_check(worker->wheel)
							   : cheap_check(worker->wheel);

	if (wrong == NULL)
		return;
	twi_count_add(&worker->check_failure_count, 1);
	twi_log(TW_LOG_ERROR, wrong);
}

/* RELAXED: the worker is the only writer, and readers use the numbers only as statistics. */
static TWI_WORKER_ONLY void turn_count(struct twi_worker *worker)
{
	twi_count_add(&worker->turn_count, 1);
	twi_store_relaxed(&worker->wheel_bytes, twi_wheel_bytes(worker->wheel));
	twi_store_relaxed(&worker->wheel_block_count, worker->wheel->chunks.block_count);
	twi_store_relaxed(&worker->cascaded_count, worker->wheel->cascaded);
}

/*
 * Ends a turn in which timeouts were put aside, or a chain is behind. The next turn must follow at
 * once, because such a chain gets one run per turn. The timeouts that were put aside must come
 * before all that are scheduled from now on.
 */
static TWI_COLD TWI_WORKER_ONLY unsigned later_end(struct twi_worker *worker)
{
	if (worker->ordered && twi_worker_open(worker))
		twi_wheel_later_in(worker->wheel);
	return TWI_LEFT_MORE;
}

/*
 * Ends a turn of an engine with checks or with dates. If a step of the wall clock has made timeouts
 * due, they run in the same turn, so that a poll runs all due timeouts.
 */
static TWI_COLD TWI_WORKER_ONLY unsigned marked_end(struct twi_worker *worker, uint64_t limit)
{
	struct twi_wall *wall = twi_wall_of(worker);
	unsigned left = TWI_LEFT_NOTHING;

	if (wall != NULL && twi_wall_turn(worker, wall))
		left = twi_worker_expire(worker, limit) | TWI_LEFT_MORE;
	if (worker->check != TW_CHECK_NONE)
		wheel_check(worker);
	return left;
}

unsigned twi_worker_turn(struct twi_worker *worker)
{
	return twi_worker_turn_at(worker, twi_clock_now_ns(worker->clock));
}

unsigned twi_worker_turn_at(struct twi_worker *worker, int64_t now_ns)
{
	/*
	 * The tick must be computed before the worker looks at ingress. A timeout that is pushed
	 * later has a deadline after this time, so the wheel never passes the tick of a timeout
	 * that it has not seen.
	 */
	uint64_t limit = twi_wheel_limit(worker->wheel, now_ns);
	unsigned left;

	/*
	 * E8: a push after this exchange either wakes the worker, or is seen before the sleep. The
	 * exchange must acquire, because this turn has to see the pushes of the units that it takes
	 * away.
	 */
	(void)twi_exchange_acquire(&worker->units_pending, 0);
	if (TWI_UNLIKELY(worker->wheel->later != NULL))
		twi_wheel_later_in(worker->wheel);
	if (TWI_UNLIKELY(worker->wheel->rejected != NULL))
		twi_wheel_rejected_in(worker->wheel, limit, TWI_DUE_BATCH);
	left = twi_worker_reclaim(worker, worker->transfer_batch);
	left |= twi_worker_transfer(worker, worker->transfer_batch);
	TWI_TEST_POINT("turn:transferred");
	/*
	 * A timeout that a callback schedules for the past waits for the next turn. Otherwise this
	 * turn might never end.
	 */
	worker->direct_from_ns = twi_wheel_due_before_ns(worker->wheel, limit);
	twi_fresh_update(worker);
	left |= twi_worker_expire(worker, limit);
	if (TWI_UNLIKELY(worker->wheel->later != NULL))
		left |= later_end(worker);
	/*
	 * The executor may accept more timeouts within this tick, so the next turn offers it some
	 * of the rejected ones.
	 */
	if (TWI_UNLIKELY(worker->wheel->rejected != NULL) &&
	    twi_wheel_rejected_left(worker->wheel, limit))
		left |= TWI_LEFT_MORE;
	/* RELAXED: see mark.h. */
	if (TWI_UNLIKELY((twi_load_relaxed(&worker->marks) & (TWI_MARK_CHECK | TWI_MARK_WALL)) !=
			 0))
		left |= marked_end(worker, limit);
	turn_count(worker);
	return left;
}
