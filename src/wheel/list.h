/* SPDX-License-Identifier: MIT */
/*
 * The links of the lists beside the wheel. A list is linked forwards by the ingress link, which is
 * the worker's when the node is out of ingress, and backwards by the place (timeout/node.h:
 * unslotted). [worker]
 */
#ifndef TWI_WHEEL_LIST_H
#define TWI_WHEEL_LIST_H

#include "timeout/node.h"

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

/* Puts the node behind the last of the list, if there is one. */
static inline TWI_WORKER_ONLY void twi_list_append(struct twi_node **first, struct twi_node **last,
						   struct twi_node *node)
{
	twi_list_link(node, NULL);
	node->place = TWI_PLACE_LISTED;
	if (*first == NULL) {
		*first = node;
	} else {
		twi_list_link(*last, node);
		node->place |= (uintptr_t)*last;
	}
	*last = node;
}

/* Puts the node in front. */
static inline TWI_WORKER_ONLY void twi_list_add(struct twi_node **list, struct twi_node *node)
{
	twi_list_link(node, *list);
	if (*list != NULL)
		(*list)->place = (uintptr_t)node | TWI_PLACE_LISTED;
	*list = node;
	node->place = TWI_PLACE_LISTED;
}

#endif
