/* SPDX-License-Identifier: MIT */
#include "thread/pin.h"

#include "thread/futex.h"
#include "thread/thread.h"

enum {
	/*
	 * How soon to look again. A thread stays between set and clear for longer only if it was
	 * preempted.
	 */
	LOOK_AGAIN_NS = 100 * 1000,
};

static struct twi_pin pins[TWI_LANE_SHARED];

struct twi_pin *twi_pin_of_lane(uint32_t lane)
{
	return lane == TWI_LANE_SHARED ? NULL : &pins[lane];
}

/*
 * Waits until the pin does not hold `engine`. Looks again and again, because otherwise each clear
 * would have to check whether a thread waits, and wake it.
 */
static void pin_wait(struct twi_pin *pin, const void *engine)
{
	/*
	 * E100: pairs with twi_pin_set() and twi_pin_clear(), so that the pinning thread's writes
	 * to the engine come before the engine is freed.
	 */
	while (twi_load_acquire(&pin->engine) == engine)
		twi_futex_rest(LOOK_AGAIN_NS);
}

void twi_pins_wait(const void *engine)
{
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		pin_wait(&pins[lane], engine);
}

void twi_pins_forget(void)
{
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		/* RELAXED: no other thread exists. */
		twi_store_relaxed(&pins[lane].engine, NULL);
}
