/* SPDX-License-Identifier: MIT */
#include "thread/presence.h"

#include "thread/barrier.h"
#include "thread/futex.h"
#include "thread/thread.h"

enum {
	/*
	 * How soon to look again. A thread stays between set and clear for longer only if it was
	 * preempted.
	 */
	LOOK_AGAIN_NS = 100 * 1000,
};

static struct twi_presence presences[TWI_LANE_SHARED];

struct twi_presence *twi_presence_of_lane(uint32_t lane)
{
	return lane == TWI_LANE_SHARED || !twi_barrier_able() ? NULL : &presences[lane];
}

/* Returns false if the mark is still set at `until_ns`. */
static bool presence_wait(struct twi_presence *presence, int64_t until_ns)
{
	/*
	 * E162: pairs with twi_presence_leave(), so that all accesses of the thread come before
	 * what the finisher does next. Rests between the looks. If it waited to be woken instead,
	 * each clear would have to check for waiters.
	 */
	while (twi_load_acquire(&presence->inside) != 0)
		if (!twi_futex_rest_until(LOOK_AGAIN_NS, until_ns))
			return false;
	return true;
}

bool twi_presences_wait(int64_t until_ns)
{
	bool clear = true;

	if (!twi_barrier_able())
		return true;
	/*
	 * E162: the barrier must come after the engine is closed, and before presence_wait() reads
	 * the marks.
	 */
	twi_barrier_force();
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED && clear; lane++)
		clear = presence_wait(&presences[lane], until_ns);
	return clear;
}

void twi_presences_forget(void)
{
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		/* RELAXED: no other thread exists. */
		twi_store_relaxed(&presences[lane].inside, 0);
}
