/* SPDX-License-Identifier: MIT */
/*
 * The life of an engine is one state word, on which stop also sleeps:
 *
 *     NEW       -> STARTING           start: the winner of the compare-and-swap makes the thread
 *     STALLED   -> STARTING           start again after a failure
 *     STARTING  -> RUNNING            the worker, when it begins
 *     STARTING  -> STALLED            start, when the thread cannot be made
 *     STARTING, RUNNING -> FAILED     the worker's thread ends inside a callback
 *     NEW, STARTING -> RUNNING        loop mode: a thread becomes the owner
 *     RUNNING   -> STARTING           loop mode: the owner leaves
 *     STOPPING  -> ORPHAN             loop mode: the owner leaves
 *     STARTING  -> ORPHAN             loop mode: stop, while there is no owner
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
 *     STOPPING  -> STOPPED            the finisher; its last touch of the engine
 *
 * A schedule is accepted only in STARTING and RUNNING. The caller checks the life inside a
 * read-side section.
 */
#ifndef TWI_WORKER_LIFE_H
#define TWI_WORKER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

enum twi_life {
	TWI_LIFE_NEW = 0,
	TWI_LIFE_STARTING = 1,
	TWI_LIFE_RUNNING = 2,
	TWI_LIFE_STALLED = 3,
	TWI_LIFE_FAILED = 4,
	TWI_LIFE_STOPPING_STARTING = 5,
	TWI_LIFE_STOPPING = 6,
	TWI_LIFE_ORPHAN = 7,
	TWI_LIFE_STOPPED = 8,
};

/* Whether the engine takes timeouts. */
static inline bool twi_life_accepts(uint32_t life)
{
	return life == TWI_LIFE_RUNNING || life == TWI_LIFE_STARTING;
}

#endif
