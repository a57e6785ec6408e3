/* SPDX-License-Identifier: MIT */
/*
 * Pins. A pin keeps the memory of one engine for the few steps of one thread: a hazard pointer, which the
 * swap of a timeout's state word validates.
 *
 * Why. A rescheduler counts in the engine after its swap, when its timeout no longer keeps the engine. A
 * critical section (mech/rcu.h) keeps the engine too, but its entry and exit take 20 instructions more.
 * A pin takes two stores, to a cache line that only this thread writes.
 *
 * Protocol. The thread stores the engine's address in its pin, swaps the state word of a pending timeout of
 * that engine, writes to the engine, and clears the pin. The finisher of an engine waits until no pin
 * holds its address. It does so after all timeouts have ended, and before it says STOPPED.
 *
 * The finisher misses no pin, and no fence is needed for that. A swap that succeeds comes before the end of
 * its timeout. The step that ends a rescheduled timeout acquires what the swap released, with the pin
 * before it. All ends come before the finisher's wait. So the finisher reads the engine's address, or a
 * later value of the pin; a later value was stored after the thread wrote to the engine (E100).
 *
 * If the swap fails, the thread touches nothing of the engine. The address may then be that of a freed
 * engine, or of another engine at the same place. Nobody follows it. The finisher of that other engine
 * waits in vain, until the thread clears the pin.
 *
 * Owners. Each of the lane numbers 0 to 62 has one pin. The thread that has the lane writes it. Threads that
 * share the last lane have no pin, and use a critical section instead.
 *
 * Progress. set and clear are wait-free. wait blocks for threads between set and clear, as a grace period
 * blocks for critical sections.
 */
#ifndef TWI_MECH_PIN_H
#define TWI_MECH_PIN_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stddef.h>

struct twi_pin {
	TWI_CACHE_ALIGNED _Atomic(const void *) engine; /* [producer E100] NULL: none */
};

/* pin.c: the pin of a lane; NULL for the shared lane. */
struct twi_pin *twi_pin_of_lane(uint32_t lane);

/* pin.c: waits until no pin holds this engine. All its timeouts have ended. */
void twi_pins_wait(const void *engine);

/* pin.c: in a forked child, where the threads that had pins do not exist. */
void twi_pins_forget(void);

/* Before the swap. */
static inline void twi_pin_set(struct twi_pin *pin, const void *engine)
{
	/*
	 * E100, pairs with pin_wait: a finisher that reads this instead of its own engine's address
	 * must see what the thread wrote to that engine before.
	 */
	twi_store_release(&pin->engine, engine);
}

static inline void twi_pin_clear(struct twi_pin *pin)
{
	/* E100, pairs with pin_wait: the writes to the engine come before its memory is freed. */
	twi_store_release(&pin->engine, NULL);
}

#endif
