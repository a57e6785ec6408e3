/* SPDX-License-Identifier: MIT */
/*
 * The state word of a timeout: generation and state in one, so that one compare-and-swap both
 * checks that a handle is not stale and decides a race.
 *
 *     bits 63..8 generation | bit 7 over | bit 6 periodic | bit 5 rescheduled | bit 4 queued |
 *     bit 3 waiter | bits 2..0 state
 *
 * Transitions, each a compare-and-swap on the whole word (all else kept):
 *
 *     from     to         by                     when
 *     birth    INIT       who schedules          just before an entry in its ring names the node
 *     birth    LINKED     who schedules          just before it is pushed to a link queue
 *     INIT     WHEELED    worker                 transfer, before the slot entry is made; by any
 *                                                entry that names the node
 *     LINKED   WHEELED    worker                 transfer, the same
 *     INIT     CANCELLED  canceller              LIN of the cancel; no push, and the node is the
 *                                                canceller's at once: the entry stays, and is stale
 *     LINKED   CANCELLED  canceller              LIN; no push: transfer frees it
 *     WHEELED  CANCELLED  canceller              LIN; pushes to its ring or cancel queue, unless it
 *                                                is queued already: reclaim frees it
 *     WHEELED  CANCELLED  canceller, stop        while the engine is swept: no push, sweep frees it
 *     WHEELED  DUE        worker                 LIN of the expiry; goes to the dispatch hook
 *     WHEELED  RUNNING    worker                 LIN of the expiry; runs on the worker
 *     DUE      RUNNING    who runs it            once: a second run is refused
 *     DUE      WHEELED    worker                 the executor refused it, and is asked again (of an
 *                                                owner-only kind OWNED, unless queued)
 *     RUNNING  EXPIRED    who ran it             after the finaliser; wakes if waiter is set; frees
 *                                                it unless it is queued: then reclaim does
 *
 *     birth    WHEELED    worker                 of what its own thread schedules: no ingress; a store
 *     birth    OWNED      worker                 the same, of a kind that is the owner's only
 *     OWNED    CANCELLED  worker                 a store: nobody else changes the word in OWNED
 *     OWNED    DUE, RUNNING, CANCELLED by stop   as WHEELED, by a store where it is the worker's
 *     OWNED    WHEELED    worker                 queued: rescheduled to the past of the turn
 *
 * A forked child that takes over makes WHEELED, OWNED, EXPIRED or a later generation of what is alive
 * (engine/adopt.c).
 *
 * DUE and RUNNING: a canceller that waits sets the waiter bit, once, by compare-and-swap.
 *
 * A periodic timeout (worker/chain.c) is one word from its first run to its last: periodic is set where
 * the others have INIT or LINKED first. Two steps are its own, and one bit, over: no further run begins.
 *
 *     RUNNING       WHEELED          who ran it    LIN of the next run's beginning to wait; rescheduled
 *                                                  cleared; in an executor queued set, and pushed
 *     DUE, RUNNING  the same, over   canceller     LIN of the cancel; no push: who ends the run sees it
 *     RUNNING       over, periodic   who ran it    LIN of the end by itself
 *                   cleared
 *     RUNNING,over  EXPIRED          who ran it    after the finaliser, as for the others; cancelled, it
 *                                                  has periodic still, and users know it as CANCELLED
 *
 * The deadline lies beside the word, and both together change in one step of 128 bits:
 *
 *     INIT, LINKED,  rescheduled set   reschedule   LIN of a reschedule; while it is not set, the
 *     WHEELED                                       deadline is that of birth
 *     WHEELED        queued set        reschedule   the same, to an earlier deadline: who sets it
 *                                                   pushes it as who cancels does
 *     any            queued cleared    reclaim      as soon as it has come by the queue
 *     WHEELED        DUE, RUNNING      worker       where rescheduled is set: for the deadline that
 *                                                   it has seen passed, or not at all
 *
 * A node is in a cancel queue (or in a ring, by an entry that says so), or on its way there by one thread,
 * exactly while queued is set, or since a cancel in the wheel found it clear. So it is pushed once; and it
 * is freed once: by reclaim, where it has ended before it came out of the queue, else by who ends it.
 *
 * Users know three states: INIT, LINKED, WHEELED and OWNED are INIT; DUE, RUNNING and EXPIRED are EXPIRED.
 * Periodic, DUE and RUNNING are INIT, or CANCELLED with over, and EXPIRED is CANCELLED.
 * CANCELLED and EXPIRED are final: the word then rests until the node serves another timeout.
 *
 * Birth is no transition: the node is its new owner's alone, its word is in a final state of an old
 * generation, and nobody's compare-and-swap can expect that. The owner stores the next generation, at
 * rest in CANCELLED where the node goes through a ring or queue: a stale entry may name it, by which the
 * worker would take what is not yet accepted. INIT (or LINKED) it stores when nothing can refuse the
 * timeout any more. A generation has 56 bits and never comes again; generation 0 is never born, so zeroed
 * memory matches no handle.
 */
#ifndef TWI_TIMEOUT_WORD_H
#define TWI_TIMEOUT_WORD_H

#include <stdbool.h>
#include <stdint.h>

enum twi_word_state {
	TWI_WORD_INIT = 0,   /* on its way by a ring */
	TWI_WORD_LINKED = 1, /* on its way by a link queue */
	TWI_WORD_WHEELED = 2,
	TWI_WORD_CANCELLED = 3,
	TWI_WORD_DUE = 4,
	TWI_WORD_RUNNING = 5,
	TWI_WORD_EXPIRED = 6,
	TWI_WORD_OWNED = 7,
};

#define TWI_WORD_STATE_MASK UINT64_C(7)
#define TWI_WORD_WAITER UINT64_C(8)
/* On its way to the worker, who is to file it by its deadline anew. */
#define TWI_WORD_QUEUED UINT64_C(16)
/* The deadline may have changed since birth. */
#define TWI_WORD_RESCHEDULED UINT64_C(32)
/* It has not run for the last time; or was cancelled before it had. */
#define TWI_WORD_PERIODIC UINT64_C(64)
/* Periodic, and no further run begins. */
#define TWI_WORD_OVER UINT64_C(128)
#define TWI_WORD_CHAIN (TWI_WORD_PERIODIC | TWI_WORD_OVER)
#define TWI_WORD_GENERATION UINT64_C(256)

static inline enum twi_word_state twi_word_state(uint64_t word)
{
	return (enum twi_word_state)(word & TWI_WORD_STATE_MASK);
}

/* The same timeout in another state; all else stays. */
static inline uint64_t twi_word_to(uint64_t word, enum twi_word_state state)
{
	return (word & ~TWI_WORD_STATE_MASK) | (uint64_t)state;
}

/* The word at birth, which the handle has. */
static inline uint64_t twi_word_birth(uint64_t word)
{
	return word & ~(TWI_WORD_GENERATION - 1);
}

/* The birth word of the next timeout that the node serves: no state bits. */
static inline uint64_t twi_word_next_birth(uint64_t word)
{
	return twi_word_birth(word) + TWI_WORD_GENERATION;
}

/* Whether two words are of one timeout. */
static inline bool twi_word_same(uint64_t a, uint64_t b)
{
	return (a ^ b) < TWI_WORD_GENERATION;
}

/* Neither expired nor cancelled. */
static inline bool twi_word_pending(uint64_t word)
{
	return (word & TWI_WORD_STATE_MASK) <= TWI_WORD_WHEELED;
}

/* Expired (or periodic, and between two waits), and the callback has not ended. */
static inline bool twi_word_running(uint64_t word)
{
	enum twi_word_state state = twi_word_state(word);

	return state == TWI_WORD_DUE || state == TWI_WORD_RUNNING;
}

/* EXPIRED: a chain that was cancelled during its last run. */
static inline bool twi_word_stopped(uint64_t word)
{
	return (word & TWI_WORD_PERIODIC) != 0;
}

#endif
