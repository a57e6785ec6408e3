/* SPDX-License-Identifier: MIT */
/*
 * Pins. A pin keeps the memory of one engine from being freed while one thread makes a few steps.
 * It is a hazard pointer that is validated by the swap of a timeout's state word.
 *
 * Why. A rescheduler raises a counter in the engine after its swap. By then the timeout may have
 * ended, and the engine may be freed. An RCU section (thread/rcu.h) would also keep the engine, but
 * entering and leaving it takes 20 instructions more. A pin takes two stores, to a cache line that
 * only this thread writes.
 *
 * Protocol. The thread stores the engine's address in its pin, swaps the state word of a pending
 * timeout of that engine, writes to the engine, and clears the pin. The finisher is the thread that
 * completes the engine's stop. After all timeouts have ended, and before it publishes STOPPED, it
 * waits until no pin holds the engine's address.
 *
 * The finisher misses no pin, although the pin needs no fence. If the swap succeeds, it comes
 * before the end of its timeout. The step that ends the timeout acquires what the swap releases,
 * and with it the store to the pin. All ends come before the finisher's wait. So the finisher reads
 * the engine's address in the pin, or a later value. A later value was stored after the thread
 * wrote to the engine (E100).
 *
 * If the swap fails, the thread does not touch the engine. The address in the pin may then be that
 * of a freed engine, or of a new engine at the same address. No thread follows it. The finisher of
 * the new engine at worst waits needlessly, until the thread clears the pin.
 *
 * Ownership. Each of the lane numbers 0 to 62 has one pin. Only the thread with that lane number
 * writes it. All other threads have no pin, and use an RCU section instead.
 *
 * Progress. set and clear are wait-free. wait blocks while threads are between set and clear, as a
 * grace period does for RCU sections.
 */
#ifndef TWI_THREAD_PIN_H
#define TWI_THREAD_PIN_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct twi_pin {
	/* [producer E100] the pinned engine, or NULL */
	TWI_CACHE_ALIGNED _Atomic(const void *) engine;
};

/* pin.c: returns the pin of a lane, or NULL for the shared lane. */
struct twi_pin *twi_pin_of_lane(uint32_t lane);

/*
 * pin.c: waits until no pin holds this engine. All timeouts of the engine must have ended. Returns
 * false if a pin still holds it at `until_ns` (CLOCK_MONOTONIC; INT64_MAX: no limit).
 */
bool twi_pins_wait(const void *engine, int64_t until_ns);

/*
 * pin.c: clears all pins. Called in a forked child, because the threads that had set them do not
 * exist there.
 */
void twi_pins_forget(void);

/* Pins the engine. Must be called before the swap. */
static inline void twi_pin_set(struct twi_pin *pin, const void *engine)
{
	/*
	 * E100: pairs with pin_wait(). If the finisher of the engine that was pinned before reads
	 * this new address, it must see all that the thread wrote to that earlier engine.
	 */
	twi_store_release(&pin->engine, engine);
}

static inline void twi_pin_clear(struct twi_pin *pin)
{
	/*
	 * E100: pairs with pin_wait(). The writes to the engine must come before the engine is
	 * freed.
	 */
	twi_store_release(&pin->engine, NULL);
}

#endif
