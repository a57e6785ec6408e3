/* SPDX-License-Identifier: MIT */
/*
 * The due list of an adapter for an event loop: timers that have expired in a poll of the engine,
 * and whose callbacks have not run yet. They run in the order in which the host runs its own
 * timers. Two keys in each link give this order.
 *
 * A poll delivers the timers in the order of their deadlines, except those that reached the wheel
 * after their tick. So the list appends timers as they come, and sorts itself only if one of them
 * is out of order. Only the loop's thread uses the list.
 */
#ifndef TWI_HOSTS_DUE_H
#define TWI_HOSTS_DUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The links and keys of a timer in the list. It must be a member of the host's timer. */
struct twi_host_due_link {
	/*
	 * The first key of the order. libuv: the timer's time in ms; libevent: the number of its
	 * poll or activation.
	 */
	uint64_t when;
	/*
	 * The second key, for equal `when`. libuv: the number of the timer's start; libevent: its
	 * time.
	 */
	uint64_t order;
	struct twi_host_due_link *next;
	struct twi_host_due_link *previous;
};

struct twi_host_due_list {
	struct twi_host_due_link *first;
	struct twi_host_due_link *last;
	bool unsorted;
};

/* Returns whether `left` runs before `right`. */
static inline bool twi_host_due_before(const struct twi_host_due_link *left,
				       const struct twi_host_due_link *right)
{
	return left->when < right->when ||
	       (left->when == right->when && left->order < right->order);
}

/* Appends a timer. The list is sorted only before its first timer is taken. Cost: O(1). */
void twi_host_due_append(struct twi_host_due_list *list, struct twi_host_due_link *link);

/* Removes a timer. Cost: O(1). */
void twi_host_due_remove(struct twi_host_due_list *list, struct twi_host_due_link *link);

/* Returns the timer that runs first, or NULL. Cost: O(1), or O(n log n) if the list is unsorted. */
struct twi_host_due_link *twi_host_due_first(struct twi_host_due_list *list);

#endif
