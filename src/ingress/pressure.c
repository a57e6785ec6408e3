/* SPDX-License-Identifier: MIT */
/*
 * Slows down producers that outrun the worker. A cancelled timeout takes memory until the worker
 * reclaims it. To bound this memory, threads that schedule must pause: the more memory waits, the
 * longer.
 *
 * Progress. Bounded: a thread yields, or sleeps a few milliseconds at most, once in
 * TWI_THROTTLE_UNIT schedules. It does so outside its read-side section, whatever the worker does
 * meanwhile.
 */
#include "ingress/pressure.h"

#include "base/atomic.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
	/*
	 * If so many cancelled timeouts wait to be reclaimed (16 MiB or 64 MiB), a thread yields or
	 * sleeps.
	 */
	LEFT_TO_YIELD = 1 << 18,
	LEFT_TO_SLEEP = 1 << 20,
	SLEEP_MAX_MS = 10,
};

/* Returns how many cancelled timeouts are not reclaimed yet. */
static uint64_t left_behind(const struct twi_worker *worker)
{
	/* RELAXED: numbers for an estimate. */
	uint64_t reclaimed = twi_load_relaxed(&worker->reclaimed_count);
	/* RELAXED: likewise. */
	uint64_t used = twi_load_relaxed(&worker->lanes_used);
	uint64_t cancelled = 0;

	for (; used != 0; used &= used - 1) {
		const struct twi_lane *lane = &worker->lane[__builtin_ctzll(used)];

		/* RELAXED: likewise. */
		cancelled += twi_load_relaxed(&lane->cancelled_count);
	}
	return cancelled > reclaimed ? cancelled - reclaimed : 0;
}

TWI_COLD unsigned twi_throttle_level(const struct twi_worker *worker,
				     const struct twi_thread *thread)
{
	uint64_t left = left_behind(worker);
	uint64_t sleep_ms = left / LEFT_TO_SLEEP;

	/* The worker must not pause, because only its own work reduces the number. */
	if (left < LEFT_TO_YIELD || thread->worker == worker)
		return TWI_THROTTLE_FREE;
	return TWI_THROTTLE_YIELD + (unsigned)(sleep_ms < SLEEP_MAX_MS ? sleep_ms : SLEEP_MAX_MS);
}

TWI_COLD void twi_throttle_wait(unsigned way)
{
	struct timespec pause = {.tv_nsec = (way - TWI_THROTTLE_YIELD) * 1000000L};
	int cancel_state;

	if (way == TWI_THROTTLE_YIELD) {
		(void)sched_yield();
		return;
	}
	/*
	 * If the thread were cancelled (pthread_cancel) here, its caller would not learn that the
	 * timeout is scheduled.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	(void)nanosleep(&pause, NULL);
	(void)pthread_setcancelstate(cancel_state, NULL);
}
