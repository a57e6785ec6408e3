/* SPDX-License-Identifier: MIT */
/*
 * The limit of pending timeouts.
 */
#ifndef TWI_EXPIRY_LIMIT_H
#define TWI_EXPIRY_LIMIT_H

#include "worker/worker.h"

/* Takes a slot of the limit. Returns false if none is free. */
bool twi_limit_take(struct twi_worker *worker, struct twi_thread *thread);

void twi_limit_give(struct twi_worker *worker);

void twi_limit_give_many(struct twi_worker *worker, uint64_t count);

#endif
