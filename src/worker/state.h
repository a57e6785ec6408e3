/* SPDX-License-Identifier: MIT */
/*
 * The state of an engine: enum tw_engine_state, and two more. Stop waits on it as a futex. Below
 * are its changes, and which thread makes them:
 *
 *     NEW       -> STARTING           start: the winner of the compare-and-swap makes the thread
 *                                     (in loop mode there is none)
 *     STALLED   -> STARTING           start again after a failure
 *     STARTING  -> RUNNING            the worker, when it begins
 *     STARTING  -> STALLED            start, when the thread cannot be made
 *     STARTING, RUNNING -> FAILED     the worker's thread ends inside a callback
 *     NEW, STARTING -> RUNNING        loop mode: a thread opens a bracket
 *     RUNNING   -> STARTING           loop mode: the bracket is closed
 *     STOPPING  -> ORPHAN             loop mode: the bracket is closed
 *     STARTING  -> ORPHAN             loop mode: stop, while no bracket is open
 *     NEW, STARTING, RUNNING, STALLED, FAILED -> NEW, STALLED
 *                                     a forked child takes over its copy (engine/recover.c)
 *     NEW       -> STOPPED            stop: no timeout was ever accepted
 *     STARTING  -> STOPPING_STARTING  stop, while the thread is still being made
 *     STOPPING_STARTING -> STOPPING   the worker, when it begins
 *     STOPPING_STARTING -> ORPHAN     start, when the thread cannot be made
 *     RUNNING   -> STOPPING           stop; the worker sees it and finishes
 *     STALLED, FAILED -> ORPHAN       stop; there is no worker that could finish
 *     STOPPING  -> ORPHAN             the worker's thread ends inside a hand-back; or the stop that
 *                                     has adopted the engine runs out of time
 *     ORPHAN    -> STOPPING           a stop takes over: makes a thread, or finishes itself
 *     STOPPING  -> STOPPED            the finisher; its last access to the engine
 *
 * A schedule is accepted only in STARTING and RUNNING. The caller checks the state inside a
 * read-side section, or while it is present (thread/presence.h).
 */
#ifndef TWI_WORKER_STATE_H
#define TWI_WORKER_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/engine.h>

/* Two more states, which tw_engine_state reports as TW_ENGINE_STOPPING. */
enum {
	TWI_STATE_STOPPING_STARTING = TW_ENGINE_STOPPED + 1,
	TWI_STATE_ORPHAN,
};

/* Returns whether the engine accepts timeouts. */
static inline bool twi_state_accepts(uint32_t state)
{
	return state == TW_ENGINE_RUNNING || state == TW_ENGINE_STARTING;
}

#endif
