/* SPDX-License-Identifier: MIT */
/*
 * Moves pushed timeouts into the wheel.
 */
#ifndef TWI_INGRESS_TRANSFER_H
#define TWI_INGRESS_TRANSFER_H

#include "worker/worker.h"

/*
 * Takes at most one batch from rings and link queues. Adds bits of enum twi_left to *left, for the
 * work that remains there.
 */
TWI_WORKER_ONLY uint64_t twi_ingress_take(struct twi_worker *worker, uint64_t batch,
					  unsigned *left);

/*
 * Takes a batch as twi_ingress_take does, and counts the transfer. Returns bits of enum twi_left.
 */
TWI_WORKER_ONLY unsigned twi_worker_transfer(struct twi_worker *worker, uint64_t batch);

#endif
