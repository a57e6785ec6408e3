/* SPDX-License-Identifier: MIT */
/*
 * This file is never built. It has a producer that accesses the wheel, and plain uses of an atomic.
 * check_clang.py requires that clang reports each line that is marked wrong, and no other.
 */
#include "worker/role.h"

void planted_producer(struct twi_worker *worker, struct twi_node *node);
void planted_worker(struct twi_worker *worker, struct twi_node *node);

void planted_producer(struct twi_worker *worker, struct twi_node *node)
{
	struct twi_wheel *wheel = worker->wheel; /* wrong: -Wthread-safety-analysis */

	twi_wheel_insert(wheel, node);                /* wrong: -Wthread-safety-analysis */
	worker->near.lane[0].ingress_out.tail = NULL; /* wrong: -Wthread-safety-analysis */
	worker->state = TW_ENGINE_STOPPED;            /* wrong: -Watomic-implicit-seq-cst */
	worker->units_pending++;                      /* wrong: -Watomic-implicit-seq-cst */
	twi_mpsc_push_mp(&worker->near.lane[0].ingress, &node->ingress);
}

/* Makes the same accesses on a thread that has become the worker, which is allowed. */
void planted_worker(struct twi_worker *worker, struct twi_node *node)
{
	twi_worker_enter(worker);
	twi_wheel_insert(worker->wheel, node);
	worker->near.lane[0].ingress_out.tail = NULL;
}
