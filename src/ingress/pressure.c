/* SPDX-License-Identifier: MIT */
/*
 * Slows down producers that outrun the worker. A cancelled timeout takes memory until the worker
 * reclaims it. To bound this memory, threads that schedule must pause. The more cancelled timeouts
 * wait to be reclaimed, the longer is the pause.
 *
 * Progress. Bounded: a thread yields, or sleeps for a second at most, once in TWI_THROTTLE_UNIT
 * schedules. The length of the pause does not depend on the worker's progress meanwhile. The thread
 * pauses outside its RCU section, so it does not delay stop.
 */
#include "ingress/pressure.h"

#include "base/atomic.h"
#include "ingress/far.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
	/*
	 * If this many cancelled timeouts wait to be reclaimed (16 MiB), a thread yields. At 64 MiB
	 * it sleeps.
	 */
	LEFT_TO_YIELD = 1 << 18,
	LEFT_TO_SLEEP = 1 << 20,
	/*
	 * The worker reclaims 5 to 15 M nodes a second. All producers together must schedule less.
	 * Each producer schedules TWI_THROTTLE_UNIT timeouts between two pauses, so the pause must
	 * grow with the number of producers. With 1 ms for each LANES_PER_MS of them, they schedule
	 * at most 5 M a second together. SLEEP_MAX_MS bounds the pause before it is multiplied in
	 * this way, SLEEP_MOST_MS afterwards.
	 */
	LANES_PER_MS = 5,
	SLEEP_MAX_MS = 10,
	SLEEP_MOST_MS = 1000,
};

/*
 * Adds to the engine's sum the cancels that the lane has counted since the last call. Returns the
 * sum. Each thread calls this once in TWI_UNIT_TIMEOUTS cancels, so up to about TWI_UNIT_TIMEOUTS
 * cancels of each thread are missing from the sum.
 *
 * RELAXED: numbers for an estimate. In the shared lane several threads may do this at once. The
 * exchange gives each difference to one of them, so each is added once. A negative difference wraps
 * around, and the sum is right again when all threads have added theirs.
 */
static uint64_t cancelled_sum(struct twi_worker *worker, struct twi_lane *lane)
{
	/* RELAXED: see above. */
	uint64_t cancelled = twi_load_relaxed(&lane->cancelled_count);
	/* RELAXED: see above. */
	uint64_t more = cancelled - twi_exchange_relaxed(&lane->summed_count, cancelled);

	/* RELAXED: see above. */
	return twi_fetch_add_relaxed(&worker->cancelled_sum, more) + more;
}

TWI_COLD void twi_cancelled_units_add(struct twi_worker *worker, struct twi_lane *lane,
				      uint32_t units)
{
	(void)cancelled_sum(worker, lane);
	twi_units_add(worker, units);
}

/* Estimates how many cancelled timeouts are not reclaimed yet. */
static uint64_t left_behind(struct twi_worker *worker, struct twi_lane *lane)
{
	/* RELAXED: numbers for an estimate. */
	uint64_t reclaimed = twi_load_relaxed(&worker->reclaimed_count);
	int64_t left = (int64_t)(cancelled_sum(worker, lane) - reclaimed);

	return left > 0 ? (uint64_t)left : 0;
}

/* Returns how long a thread must sleep, in ms. */
static uint64_t sleep_for(struct twi_worker *worker, uint64_t left)
{
	uint64_t sleep_ms = left / LEFT_TO_SLEEP;
	/* RELAXED: a number for an estimate, which publishes nothing. */
	uint64_t times = twi_load_relaxed(&worker->lanes_seen) / LANES_PER_MS;

	if (sleep_ms > SLEEP_MAX_MS)
		sleep_ms = SLEEP_MAX_MS;
	if (times > 1)
		sleep_ms *= times;
	return sleep_ms < SLEEP_MOST_MS ? sleep_ms : SLEEP_MOST_MS;
}

TWI_COLD unsigned twi_throttle_level(struct twi_worker *worker, const struct twi_thread *thread)
{
	uint64_t left = left_behind(worker, twi_lane_of(worker, thread));

	/* The worker must not pause, because only the worker reclaims. */
	if (left < LEFT_TO_YIELD || thread->worker == worker)
		return TWI_THROTTLE_FREE;
	return TWI_THROTTLE_YIELD + (unsigned)sleep_for(worker, left);
}

TWI_COLD void twi_throttle_wait(unsigned way)
{
	unsigned sleep_ms = way - TWI_THROTTLE_YIELD;
	struct timespec pause = {
		.tv_sec = sleep_ms / 1000,
		.tv_nsec = sleep_ms % 1000 * 1000000L,
	};
	int cancel_state;

	if (way == TWI_THROTTLE_YIELD) {
		(void)sched_yield();
		return;
	}
	/*
	 * If the thread were cancelled (pthread_cancel) here, the schedule would not return, and
	 * its caller could not know that the timeout is scheduled.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	(void)nanosleep(&pause, NULL);
	(void)pthread_setcancelstate(cancel_state, NULL);
}
