/* SPDX-License-Identifier: MIT */
/*
 * One turn of the worker, and the check of its wheel.
 */
#include "worker/direct.h"

#include "base/atomic.h"
#include "base/tick.h"
#include "mech/log.h"

/* Sums and the sleep hint: what a turn can afford. */
static TWI_WORKER_ONLY const char *cheap_check(const struct twi_wheel *wheel)
{
	if (wheel->count == 0 && twi_wheel_next_due(wheel) != TWI_TICK_NEVER)
		return "an empty wheel has something due";
	if (wheel->count != 0 && twi_wheel_next_due(wheel) <= wheel->now)
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

/* RELAXED: one writer, numbers for the curious. */
static TWI_WORKER_ONLY void turn_count(struct twi_worker *worker)
{
	twi_count_add(&worker->turn_count, 1);
	twi_store_relaxed(&worker->wheel_bytes, twi_wheel_bytes(worker->wheel));
	twi_store_relaxed(&worker->wheel_block_count, worker->wheel->chunks.block_count);
	twi_store_relaxed(&worker->cascaded_count, worker->wheel->cascaded);
}

/* Who polls may tell an earlier time than before: the latest counts. */
static TWI_WORKER_ONLY uint64_t tick_at(const struct twi_worker *worker, int64_t now_ns)
{
	const struct twi_wheel *wheel = worker->wheel;
	uint64_t tick = twi_since(now_ns, wheel->epoch_ns) / wheel->tick_ns;

	return tick > wheel->horizon ? tick : wheel->horizon;
}

unsigned twi_worker_turn(struct twi_worker *worker)
{
	return twi_worker_turn_at(worker, twi_clock_now_ns(worker->clock));
}

unsigned twi_worker_turn_at(struct twi_worker *worker, int64_t now_ns)
{
	/*
	 * Before ingress is looked at: what is pushed later has a deadline after this, so the wheel
	 * never passes the tick of a timeout that it has not seen.
	 */
	uint64_t limit = tick_at(worker, now_ns);
	unsigned left;

	/*
	 * E8: what is pushed from here on wakes us, or is seen before we sleep. An exchange: of the
	 * units that it takes away, it acquires the pushes, which this turn sees.
	 */
	(void)twi_exchange_acquire(&worker->unseen, 0);
	if (TWI_UNLIKELY(worker->wheel->later != NULL))
		twi_wheel_later_in(worker->wheel);
	if (TWI_UNLIKELY(worker->wheel->refused != NULL))
		twi_wheel_refused_in(worker->wheel, limit, TWI_DUE_BATCH);
	left = twi_worker_reclaim(worker, worker->transfer_batch);
	left |= twi_worker_transfer(worker, worker->transfer_batch);
	TWI_TEST_POINT("turn:transferred");
	/* What a callback schedules for the past waits for the next turn, or this one might not end. */
	worker->direct_from_ns = twi_worker_boundary_ns(worker, limit);
	twi_fresh_judge(worker);
	left |= twi_worker_expire(worker, limit);
	/* Chains that have to catch up: one run a turn, and this turn follows at once. */
	if (TWI_UNLIKELY(worker->wheel->later != NULL))
		left |= TWI_LEFT_MORE;
	/* The executor has room again: the next few. */
	if (TWI_UNLIKELY(worker->wheel->refused != NULL) &&
	    twi_wheel_refused_left(worker->wheel, limit))
		left |= TWI_LEFT_MORE;
	if (TWI_UNLIKELY(worker->check != TW_CHECK_NONE))
		wheel_check(worker);
	turn_count(worker);
	return left;
}
