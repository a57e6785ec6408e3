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

static void presence_wait(struct twi_presence *presence)
{
	/*
	 * E162: pairs with twi_presence_leave(), so that all accesses of the thread come before
	 * what the finisher does next. Rests between the looks. If it waited to be woken instead,
	 * each clear would have to check for waiters.
	 */
	while (twi_load_acquire(&presence->inside) != 0)
		twi_futex_rest(LOOK_AGAIN_NS);
}

void twi_presences_wait(void)
{
	if (!twi_barrier_able())
		return;
	/*
	 * E162: pairs with the fence in twi_presence_enter(). The barrier must come after the
	 * engine is closed, and before presence_wait() reads the marks. The same stop has already
	 * waited for a grace period, which makes such a barrier, and ends the process if the system
	 * forbids it. So a failure here is temporary.
	 */
	while (!twi_barrier_all())
		twi_futex_rest(LOOK_AGAIN_NS);
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		presence_wait(&presences[lane]);
}

void twi_presences_forget(void)
{
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		/* RELAXED: no other thread exists. */
		twi_store_relaxed(&presences[lane].inside, 0);
}
