/* SPDX-License-Identifier: MIT */
/*
 * A merge sort of a list: pile k holds nothing, or 2^k sorted nodes, and a node that comes is merged
 * with full piles like a carry.
 */
#include "wheel/order.h"

#include <stddef.h>

enum { PILES = 48 };

struct twi_node *twi_list_add(struct twi_node *list, struct twi_due_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		twi_list_link(batch->node[i], list);
		list = batch->node[i];
	}
	batch->count = 0;
	return list;
}

static struct twi_node *merge(struct twi_node *a, struct twi_node *b)
{
	struct twi_node *first = NULL;
	struct twi_node *last = NULL;

	while (a != NULL && b != NULL) {
		struct twi_node **least =
			twi_node_deadline_ns(b) < twi_node_deadline_ns(a) ? &b : &a;

		if (last != NULL)
			twi_list_link(last, *least);
		else
			first = *least;
		last = *least;
		*least = twi_list_next(last);
	}
	if (last == NULL)
		return a != NULL ? a : b;
	twi_list_link(last, a != NULL ? a : b);
	return first;
}

struct twi_node *twi_list_sort(struct twi_node *list)
{
	struct twi_node *pile[PILES] = {NULL};
	struct twi_node *sorted = NULL;

	while (list != NULL) {
		struct twi_node *carry = list;
		unsigned k = 0;

		list = twi_list_next(list);
		twi_list_link(carry, NULL);
		for (; pile[k] != NULL; pile[k++] = NULL)
			carry = merge(carry, pile[k]);
		pile[k] = carry;
	}
	for (unsigned k = 0; k < PILES; k++)
		sorted = merge(sorted, pile[k]);
	return sorted;
}

void twi_list_place(struct twi_node *list)
{
	struct twi_node *previous = NULL;

	for (; list != NULL; list = twi_list_next(list)) {
		list->place = (uintptr_t)previous | TWI_PLACE_LIMBO;
		previous = list;
	}
}
