/* SPDX-License-Identifier: MIT */
/* Takes cancelled nodes out of the wheel, and files rescheduled nodes again. */
#ifndef TWI_INGRESS_RECLAIM_H
#define TWI_INGRESS_RECLAIM_H

#include "worker/worker.h"

/* Takes cancelled nodes out of the wheel. Returns bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_reclaim(struct twi_worker *worker, uint64_t batch);

/* Reclaims one node that came out of a cancel queue. Returns true if its memory is free again. */
TWI_WORKER_ONLY bool twi_node_reclaim(struct twi_worker *worker, struct twi_node *node);

/*
 * Keeps the deadline of a cancelled timeout as a time to wake up (sleep.c). Without it, a program
 * that repeatedly cancels its only timeout would wake the worker at each next schedule, because the
 * worker would sleep without a deadline.
 */
static inline TWI_WORKER_ONLY void twi_worker_give_up(struct twi_worker *worker,
						      struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	if (deadline_ns < worker->given_up_ns)
		worker->given_up_ns = deadline_ns;
}

#endif
