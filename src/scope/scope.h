/* SPDX-License-Identifier: MIT */
/*
 * A scope: a list of handles, one for each timeout that was scheduled into it.
 *
 * The engine does not know about scopes. Nothing points from a timeout to its scope, so no callback
 * and no worker touches the scope's memory, and a member's callback may free it. Instead, the scope
 * looks at its members. A handle stays safe for ever and never names another timeout. So a scope
 * may read the state of a member, or cancel it, at any time, however late.
 *
 * States of a scope. OPEN, then ENDED, then ENDED and FIXED. The scope's word has this state, and
 * the number of calls that are inside.
 *
 *     from    to      by    when
 *     OPEN    ENDED   end   a call is inside; the end counts as inside, too
 *     OPEN    FIXED   end   no call is inside
 *     ENDED   FIXED   end   no call is inside any more
 *
 * States of a slot. A member is the timeout whose handle is in the slot.
 *
 *     from      to        by         when
 *     FREE      CLAIMED   scheduler  a swap of both words
 *     handle    CLAIMED   scheduler  a swap of both words, when the timeout has ended and no longer
 *                                    runs
 *     CLAIMED   handle    scheduler  two stores, the generation last: the timeout is pending, but
 *                                    without a deadline
 *     CLAIMED   FREE      scheduler  two stores: the schedule was rejected
 *
 * The thread that made the swap to CLAIMED owns the slot until its last store. A handle never
 * returns to a slot, so a swap that expects a handle replaces exactly the member that the thread
 * has looked at. A look at a slot by two loads may give halves of two handles; then the swap fails.
 *
 * Schedule against end. A timeout must not fire after the end has returned, even if its schedule
 * has not returned yet. So a schedule has these steps:
 *
 *     1. It enters: it adds itself to the schedules inside. If the scope has ended, the schedule
 *        leaves at once.
 *     2. It claims a slot, and schedules the timeout with the deadline TW_NEVER.
 *     3. It stores the handle in the slot.
 *     4. It leaves. This step also reads the state of the scope (E140).
 *     5. If the scope has ended, it cancels the timeout. Otherwise it sets the deadline, by a
 *        reschedule.
 *
 * Enter, leave and the end's step are read-modify-writes of the same word, so they have an order.
 * If the schedule leaves before the end, the end finds the handle and cancels it; a reschedule
 * after that does nothing. If the schedule leaves after the end, the timeout never gets a deadline.
 * In both cases it cannot expire after the end. The linearization point of a schedule is the step
 * by which it leaves; that of the end is the step to ENDED. After its last step on the word a
 * schedule does not touch the scope.
 *
 * If the scope is FIXED, no thread changes a slot any more: no schedule is inside, and each one
 * that enters finds that the scope has ended. Then the slots are an array for tw_cancel_many.
 * Otherwise the end copies one handle after the other, each by one load of both words. Such a load
 * is a swap on most processors. So the end counts as inside meanwhile, and no other end reads the
 * slots without atomic accesses.
 *
 * Slots. Only the first `used` slots are in play: schedules pass over these again and again, from
 * the first to the last, and each schedule takes the next slot that is free or whose member has
 * ended. At the end of a pass, the scheduler counts the members that have not ended. Then it adds
 * slots until there are twice as many as these members, and a few more. So at least half of the
 * slots are free when a pass begins, and the cost per schedule is constant on average. A scope
 * never has more slots than twice the members that were alive at once, and a few more. Slots go
 * back to the system when the scope is destroyed.
 *
 * Ownership. A slot: see above. A chunk of slots is published by a swap, and is freed only with the
 * scope. `used` only grows. `cursor` is a hint: a wrong value only costs time.
 *
 * A wait. tw_scope_end_wait calls tw_cancel_wait for each member. A member whose callback has ended
 * may have lost its slot to another member. Then the thread that reused the slot has acquired the
 * end of that callback, and passes it on with its own swap and stores (E141).
 *
 * Fork. The child has a copy of the scope as it was. A schedule into it works as soon as the child
 * has taken over the engine, and its end cancels those timeouts that are the child's. Slots that
 * were claimed by other threads at the fork stay claimed, and these threads count as inside.
 *
 * Progress. A schedule is lock-free: it passes over a slot only if the slot has a member, or if
 * another thread claims the slot. An end makes the progress of tw_cancel, once for each member. No
 * call waits for another one, except that tw_scope_end_wait waits for callbacks.
 */
#ifndef TWI_SCOPE_SCOPE_H
#define TWI_SCOPE_SCOPE_H

#include "base/atomic.h"
#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/memory.h>
#include <tickwheel/scope.h>

/*
 * How many slots are inside the scope itself: enough for most connections and requests. A build may
 * set fewer.
 */
#ifndef TWI_SCOPE_NEAR
#define TWI_SCOPE_NEAR 8
#endif
/* How many slots the first two chunks have together. */
#ifndef TWI_SCOPE_SECOND
#define TWI_SCOPE_SECOND 64
#endif
/* How many slots a scope has beyond twice its members. */
#ifndef TWI_SCOPE_SPARE
#define TWI_SCOPE_SPARE 8
#endif

/* The first chunk is inside the scope. From the third one on, each chunk doubles the slots. */
enum { TWI_SCOPE_CHUNKS = 26 };

#define TWI_SCOPE_SLOTS_MAX ((uint64_t)TWI_SCOPE_SECOND << (TWI_SCOPE_CHUNKS - 2))

/* The bits of the scope's word: ENDED, FIXED, and from INSIDE on the number of calls inside. */
#define TWI_SCOPE_ENDED UINT64_C(1)
#define TWI_SCOPE_FIXED UINT64_C(2)
#define TWI_SCOPE_INSIDE UINT64_C(4)

/* The generations of a slot without a handle. No handle has them. */
#define TWI_SLOT_FREE UINT64_C(0)
#define TWI_SLOT_CLAIMED UINT64_C(1)

struct twi_scope_slot {
	union {
		/* [atomic E140, E141] half[0]: the node; half[1]: the generation. */
		_Alignas(16) _Atomic uint64_t half[2];
		struct tw_handle fixed; /* [const] once the scope is FIXED */
	};
};

_Static_assert(sizeof(struct twi_scope_slot) == sizeof(struct tw_handle) &&
		       offsetof(struct tw_handle, generation) == sizeof(uint64_t),
	       "slots are an array of handles");

struct tw_scope {
	struct tw_engine *engine;             /* [const] */
	const struct tw_allocator *allocator; /* [const] */
	uint32_t fork_epoch;                  /* [const] */
	_Atomic uint64_t word;                /* [atomic E140] */
	_Atomic uint64_t used;                /* [atomic E141] slots in play */
	_Atomic uint64_t cursor;              /* [atomic] the next slot to look at */
	_Atomic(struct twi_scope_slot *) chunk[TWI_SCOPE_CHUNKS]; /* [atomic E141] */
	struct twi_scope_slot near[TWI_SCOPE_NEAR];               /* the first chunk */
};

/* Returns the number of the chunk that has the slot `at`. */
static inline unsigned twi_slot_chunk(uint64_t at)
{
	if (at < TWI_SCOPE_SECOND)
		return at < TWI_SCOPE_NEAR ? 0 : 1;
	return 65 - (unsigned)__builtin_clzll(at / TWI_SCOPE_SECOND);
}

/* Returns the number of the first slot of a chunk. */
static inline uint64_t twi_chunk_first(unsigned number)
{
	if (number < 2)
		return number == 0 ? 0 : TWI_SCOPE_NEAR;
	return (uint64_t)TWI_SCOPE_SECOND << (number - 2);
}

/* Returns the number of slots of a chunk. */
static inline uint64_t twi_chunk_slots(unsigned number)
{
	return twi_chunk_first(number + 1) - twi_chunk_first(number);
}

/* Returns whether a generation belongs to a handle. */
static inline bool twi_slot_full(uint64_t generation)
{
	return generation > TWI_SLOT_CLAIMED;
}

/* slot.c: frees all chunks that are not inside the scope. */
void twi_scope_chunks_release(struct tw_scope *scope);

/* slot.c: claims a slot. Returns NULL if there is no memory. */
struct twi_scope_slot *twi_slot_claim(struct tw_scope *scope);

/* slot.c: stores a handle, or zeros, in a slot that the caller has claimed. */
void twi_slot_fill(struct twi_scope_slot *slot, struct tw_handle handle);

/* slot.c: returns the number of slots in play. Their chunks exist. */
uint64_t twi_scope_used(struct tw_scope *scope);

/* slot.c: returns how many members have not ended, or still run. A claimed slot counts. */
uint64_t twi_scope_members(struct tw_scope *scope);

/*
 * slot.c: sets *ret_slot to slot `at`. Returns how many slots follow it in memory, itself included,
 * up to `end`.
 */
size_t twi_scope_row(struct tw_scope *scope, uint64_t at, uint64_t end,
		     struct twi_scope_slot **ret_slot);

/* slot.c: returns the handle in a slot, or zeros. */
struct tw_handle twi_slot_handle(const struct twi_scope_slot *slot);

#endif
