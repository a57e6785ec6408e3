/* SPDX-License-Identifier: MIT */
/*
 * Lists of nodes, linked forwards by the ingress link, which is the worker's once the node is out of
 * ingress, and backwards by the place (timeout/node.h: limbo); and the sort by deadline. [worker]
 *
 * Cost: O(n log n), and no memory.
 */
#ifndef TWI_WHEEL_ORDER_H
#define TWI_WHEEL_ORDER_H

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

/* The batch, before the list; leaves the batch empty. */
struct twi_node *twi_list_add(struct twi_node *list, struct twi_due_batch *batch);

/* By deadline, the earliest first. */
struct twi_node *twi_list_sort(struct twi_node *list);

/* Tells each node which one is before it. */
TWI_WORKER_ONLY void twi_list_place(struct twi_node *list);

#endif
