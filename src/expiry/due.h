/* SPDX-License-Identifier: MIT */
/* Timeouts that were passed to the dispatch hook. */
#ifndef TWI_EXPIRY_DUE_H
#define TWI_EXPIRY_DUE_H

#include "worker/worker.h"

/* The result of an attempt to claim a dispatched timeout for a run. */
enum twi_due_claim {
	TWI_DUE_TAKEN,
	TWI_DUE_PENDING, /* not expired yet, put back, or a chain between two runs */
	TWI_DUE_RUNNING,
	TWI_DUE_ENDED,
};

/*
 * Does the same as twi_run for a timeout that was passed to the dispatch hook, but only if this
 * call is the first to claim it.
 */
enum twi_due_claim twi_due_run(const struct tw_due *due);

/* Passes a rejected timeout to the drop hook. */
void twi_due_drop(const struct tw_due *due);

/*
 * Makes a rejected timeout pending again, and takes it out of the count of expired ones. Returns
 * false if a thread already runs it, or it has ended.
 */
TWI_WORKER_ONLY bool twi_due_again(const struct tw_due *due);

#endif
