/* SPDX-License-Identifier: MIT */
/*
 * The state word of a timer in memory. A compare-and-swap of the word decides each race for the
 * timer.
 *
 *     bits 63..16 hold count | 10..8 result | bit 7 confirmed | bit 6 due | bit 5 queued |
 *     bits 4..3 place | bits 2..0 state
 *
 * Places: STAGED (pushed, and not taken by the I/O thread), TAKEN (in a commit), KEPT (in the
 * store). Only the I/O thread changes the place. `due`: the I/O thread must decide about the timer,
 * because its callback did not run it. `confirmed`: the store has the start of the next run.
 * `queued`: see below.
 *
 *     from      to        by                         when
 *     WAITING   HELD      the engine's callback,     the holder alone looks at the deadline, and
 *                         or the I/O thread          changes it
 *     HELD      WAITING   the holder                 the timer may not run yet, or was moved
 *     HELD      RUNNING   the engine's callback      LIN of a run
 *     HELD      ENDED     the I/O thread             a request cancels a timer that is being moved
 *     WAITING   ENDED     a canceller,               LIN of a cancel (result CANCELLED)
 *                         or the I/O thread          the timer was refused, or may not run again
 *     RUNNING   ENDED     the engine's callback      the run has a result
 *     RUNNING   PENDING   the engine's callback      the result comes later
 *     RUNNING   RUNNING   tw_durable_complete        sets the result before the callback returns
 *     PENDING   ENDED     tw_durable_complete        LIN of a completion
 *     ENDED     WAITING   the I/O thread             the timer will run again
 *
 * A canceller that finds a timer HELD does not wait, but sends a request to the I/O thread.
 *
 * Attention. The I/O thread looks at each STAGED and TAKEN timer again by itself. If a KEPT timer
 * needs the I/O thread after a step, the thread that makes the step sets `queued` in the word, and
 * pushes the timer. As long as `queued` is set, no other thread pushes the timer, so its link has
 * one user.
 *
 * ABA. The hold count makes the words before and after a hold differ. So a swap fails if its thread
 * has read the word before the hold.
 */
#ifndef TWI_DURABLE_WORD_H
#define TWI_DURABLE_WORD_H

#include "base/atomic.h"

enum twi_durable_state {
	TWI_DURABLE_WAITING = 0,
	TWI_DURABLE_HELD = 1,
	TWI_DURABLE_RUNNING = 2,
	TWI_DURABLE_PENDING = 3,
	TWI_DURABLE_ENDED = 4,
};

enum twi_durable_result {
	TWI_RESULT_NONE = 0,
	TWI_RESULT_DONE = 1,
	TWI_RESULT_AGAIN = 2,
	TWI_RESULT_GIVE_UP = 3,
	TWI_RESULT_NEXT = 4,
	TWI_RESULT_CANCELLED = 5,
};

#define TWI_DURABLE_STATE UINT64_C(7)
#define TWI_DURABLE_PLACE UINT64_C(0x18)
#define TWI_DURABLE_STAGED UINT64_C(0)
#define TWI_DURABLE_TAKEN UINT64_C(0x08)
#define TWI_DURABLE_KEPT UINT64_C(0x10)
#define TWI_DURABLE_QUEUED UINT64_C(0x20)
#define TWI_DURABLE_DUE UINT64_C(0x40)
#define TWI_DURABLE_CONFIRMED UINT64_C(0x80)
#define TWI_DURABLE_RESULT UINT64_C(0x700)
#define TWI_DURABLE_RESULT_SHIFT 8
#define TWI_DURABLE_HOLD UINT64_C(0x10000)

static inline enum twi_durable_state twi_durable_state(uint64_t word)
{
	return (enum twi_durable_state)(word & TWI_DURABLE_STATE);
}

static inline enum twi_durable_result twi_durable_result(uint64_t word)
{
	return (enum twi_durable_result)((word & TWI_DURABLE_RESULT) >> TWI_DURABLE_RESULT_SHIFT);
}

static inline uint64_t twi_durable_place(uint64_t word)
{
	return word & TWI_DURABLE_PLACE;
}

/* Returns the word with this state and this result, and without `due`. */
static inline uint64_t twi_durable_to(uint64_t word, enum twi_durable_state state,
				      enum twi_durable_result result)
{
	word &= ~(TWI_DURABLE_STATE | TWI_DURABLE_RESULT | TWI_DURABLE_DUE);
	return word | (uint64_t)state | ((uint64_t)result << TWI_DURABLE_RESULT_SHIFT);
}

static inline uint64_t twi_durable_look(_Atomic uint64_t *word)
{
	return twi_load_acquire(word); /* E101: pairs with twi_durable_swap(). */
}

/*
 * E101, the linearization point of each step: publishes this thread's writes to the timer, and
 * acquires those of the thread that made the step before. If the step fails, *seen is the present
 * word.
 */
static inline bool twi_durable_swap(_Atomic uint64_t *word, uint64_t *seen, uint64_t next)
{
	return twi_cas_acq_rel(word, seen, next); /* E101: see above */
}

/*
 * Sets `queued` in the word of a KEPT timer, if it is not set. *ret_push: the thread that makes
 * this step must push the timer.
 */
static inline uint64_t twi_durable_call(uint64_t word, bool *ret_push)
{
	*ret_push = twi_durable_place(word) == TWI_DURABLE_KEPT && (word & TWI_DURABLE_QUEUED) == 0;
	return *ret_push ? word | TWI_DURABLE_QUEUED : word;
}

/* Makes a timer HELD, for the callback and the I/O thread. Returns false if it is not WAITING. */
static inline bool twi_durable_hold(_Atomic uint64_t *word)
{
	uint64_t seen = twi_durable_look(word);

	while (twi_durable_state(seen) == TWI_DURABLE_WAITING) {
		uint64_t next = (seen & ~TWI_DURABLE_STATE) | (uint64_t)TWI_DURABLE_HELD;

		if (twi_durable_swap(word, &seen, next + TWI_DURABLE_HOLD))
			return true;
	}
	return false;
}

/*
 * Makes a HELD timer WAITING, RUNNING or ENDED, for its holder, or an ENDED timer WAITING, for the
 * I/O thread. `flags` replaces `due` and `confirmed`. `attend`: the I/O thread must look at the
 * timer. Returns true if the caller must push the timer for that.
 */
static inline bool twi_durable_let_go(_Atomic uint64_t *word, enum twi_durable_state state,
				      uint64_t flags, bool attend)
{
	uint64_t seen = twi_durable_look(word), next;
	bool push;

	do {
		next = twi_durable_to(seen, state, TWI_RESULT_NONE) & ~TWI_DURABLE_CONFIRMED;
		next |= flags;
		push = false;
		if (attend)
			next = twi_durable_call(next, &push);
	} while (!twi_durable_swap(word, &seen, next));
	return push;
}

/*
 * Makes a timer of a shared store RUNNING, for its holder. `asked`: the store has confirmed the
 * start. Without that, returns false for a timer that is no longer STAGED: the store knows the
 * timer or will know it, and must be asked first. If the I/O thread takes the timer after this
 * step, it finds the timer running, and stores it as started.
 */
static inline bool twi_durable_begin(_Atomic uint64_t *word, bool asked)
{
	uint64_t seen = twi_durable_look(word), next;

	do {
		if (!asked && twi_durable_place(seen) != TWI_DURABLE_STAGED)
			return false;
		next = twi_durable_to(seen, TWI_DURABLE_RUNNING, TWI_RESULT_NONE) &
		       ~TWI_DURABLE_CONFIRMED;
	} while (!twi_durable_swap(word, &seen, next));
	return true;
}

/*
 * Makes a WAITING timer ENDED, for a canceller or the I/O thread. Returns false if it is not
 * WAITING. *ret_word: the word before this step.
 */
static inline bool twi_durable_revoke(_Atomic uint64_t *word, uint64_t *ret_word)
{
	uint64_t seen = twi_durable_look(word);
	bool done = false;

	while (!done && twi_durable_state(seen) == TWI_DURABLE_WAITING)
		done = twi_durable_swap(
			word, &seen, twi_durable_to(seen, TWI_DURABLE_ENDED, TWI_RESULT_CANCELLED));
	*ret_word = seen;
	return done;
}

/*
 * Makes a STAGED timer ENDED, as twi_durable_revoke does. The I/O thread has not taken it yet, so
 * the caller need not send a request.
 */
static inline bool twi_durable_absorb(_Atomic uint64_t *word, uint64_t *ret_word)
{
	uint64_t seen = twi_durable_look(word);
	bool done = false;

	while (!done && twi_durable_state(seen) == TWI_DURABLE_WAITING &&
	       twi_durable_place(seen) == TWI_DURABLE_STAGED)
		done = twi_durable_swap(
			word, &seen, twi_durable_to(seen, TWI_DURABLE_ENDED, TWI_RESULT_CANCELLED));
	*ret_word = seen;
	return done;
}

/*
 * Ends a run that has returned, for the callback. The result NONE makes the timer PENDING, unless
 * tw_durable_complete() has set a result already; then that result counts. Returns true if the
 * caller must push the timer. *ret_ended: the run has ended.
 */
static inline bool twi_durable_finish(_Atomic uint64_t *word, enum twi_durable_result result,
				      bool *ret_ended)
{
	uint64_t seen = twi_durable_look(word), next;
	bool push;

	do {
		enum twi_durable_result early = twi_durable_result(seen);
		enum twi_durable_result end = result == TWI_RESULT_NONE ? early : result;

		next = twi_durable_to(
			seen, end == TWI_RESULT_NONE ? TWI_DURABLE_PENDING : TWI_DURABLE_ENDED,
			end);
		*ret_ended = end != TWI_RESULT_NONE;
		next = twi_durable_call(next, &push);
	} while (!twi_durable_swap(word, &seen, next));
	return push;
}

/* The outcome of twi_durable_complete(). */
enum twi_durable_completed {
	TWI_COMPLETED_STALE, /* the timer has a result already, or does not run */
	TWI_COMPLETED_EARLY, /* the callback still runs; the result counts if it returns TW_RETRY_PENDING */
	TWI_COMPLETED_PENDING, /* the run was pending, and has ended now */
};

/*
 * Completes a run. `seen`: the word that the caller had read when it read the number of the
 * attempt.
 */
static inline enum twi_durable_completed twi_durable_complete(_Atomic uint64_t *word, uint64_t seen,
							      enum twi_durable_result result,
							      bool *ret_push)
{
	uint64_t hold = seen / TWI_DURABLE_HOLD;

	*ret_push = false;
	for (;;) {
		enum twi_durable_state state = twi_durable_state(seen);
		uint64_t next = twi_durable_to(seen, state, result);

		if (seen / TWI_DURABLE_HOLD != hold ||
		    twi_durable_result(seen) != TWI_RESULT_NONE ||
		    (state != TWI_DURABLE_RUNNING && state != TWI_DURABLE_PENDING))
			return TWI_COMPLETED_STALE;
		if (state == TWI_DURABLE_PENDING)
			next = twi_durable_call(twi_durable_to(seen, TWI_DURABLE_ENDED, result),
						ret_push);
		if (twi_durable_swap(word, &seen, next))
			return state == TWI_DURABLE_PENDING ? TWI_COMPLETED_PENDING
							    : TWI_COMPLETED_EARLY;
	}
}

/*
 * Changes the place and clears `queued`, for the I/O thread, which has taken the timer from the
 * queue.
 */
static inline uint64_t twi_durable_place_set(_Atomic uint64_t *word, uint64_t place)
{
	uint64_t seen = twi_durable_look(word), next;

	do
		next = (seen & ~(TWI_DURABLE_PLACE | TWI_DURABLE_QUEUED)) | place;
	while (!twi_durable_swap(word, &seen, next));
	return next;
}

/*
 * Changes the place from TAKEN to KEPT, for the I/O thread. *ret_push: this thread must push the
 * timer, because it is due, or has ended, or runs although its start is not stored (`started` is
 * false). If a run ends at the same moment, its thread finds `queued` set, and does not push the
 * timer a second time.
 */
static inline uint64_t twi_durable_keep(_Atomic uint64_t *word, bool started, bool *ret_push)
{
	uint64_t seen = twi_durable_look(word), next;

	do {
		enum twi_durable_state state = twi_durable_state(seen);

		*ret_push = (state == TWI_DURABLE_ENDED &&
			     twi_durable_result(seen) != TWI_RESULT_CANCELLED) ||
			    ((state == TWI_DURABLE_RUNNING || state == TWI_DURABLE_PENDING) &&
			     !started) ||
			    (seen & TWI_DURABLE_DUE) != 0;
		next = (seen & ~TWI_DURABLE_PLACE) | TWI_DURABLE_KEPT;
		if (*ret_push)
			next |= TWI_DURABLE_QUEUED;
	} while (!twi_durable_swap(word, &seen, next));
	return next;
}

/*
 * Takes a STAGED timer into a commit, for the I/O thread. Returns false if it has ended already.
 * Then it stays STAGED, and *ret_word has its result. If it was cancelled, the I/O thread releases
 * it, and its canceller sends no request.
 */
static inline bool twi_durable_take(_Atomic uint64_t *word, uint64_t *ret_word)
{
	uint64_t seen = twi_durable_look(word);

	while (twi_durable_state(seen) != TWI_DURABLE_ENDED) {
		uint64_t next = (seen & ~TWI_DURABLE_PLACE) | TWI_DURABLE_TAKEN;

		if (twi_durable_swap(word, &seen, next)) {
			*ret_word = next;
			return true;
		}
	}
	*ret_word = seen;
	return false;
}

#endif
