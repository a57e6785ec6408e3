/* SPDX-License-Identifier: MIT */
/*
 * Lists of nodes, and the sort by deadline. A list is linked forwards by the ingress link, which is
 * the worker's when the node is out of ingress, and backwards by the place (timeout/node.h:
 * unslotted). [worker]
 *
 * Cost: O(n), but O(n log n) for more than 32,768 in one tick.
 */
#ifndef TWI_WHEEL_ORDER_H
#define TWI_WHEEL_ORDER_H

#include "memory/memory.h"
#include "timeout/node.h"
#include "wheel/slot.h"

/* RELAXED, both: when a node is out of ingress, only the worker uses the link. */
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

/*
 * The sorter. It has a MiB of memory of its own, so that a turn allocates none. Only the used pages
 * are touched.
 */
struct twi_order;

/* Returns NULL if there is no memory. */
struct twi_order *twi_order_create(const struct tw_allocator *allocator);

/* NULL is accepted. */
void twi_order_destroy(struct twi_order *order, const struct tw_allocator *allocator);

uint64_t twi_order_bytes(void);

/* Returns the end of the next step: `limit`, which must be after `now`, or a tick between. */
uint64_t twi_order_step(struct twi_order *order, uint64_t now, uint64_t limit);

/* Adds the nodes of the batch. Leaves the batch empty. */
TWI_WORKER_ONLY void twi_order_add(struct twi_order *order, struct twi_due_batch *batch);

/*
 * Returns all added nodes as a list, the earliest deadline first. Nodes with equal deadlines keep
 * the order in which they were added. NULL: there are none.
 */
TWI_WORKER_ONLY struct twi_node *twi_order_take(struct twi_order *order);

/* Prefetches a node that is given out soon. Called for each node that is given out. */
TWI_WORKER_ONLY void twi_order_ahead(struct twi_order *order);

#endif
