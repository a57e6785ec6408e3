/* SPDX-License-Identifier: MIT */
/*
 * One turn of the worker.
 */
#ifndef TWI_TURN_TURN_H
#define TWI_TURN_TURN_H

#include "worker/worker.h"

/* Takes one turn. Returns bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_turn(struct twi_worker *worker);

/* Takes one turn. The caller has already read the clock: `now_ns`. */
TWI_WORKER_ONLY unsigned twi_worker_turn_at(struct twi_worker *worker, int64_t now_ns);

#endif
