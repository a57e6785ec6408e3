/* SPDX-License-Identifier: MIT */
/*
 * The thread of an engine that has one.
 */
#ifndef TWI_TURN_THREAD_H
#define TWI_TURN_THREAD_H

#include "worker/worker.h"

/* The worker's thread, from its first to its last turn. Ends by finish. */
void twi_worker_run(struct twi_worker *worker);

/* Sleeps until the wheel or another thread needs the worker. `left`: of the turn before. */
TWI_WORKER_ONLY void twi_worker_sleep(struct twi_worker *worker, unsigned left);

#endif
