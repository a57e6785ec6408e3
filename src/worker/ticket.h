/* SPDX-License-Identifier: MIT */
/* Flush tickets: a thread takes a ticket and waits until a turn has served it. */
#ifndef TWI_WORKER_TICKET_H
#define TWI_WORKER_TICKET_H

#include "worker/worker.h"

/* Notifies the threads that wait in flush that something has changed. */
void twi_flush_notify(struct twi_worker *worker);

/* Marks all tickets up to `ticket` as served. */
void twi_flush_serve(struct twi_worker *worker, uint32_t ticket);

#endif
