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
 * would have to check whether a thread waits, and wake it. Returns false if the pin still holds
 * `engine` at `until_ns`.
 */
static bool pin_wait(struct twi_pin *pin, const void *engine, int64_t until_ns)
{
	/*
	 * E100: pairs with twi_pin_set() and twi_pin_clear(), so that the pinning thread's writes
	 * to the engine come before the engine is freed.
	 */
	while (twi_load_acquire(&pin->engine) == engine)
		if (!twi_futex_rest_until(LOOK_AGAIN_NS, until_ns))
			return false;
	return true;
}

bool twi_pins_wait(const void *engine, int64_t until_ns)
{
	bool free = true;

	for (uint32_t lane = 0; lane < TWI_LANE_SHARED && free; lane++)
		free = pin_wait(&pins[lane], engine, until_ns);
	return free;
}

void twi_pins_forget(void)
{
	for (uint32_t lane = 0; lane < TWI_LANE_SHARED; lane++)
		/* RELAXED: no other thread exists. */
		twi_store_relaxed(&pins[lane].engine, NULL);
}
