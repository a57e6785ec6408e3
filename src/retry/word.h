/* SPDX-License-Identifier: MIT */
/*
 * The word of a task: its step and its state in one, so that one compare-and-swap both refuses a
 * stale handle and decides a race.
 *
 *     bits 63..7 step | bits 6..5 result | bit 4 stop | bit 3 gone | bits 2..0 state
 *
 * The step goes up at birth and at each attempt, and never comes again; inside one step each state
 * but OWNED is entered at most once. A task's handle has the step of its birth, and that of the
 * attempt which it was given to.
 *
 *     from      to         by                       when
 *     FREE      STARTING   who submits              birth: step + 1; a store, the task is its own
 *     STARTING  WAITING    who submits              LIN of the submit
 *     WAITING   RUNNING    its timer, expired       LIN of the attempt: step + 1
 *     RUNNING   PENDING    who runs the attempt     it said so, and nobody has completed it
 *     RUNNING   OWNED      who runs the attempt     it is over, or was completed meanwhile
 *     PENDING   OWNED      who completes            LIN of the completion
 *     RUNNING   the same   who completes            LIN: the result goes into the word
 *     OWNED     WAITING    who owns it              again
 *     WAITING,  OWNED      who cancels, drops,      LIN of the end
 *     PENDING              or hands back
 *     RUNNING,  stop set   who cancels              no further attempt
 *     OWNED
 *     STARTING, gone set   its timer, handed back   the engine stops; who has the task ends it
 *     RUNNING,             (OWNED: or expired)
 *     OWNED
 *     OWNED     ABANDONED  who has ended it         its timer is still to come
 *     OWNED     FREE       who has ended it         its timer has come (gone), or never will
 *     ABANDONED FREE       its timer
 *
 * The timer. From its submit to its end a task has one timeout in the engine, so that stop meets
 * each task that nobody has at the time; `gone` says that there is none. It is scheduled for never,
 * and gets a deadline only once the task waits (WAITING), so it can expire in no other state than
 * WAITING and what follows a cancel or drop of that. It comes back exactly once (it expires, or is
 * handed back), unless tw_cancel says that it never will. An attempt's timer is spent; the next one
 * is made before the attempt begins, as the first schedule of the callback, which no limit of the
 * engine refuses.
 */
#ifndef TWI_RETRY_WORD_H
#define TWI_RETRY_WORD_H

#include <stdbool.h>
#include <stdint.h>

enum twi_task_state {
	TWI_TASK_FREE = 0,
	TWI_TASK_STARTING = 1,
	TWI_TASK_WAITING = 2,
	TWI_TASK_RUNNING = 3,
	TWI_TASK_PENDING = 4,
	TWI_TASK_OWNED = 5,
	TWI_TASK_ABANDONED = 6,
};

#define TWI_TASK_STATE_MASK UINT64_C(7)
#define TWI_TASK_GONE UINT64_C(8)
#define TWI_TASK_STOP UINT64_C(16)
#define TWI_TASK_RESULT_ONE UINT64_C(32)
#define TWI_TASK_RESULT_MASK UINT64_C(96)
#define TWI_TASK_STEP UINT64_C(128)

static inline enum twi_task_state twi_task_state(uint64_t word)
{
	return (enum twi_task_state)(word & TWI_TASK_STATE_MASK);
}

/* Without state and flags. */
static inline uint64_t twi_task_step(uint64_t word)
{
	return word & ~(TWI_TASK_STEP - 1);
}

static inline uint64_t twi_task_next_step(uint64_t word, enum twi_task_state state)
{
	return twi_task_step(word) + TWI_TASK_STEP + (uint64_t)state;
}

/* The same step in another state; stop and gone stay, a result has been taken note of. */
static inline uint64_t twi_task_to(uint64_t word, enum twi_task_state state)
{
	return (word & ~(TWI_TASK_STATE_MASK | TWI_TASK_RESULT_MASK)) | (uint64_t)state;
}

/* A result in a word: 0 is none. */
static inline uint64_t twi_task_with_result(uint64_t word, int result)
{
	return word + ((uint64_t)result + 1) * TWI_TASK_RESULT_ONE;
}

/* What the attempt was completed with, or -1. */
static inline int twi_task_result(uint64_t word)
{
	return (int)((word & TWI_TASK_RESULT_MASK) / TWI_TASK_RESULT_ONE) - 1;
}

/* Accepted, and not left yet by who has ended it. */
static inline bool twi_task_lives(uint64_t word)
{
	enum twi_task_state state = twi_task_state(word);

	return state >= TWI_TASK_WAITING && state <= TWI_TASK_OWNED;
}

/* Nobody has it, and whoever wants to end it may take it. */
static inline bool twi_task_rests(uint64_t word)
{
	enum twi_task_state state = twi_task_state(word);

	return state == TWI_TASK_WAITING || state == TWI_TASK_PENDING;
}

#endif
