/* SPDX-License-Identifier: MIT */
/* Takes cancelled nodes out of the wheel, and files rescheduled nodes again. */
#ifndef TWI_INGRESS_RECLAIM_H
#define TWI_INGRESS_RECLAIM_H

#include "worker/worker.h"

/* Reclaims at most `batch` nodes from the cancel queues. Returns bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_reclaim(struct twi_worker *worker, uint64_t batch);

/*
 * Reclaims one node that came out of a cancel queue or a ring. Returns true if its timeout was
 * cancelled and its memory is now free.
 */
TWI_WORKER_ONLY bool twi_node_reclaim(struct twi_worker *worker, struct twi_node *node);

/*
 * Lets the worker wake up at the deadline of a cancelled timeout (turn/sleep.c). Otherwise a
 * program that again and again schedules and cancels its only timeout would wake the worker at each
 * schedule: the worker would sleep without a deadline, so every deadline would be an earlier one.
 */
static inline TWI_WORKER_ONLY void twi_worker_give_up(struct twi_worker *worker,
						      struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	if (deadline_ns < worker->given_up_ns)
		worker->given_up_ns = deadline_ns;
}

#endif
