/* SPDX-License-Identifier: MIT */
/* The worker's thread, if the engine has one. */
#ifndef TWI_TURN_THREAD_H
#define TWI_TURN_THREAD_H

#include "worker/worker.h"

/* Runs the worker's thread, from its first turn to the finish of the engine. */
void twi_worker_run(struct twi_worker *worker);

/*
 * Sleeps until the wheel or another thread needs the worker. `left`: the work that the turn before
 * has left, as enum twi_left.
 */
TWI_WORKER_ONLY void twi_worker_sleep(struct twi_worker *worker, unsigned left);

#endif
