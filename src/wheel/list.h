/* SPDX-License-Identifier: MIT */
/*
 * The links of the wheel's lists, for nodes that are in no slot. The forward link is the node's
 * ingress link, which only the worker uses after the node has left ingress. The backward link is
 * the node's place (TWI_PLACE_LISTED in timeout/node.h). [worker]
 */
#ifndef TWI_WHEEL_LIST_H
#define TWI_WHEEL_LIST_H

#include "timeout/node.h"

/* RELAXED, load and store: only the worker uses the link of a node that has left ingress. */
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

/* Appends the node after `last`, or makes it the only one if there is none. */
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

/* Inserts the node at the front of the list. */
static inline TWI_WORKER_ONLY void twi_list_add(struct twi_node **list, struct twi_node *node)
{
	twi_list_link(node, *list);
	if (*list != NULL)
		(*list)->place = (uintptr_t)node | TWI_PLACE_LISTED;
	*list = node;
	node->place = TWI_PLACE_LISTED;
}

#endif
