/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that went to the dispatch hook.
 */
#ifndef TWI_EXPIRY_DUE_H
#define TWI_EXPIRY_DUE_H

#include "worker/worker.h"

/* The result of a claim of a timeout that went to the dispatch hook. */
enum twi_due_claim {
	TWI_DUE_TAKEN,
	TWI_DUE_PENDING, /* never expired, put back, or a chain between two runs */
	TWI_DUE_RUNNING,
	TWI_DUE_ENDED,
};

/*
 * Like twi_run, for a timeout that went to the dispatch hook, if this call claims it first.
 */
enum twi_due_claim twi_due_run(const struct tw_due *due);

/* Gives a rejected timeout to the drop hook. */
void twi_due_drop(const struct tw_due *due);

/*
 * Makes a rejected timeout pending again, and counts it out. False if a thread runs it
 * already, or it is over.
 */
TWI_WORKER_ONLY bool twi_due_again(const struct tw_due *due);

#endif
