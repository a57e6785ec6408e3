/* SPDX-License-Identifier: MIT */
/*
 * Lists of nodes, linked forwards by the ingress link, which is the worker's once the node is out of
 * ingress, and backwards by the place (timeout/node.h: limbo); and the sort by deadline. [worker]
 *
 * Cost: O(n), but O(n log n) for more than 32,768 in one tick.
 */
#ifndef TWI_WHEEL_ORDER_H
#define TWI_WHEEL_ORDER_H

#include "memory/memory.h"
#include "timeout/node.h"
#include "wheel/slot.h"

/* RELAXED, both: out of ingress, the link is the worker's alone. */
static inline struct twi_node *twi_list_next(struct twi_node *node)
{
	struct twi_mpsc_node *link = twi_load_relaxed(&node->ingress.next);

	return link != NULL ? twi_node_of_ingress(link) : NULL;
}

/* RELAXED: as above. */
static inline void twi_list_link(struct twi_node *node, struct twi_node *next)
{
	twi_store_relaxed(&node->ingress.next, next != NULL ? &next->ingress : NULL);
}

/* What sorts: memory of its own, a MiB of which is touched what is used, so that a turn asks for none. */
struct twi_order;

/* NULL when there is no memory. */
struct twi_order *twi_order_create(const struct tw_allocator *allocator);

/* NULL is accepted. */
void twi_order_destroy(struct twi_order *order, const struct tw_allocator *allocator);

uint64_t twi_order_bytes(void);

/* How far to go before what is due is taken: `limit`, which is after `now`, or a tick between. */
uint64_t twi_order_step(struct twi_order *order, uint64_t now, uint64_t limit);

/* Leaves the batch empty. */
TWI_WORKER_ONLY void twi_order_add(struct twi_order *order, struct twi_due_batch *batch);

/*
 * All that was added, as a list: by deadline, the earliest first, and of equal ones as they came. NULL:
 * nothing was.
 */
TWI_WORKER_ONLY struct twi_node *twi_order_take(struct twi_order *order);

/* A node of the list goes out: asks for one that does soon. */
TWI_WORKER_ONLY void twi_order_ahead(struct twi_order *order);

#endif
