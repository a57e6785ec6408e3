/* SPDX-License-Identifier: MIT */
/*
 * The state word of a task. It holds step and state, so that one compare-and-swap both rejects a
 * stale handle and decides a race.
 *
 *     bits 63..7 step | bits 6..5 result | bit 4 stop | bit 3 gone | bits 2..0 state
 *
 * The step goes up when a free block becomes a task and at each attempt, and no step is ever used
 * twice. Inside one step, a task enters each state but OWNED at most once. A handle has the step
 * with which its task began, and the step of the attempt that it was given to. The runner is the
 * thread that runs the attempt. The ender is the thread that has ended the task, or the submitter
 * if the submit fails. LIN marks the linearization point of a call.
 *
 *     from      to         by                       when
 *     FREE      STARTING   submitter                begins: step + 1, by a store: not shared yet
 *     STARTING  WAITING    submitter                LIN of the submit
 *     WAITING   RUNNING    its timer, expired       LIN of the attempt: step + 1
 *     RUNNING   PENDING    runner                   if the attempt returned TW_RETRY_PENDING and
 *                                                  was not completed meanwhile
 *     RUNNING   OWNED      runner                   if the attempt is over, or was completed
 *     PENDING   OWNED      completer                LIN of the completion
 *     RUNNING   the same   completer                LIN: the result goes into the word
 *     OWNED     WAITING    owner                    if the task is to be tried again
 *     WAITING,  OWNED      canceller, dropping      LIN of the end
 *     PENDING              thread, or hand-back
 *     RUNNING,  stop set   canceller                no further attempt
 *     OWNED
 *     STARTING, gone set   its timer, handed back   if the engine stops; the task's thread ends it
 *     RUNNING,
 *     OWNED
 *     OWNED     gone set   its timer, expired       if a cancel or drop came just before
 *     STARTING, ABANDONED  ender                    if its timer has not ended yet
 *     OWNED
 *     STARTING, FREE       ender                    if its timer has ended (gone or cancelled), or
 *     OWNED                                         was never made
 *     ABANDONED FREE       its timer
 *
 * The timer. From its submit to its end a task has one timeout in the engine, so that
 * tw_engine_stop reaches each task that no thread has at the time. `gone` means that the task has
 * no such timeout now. The timeout is scheduled for never, and gets a deadline only when the task
 * is WAITING. So it can expire only in WAITING, or in a state after a cancel or drop of a waiting
 * task. The timeout expires or is handed back exactly once, unless tw_cancel reports that it never
 * will. When an attempt begins, the task's timer has expired. The next timer is made before the
 * attempt runs. It is the first schedule inside the timer's callback, which no limit of the engine
 * rejects.
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

/* Returns the step of a state word: the word without state, result and flags. */
static inline uint64_t twi_task_step(uint64_t word)
{
	return word & ~(TWI_TASK_STEP - 1);
}

static inline uint64_t twi_task_next_step(uint64_t word, enum twi_task_state state)
{
	return twi_task_step(word) + TWI_TASK_STEP + (uint64_t)state;
}

/*
 * Returns the same step in another state. The flags stop and gone stay. The result is cleared, so
 * the caller must read it before.
 */
static inline uint64_t twi_task_to(uint64_t word, enum twi_task_state state)
{
	return (word & ~(TWI_TASK_STATE_MASK | TWI_TASK_RESULT_MASK)) | (uint64_t)state;
}

/* Adds a result to a state word that has none. In the word, 0 stands for no result. */
static inline uint64_t twi_task_with_result(uint64_t word, int result)
{
	return word + ((uint64_t)result + 1) * TWI_TASK_RESULT_ONE;
}

/* Returns the result that the attempt was completed with, or -1. */
static inline int twi_task_result(uint64_t word)
{
	return (int)((word & TWI_TASK_RESULT_MASK) / TWI_TASK_RESULT_ONE) - 1;
}

/* Returns whether the task is accepted, and has not ended. */
static inline bool twi_task_lives(uint64_t word)
{
	enum twi_task_state state = twi_task_state(word);

	return state >= TWI_TASK_WAITING && state <= TWI_TASK_OWNED;
}

/* Returns whether no thread has the task, so that any thread may take it to end it. */
static inline bool twi_task_rests(uint64_t word)
{
	enum twi_task_state state = twi_task_state(word);

	return state == TWI_TASK_WAITING || state == TWI_TASK_PENDING;
}

#endif
