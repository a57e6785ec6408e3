/* SPDX-License-Identifier: MIT */
/*
 * Presences. A presence keeps all engines in memory while one thread makes a short call. It does
 * the work of an RCU section (thread/rcu.h) for the quick paths of schedule and cancel, with a
 * fifth of the instructions.
 *
 * Protocol. A thread that has a mark (struct twi_presence) sets it before it looks at an engine or
 * a timeout, and clears it after its last access. The finisher (the thread that completes an
 * engine's stop) closes the engine, makes a barrier in all threads (thread/barrier.h), and waits
 * until it has seen each mark clear once. If the barrier reaches the thread after it has set the
 * mark, the finisher sees the mark and waits. If the thread sets the mark later, it sees that the
 * engine is closed. So the thread needs no fence (E162).
 *
 * Rules. Between set and clear the thread calls no function of the user and none of the system, and
 * it sets no second mark: a nested call would clear the mark too early. So the thread neither
 * blocks, ends nor forks there. An RCU section may be open around a presence. A thread that has
 * more to do enters an RCU section first, and then clears the mark. For such a thread the finisher,
 * in its last wait (turn/finish.c), waits for presences first and then for a grace period.
 *
 * Ownership. Each near lane number has one mark, in memory that is never freed. Only the thread
 * with that number writes it, so a mark outlives its thread. At thread exit the mark is clear, and
 * passes to the next thread with the lane number. A finisher that sees the mark of the new thread
 * waits for that thread, which is harmless.
 *
 * No mark. A thread has none if it has no near lane of its own, or if the system has no
 * barrier for all threads. Then it takes the general paths, which use RCU sections.
 *
 * Progress. Set and clear are wait-free. The wait blocks while a thread that was inside has not
 * left. If that thread makes one quick call after the other on other engines, a look may find the
 * mark set again. The wait ends with the first look that finds it clear.
 */
#ifndef TWI_THREAD_PRESENCE_H
#define TWI_THREAD_PRESENCE_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_presence {
	TWI_CACHE_ALIGNED _Atomic uint32_t inside; /* [producer E162] 1 from set to clear */
};

/* presence.c: returns the mark of a lane, or NULL if threads with this lane have none. */
struct twi_presence *twi_presence_of_lane(uint32_t lane);

/*
 * presence.c: waits until it has seen each mark clear. The calling thread must not be present. A
 * thread that sets its mark afterwards sees what the caller wrote before. Returns false if a mark is
 * still set at `until_ns` (CLOCK_MONOTONIC; INT64_MAX: no limit).
 */
bool twi_presences_wait(int64_t until_ns);

/*
 * presence.c: clears all marks. Called in a forked child, because the threads that had set them do
 * not exist there.
 */
void twi_presences_forget(void);

/* Sets the mark. Must come before the thread looks at the engine or the timeout. */
static inline void twi_presence_enter(struct twi_presence *presence)
{
	/* RELAXED: the finisher's barrier orders this store before the accesses after the fence. */
	twi_store_relaxed(&presence->inside, 1);
	/*
	 * E162: pairs with the barrier in twi_presences_wait(). Without this fence the compiler
	 * could move the look at the engine before the store.
	 */
	twi_fence_compiler();
}

static inline void twi_presence_leave(struct twi_presence *presence)
{
	/*
	 * E162: pairs with presence_wait(), so that the finisher sees the thread's push, and the
	 * engine is freed after the thread's last access.
	 */
	twi_store_release(&presence->inside, 0);
}

#endif
