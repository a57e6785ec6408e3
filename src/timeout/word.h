/* SPDX-License-Identifier: MIT */
/*
 * The state word of a timeout. It holds generation and state, so that one compare-and-swap both
 * checks that a handle is not stale and decides a race. LIN marks the linearization point of a
 * call.
 *
 *     bits 63..8 generation | bit 7 over | bit 6 periodic | bit 5 rescheduled | bit 4 queued |
 *     bit 3 waiter | bits 2..0 state
 *
 * Each transition is a compare-and-swap on the whole word, and keeps the bits that its row does not
 * name. The runner is the thread that runs the callback: the worker or an executor.
 *
 *     from     to         by                     when
 *     birth    INIT       producer               just before an entry in its ring names the node
 *     birth    LINKED     producer               just before it pushes the node to a link queue
 *     INIT     WHEELED    worker                 transfer, before it makes the slot entry; by any
 *                                                entry that names the node
 *     LINKED   WHEELED    worker                 transfer, before it makes the slot entry
 *     INIT     CANCELLED  canceller              LIN of the cancel; no push, and the canceller has
 *                                                the node at once: the entry stays, and is stale
 *     LINKED   CANCELLED  canceller              LIN; no push: transfer frees it
 *     WHEELED  CANCELLED  canceller              LIN; pushes to its ring or cancel queue, unless it
 *                                                is queued already: reclaim frees it
 *     WHEELED  CANCELLED  canceller, stop        while the engine is swept: no push, sweep frees it
 *     WHEELED  DUE        worker                 LIN of the expiry; goes to the dispatch hook
 *     WHEELED  RUNNING    worker                 LIN of the expiry; runs on the worker
 *     DUE      RUNNING    runner                 once: a second run is rejected
 *     DUE      WHEELED    worker                 if the executor rejected it and is to be asked
 *                                                again (OWNED if owner-only)
 *     RUNNING  EXPIRED    runner                 after the finaliser; wakes if waiter is set; frees
 *                                                the node unless it is queued: then reclaim does
 *
 *     birth    WHEELED    worker                 a store: the worker's own thread scheduled it
 *     birth    OWNED      worker                 a store, as above, if the kind is owner-only
 *     OWNED    CANCELLED  worker                 a store: no other thread changes the word in OWNED
 *     OWNED    DUE, RUNNING, CANCELLED by stop   as from WHEELED, but an expiry is a store
 *
 * A forked child that takes over an engine changes the word of each timeout that is alive to
 * WHEELED, OWNED, EXPIRED or a later generation (engine/recover.c).
 *
 * In DUE and RUNNING, a canceller that waits sets the waiter bit, once, by compare-and-swap.
 *
 * A periodic timeout (expiry/periodic.c) keeps its generation from its first run to its last. Its
 * periodic bit is set at birth, together with the first state. If its bit `over` is set, no further
 * run begins. Only periodic timeouts make these transitions:
 *
 *     RUNNING       WHEELED          runner        LIN: the next run begins to wait; rescheduled is
 *                                                  cleared; an executor sets queued, and pushes
 *     DUE, RUNNING  the same, over   canceller     LIN of the cancel; no push: the thread that ends
 *                                                  the run sees it
 *     RUNNING       over, periodic   runner        LIN of an end without a cancel
 *                   cleared
 *     RUNNING,over  EXPIRED          runner        after the finaliser, as for the others; if it
 *                                                  was cancelled, periodic stays and users see
 *                                                  CANCELLED
 *
 * The deadline lies next to the word, so that both can change in one step of 128 bits:
 *
 *     INIT, LINKED,  rescheduled set   reschedule   LIN of a reschedule; while it is not set, the
 *     WHEELED                                       deadline is that of birth
 *     WHEELED        queued set        reschedule   in the same step, if the new deadline is
 *                                                   earlier: the thread that sets queued pushes
 *                                                   the node as a canceller does
 *     any            queued cleared    reclaim      when the node has come out of the queue
 *     WHEELED        DUE, RUNNING      worker       if rescheduled is set: only if the deadline
 *                                                   that it saw has passed and is still the same
 *
 * A node is in a cancel queue (or in a ring, by an entry that is marked as cancelled), or one
 * thread is about to push it there, in exactly two cases. Either queued is set, or a canceller has
 * found the timeout in the wheel with queued clear. So the node is never in the queue twice. It is
 * also freed exactly once. If its timeout ends before the node comes out of the queue, reclaim
 * frees it; otherwise the thread that ends the timeout does.
 *
 * Users see three states. They see INIT for INIT, LINKED, WHEELED and OWNED, and EXPIRED for DUE,
 * RUNNING and EXPIRED. While the periodic bit is set, they see INIT for DUE and RUNNING, or
 * CANCELLED if `over` is set, and CANCELLED for EXPIRED. CANCELLED and EXPIRED are final: the word
 * does not change until the node serves another timeout.
 *
 * Birth is not a transition by compare-and-swap. The node belongs to the scheduling thread alone,
 * and its word is in a final state of an old generation, which no compare-and-swap expects. The
 * scheduling thread stores the next generation. If the node goes through a ring or queue, the
 * thread stores it with the state CANCELLED first. If the first state were INIT, the worker could
 * find the node through a stale entry, and take a timeout that is not accepted yet. The thread
 * stores INIT (or LINKED) when nothing can reject the timeout any more.
 *
 * A generation has 56 bits and is never used twice. Generation 0 is not used, so zeroed memory
 * matches no handle.
 */
#ifndef TWI_TIMEOUT_WORD_H
#define TWI_TIMEOUT_WORD_H

#include <stdbool.h>
#include <stdint.h>

enum twi_word_state {
	TWI_WORD_INIT = 0,   /* in a ring; the worker has not taken it yet */
	TWI_WORD_LINKED = 1, /* in a link queue; the worker has not taken it yet */
	TWI_WORD_WHEELED = 2,
	TWI_WORD_CANCELLED = 3,
	TWI_WORD_DUE = 4,
	TWI_WORD_RUNNING = 5,
	TWI_WORD_EXPIRED = 6,
	TWI_WORD_OWNED = 7,
};

#define TWI_WORD_STATE_MASK UINT64_C(7)
#define TWI_WORD_WAITER UINT64_C(8)
/* The node is being pushed to the worker, which must file it again by its new, earlier deadline. */
#define TWI_WORD_QUEUED UINT64_C(16)
/* A reschedule may have changed the deadline since birth. */
#define TWI_WORD_RESCHEDULED UINT64_C(32)
/* The timeout is periodic. The chain's own end clears the bit; a cancel leaves it set. */
#define TWI_WORD_PERIODIC UINT64_C(64)
/* The timeout is periodic, and no further run of it begins. */
#define TWI_WORD_OVER UINT64_C(128)
#define TWI_WORD_CHAIN (TWI_WORD_PERIODIC | TWI_WORD_OVER)
#define TWI_WORD_GENERATION UINT64_C(256)

static inline enum twi_word_state twi_word_state(uint64_t word)
{
	return (enum twi_word_state)(word & TWI_WORD_STATE_MASK);
}

/* Returns the word of the same timeout in another state, with all other bits unchanged. */
static inline uint64_t twi_word_to(uint64_t word, enum twi_word_state state)
{
	return (word & ~TWI_WORD_STATE_MASK) | (uint64_t)state;
}

/* Returns the word without its state and mark bits. A handle holds this value as its generation. */
static inline uint64_t twi_word_generation(uint64_t word)
{
	return word & ~(TWI_WORD_GENERATION - 1);
}

/* Returns the generation of the next timeout that the node serves, in the same form. */
static inline uint64_t twi_word_next_generation(uint64_t word)
{
	return twi_word_generation(word) + TWI_WORD_GENERATION;
}

/* Returns whether two words belong to the same timeout. */
static inline bool twi_word_same(uint64_t a, uint64_t b)
{
	return (a ^ b) < TWI_WORD_GENERATION;
}

/*
 * Returns whether the state is INIT, LINKED or WHEELED: the timeout is pending, and not owner-only.
 */
static inline bool twi_word_pending(uint64_t word)
{
	return (word & TWI_WORD_STATE_MASK) <= TWI_WORD_WHEELED;
}

/*
 * Returns whether the timeout has expired and its callback has not ended. True also for a periodic
 * timeout during any of its runs.
 */
static inline bool twi_word_running(uint64_t word)
{
	enum twi_word_state state = twi_word_state(word);

	return state == TWI_WORD_DUE || state == TWI_WORD_RUNNING;
}

/* Returns whether a chain in EXPIRED was cancelled during its last run. */
static inline bool twi_word_stopped(uint64_t word)
{
	return (word & TWI_WORD_PERIODIC) != 0;
}

#endif
