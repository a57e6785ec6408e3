/* SPDX-License-Identifier: MIT */
/*
 * Producers that outrun the worker. What they cancel is memory until the worker comes to it; so that
 * it stays bounded, whoever schedules gives way: the more, the more is left behind.
 *
 * Progress. Bounded: a thread yields or sleeps a few milliseconds at most, once in TWI_WAY_UNIT
 * schedules, outside its read-side section, and whatever the worker does meanwhile.
 */
#include "worker/worker.h"

#include "base/atomic.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum {
	/* Cancelled timeouts of which the memory waits, 16 and 64 MiB: more, and one gives way. */
	LEFT_TO_YIELD = 1 << 18,
	LEFT_TO_SLEEP = 1 << 20,
	SLEEP_MAX_MS = 10,
};

/* Cancelled, and not free again. */
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

TWI_COLD unsigned twi_way_judge(const struct twi_worker *worker, const struct twi_thread *thread)
{
	uint64_t left = left_behind(worker);
	uint64_t sleep_ms = left / LEFT_TO_SLEEP;

	/* The worker itself would wait for nobody. */
	if (left < LEFT_TO_YIELD || thread->worker == worker)
		return TWI_WAY_FREE;
	return TWI_WAY_YIELD + (unsigned)(sleep_ms < SLEEP_MAX_MS ? sleep_ms : SLEEP_MAX_MS);
}

TWI_COLD void twi_way_give(unsigned way)
{
	struct timespec pause = {.tv_nsec = (way - TWI_WAY_YIELD) * 1000000L};
	int cancel_state;

	if (way == TWI_WAY_YIELD) {
		(void)sched_yield();
		return;
	}
	/* Cancelled in here, the caller would not know of a timeout that is scheduled. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	(void)nanosleep(&pause, NULL);
	(void)pthread_setcancelstate(cancel_state, NULL);
}
