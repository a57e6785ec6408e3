/* SPDX-License-Identifier: MIT */
#include "hosts/due.h"

void twi_host_due_append(struct twi_host_due_list *list, struct twi_host_due_link *link)
{
	link->next = NULL;
	link->previous = list->last;
	if (list->last == NULL) {
		list->first = link;
	} else {
		list->last->next = link;
		list->unsorted |= twi_host_due_before(link, list->last);
	}
	list->last = link;
}

void twi_host_due_remove(struct twi_host_due_list *list, struct twi_host_due_link *link)
{
	if (link->previous == NULL)
		list->first = link->next;
	else
		link->previous->next = link->next;
	if (link->next == NULL)
		list->last = link->previous;
	else
		link->next->previous = link->previous;
}

/* Merges two sorted chains. Sets only `next`; the caller sets `previous` afterwards. */
static struct twi_host_due_link *merge(struct twi_host_due_link *left,
				       struct twi_host_due_link *right)
{
	struct twi_host_due_link *first = NULL;
	struct twi_host_due_link **end = &first;

	while (left != NULL && right != NULL) {
		struct twi_host_due_link **from = twi_host_due_before(right, left) ? &right : &left;

		*end = *from;
		end = &(*from)->next;
		*from = (*from)->next;
	}
	*end = left != NULL ? left : right;
	return first;
}

/*
 * Sorts a chain by a merge sort without recursion. chain[i] is empty or holds 2^i sorted timers,
 * like bit i of a binary counter. 64 chains are enough for all timers that fit into memory.
 */
static struct twi_host_due_link *sorted(struct twi_host_due_link *rest)
{
	struct twi_host_due_link *chain[64] = {NULL};
	struct twi_host_due_link *all = NULL;

	while (rest != NULL) {
		struct twi_host_due_link *one = rest;
		size_t i = 0;

		rest = rest->next;
		one->next = NULL;
		for (; chain[i] != NULL; i++) {
			one = merge(chain[i], one);
			chain[i] = NULL;
		}
		chain[i] = one;
	}
	for (size_t i = 0; i < sizeof chain / sizeof chain[0]; i++)
		all = merge(chain[i], all);
	return all;
}

struct twi_host_due_link *twi_host_due_first(struct twi_host_due_list *list)
{
	struct twi_host_due_link *previous = NULL;

	if (!list->unsorted)
		return list->first;
	list->unsorted = false;
	list->first = sorted(list->first);
	for (struct twi_host_due_link *link = list->first; link != NULL; link = link->next) {
		link->previous = previous;
		previous = link;
	}
	list->last = previous;
	return list->first;
}
