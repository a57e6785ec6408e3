/* SPDX-License-Identifier: MIT */
/*
 * Pins. A pin keeps the memory of one engine for the few steps of one thread. It is a hazard
 * pointer, which the swap of a timeout's state word validates.
 *
 * Why. A rescheduler counts in the engine after its swap, when its timeout no longer keeps the
 * engine. A critical section (thread/rcu.h) keeps the engine too, but its entry and exit take 20
 * instructions more. A pin takes two stores, to a cache line that only this thread writes.
 *
 * Protocol. The thread stores the engine's address in its pin, swaps the state word of a pending
 * timeout of that engine, writes to the engine, and clears the pin. The finisher of an engine waits
 * until no pin holds its address. It does so after all timeouts have ended, and before it publishes
 * STOPPED.
 *
 * The finisher misses no pin, and no fence is needed for that. A swap that succeeds comes before
 * the end of its timeout. The step that ends a rescheduled timeout acquires that swap's release,
 * and with it the pin that was stored before. All ends come before the finisher's wait. So the
 * finisher reads the engine's address, or a later value of the pin. A later value was stored after
 * the thread wrote to the engine (E100).
 *
 * If the swap fails, the thread touches nothing of the engine. The address may then be that of a
 * freed engine, or of another engine at the same place. No thread follows it. The finisher of that
 * other engine waits in vain, until the thread clears the pin.
 *
 * Ownership. Each of the lane numbers 0 to 62 has one pin. Only the thread that has the lane writes
 * it. Threads that share the last lane have no pin, and use a critical section instead.
 *
 * Progress. set and clear are wait-free. wait blocks for threads between set and clear, as a grace
 * period blocks for critical sections.
 */
#ifndef TWI_THREAD_PIN_H
#define TWI_THREAD_PIN_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stddef.h>

struct twi_pin {
	TWI_CACHE_ALIGNED _Atomic(const void *) engine; /* [producer E100] NULL: none */
};

/* pin.c: the pin of a lane; NULL for the shared lane. */
struct twi_pin *twi_pin_of_lane(uint32_t lane);

/* pin.c: waits until no pin holds this engine. All timeouts of the engine must have ended. */
void twi_pins_wait(const void *engine);

/* pin.c: called in a forked child, because the threads that had pins do not exist there. */
void twi_pins_forget(void);

/* Must be called before the swap. */
static inline void twi_pin_set(struct twi_pin *pin, const void *engine)
{
	/*
	 * E100: pairs with pin_wait(). If a finisher reads this instead of its own engine's
	 * address, it must see all that the thread wrote to that engine before.
	 */
	twi_store_release(&pin->engine, engine);
}

static inline void twi_pin_clear(struct twi_pin *pin)
{
	/*
	 * E100: pairs with pin_wait(). The writes to the engine must come before its memory is
	 * freed.
	 */
	twi_store_release(&pin->engine, NULL);
}

#endif
