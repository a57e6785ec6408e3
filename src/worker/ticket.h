/* SPDX-License-Identifier: MIT */
/*
 * Tickets of settle: a thread takes one and waits until a turn has served it.
 */
#ifndef TWI_WORKER_TICKET_H
#define TWI_WORKER_TICKET_H

#include "worker/worker.h"

/* Notifies the threads that wait in settle that something has changed. */
void twi_settle_notify(struct twi_worker *worker);

/* Marks all tickets up to `ticket` as served. */
void twi_settle_serve(struct twi_worker *worker, uint32_t ticket);

#endif
