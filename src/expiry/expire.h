/* SPDX-License-Identifier: MIT */
/*
 * Expires the timeouts that are due.
 */
#ifndef TWI_EXPIRY_EXPIRE_H
#define TWI_EXPIRY_EXPIRE_H

#include "worker/worker.h"

/* Expires the timeouts that are due at or before tick `limit`. Returns bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_expire(struct twi_worker *worker, uint64_t limit);

/*
 * Puts back the timeouts that were taken out of the wheel and have not run, cancelled ones too. The
 * node of a cancelled one may be in a cancel queue, and reclaim must find it in the wheel.
 */
TWI_WORKER_ONLY void twi_worker_due_put_back(struct twi_worker *worker);

/*
 * Takes a node out of the current batch, because its deadline has changed. Returns false if the
 * node is not in the batch.
 */
TWI_WORKER_ONLY bool twi_due_remove(struct twi_worker *worker, const struct twi_node *node);

/*
 * Runs, drops or requeues the timeouts that the dispatch hook did not accept (enum tw_rejection).
 * Runs those that the hook was not offered.
 */
TWI_WORKER_ONLY void twi_worker_rejected_end(struct twi_worker *worker);

#endif
