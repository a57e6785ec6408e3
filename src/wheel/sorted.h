/* SPDX-License-Identifier: MIT */
/*
 * The sorted run: an array of the nodes of one step (fine.h), sorted by deadline. It is filled,
 * sorted once, and then given out from the front. A node that is removed leaves a hole. [worker],
 * all of it.
 *
 * The array has a copy of each deadline, so its order does not change when other threads reschedule
 * its nodes.
 */
#ifndef TWI_WHEEL_SORTED_H
#define TWI_WHEEL_SORTED_H

#include "base/compiler.h"
#include "timeout/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TWI_SORTED_MAX = 4096,
	/* Nodes are prefetched this many entries before they are given out. */
	TWI_SORTED_AHEAD = 8,
};

struct twi_sorted_entry {
	uint64_t since;        /* the deadline, in nanoseconds since the epoch */
	struct twi_node *node; /* NULL if the node was removed */
};

struct twi_sorted {
	size_t at TWI_WORKER_FIELD;    /* the first entry that is not given out yet */
	size_t count TWI_WORKER_FIELD; /* all entries: given out ones and holes, too */
	size_t left TWI_WORKER_FIELD;  /* nodes that are not given out yet */
	struct twi_sorted_entry *entry TWI_WORKER_FIELD; /* one of the arrays below */
	struct twi_sorted_entry array[2][TWI_SORTED_MAX + TWI_SORTED_AHEAD] TWI_WORKER_FIELD;
};

/*
 * Makes the run empty. Does not clear the arrays, so that their pages take no memory until they are
 * used.
 */
void twi_sorted_init(struct twi_sorted *sorted);

static inline TWI_WORKER_ONLY bool twi_sorted_full(const struct twi_sorted *sorted)
{
	return sorted->count == TWI_SORTED_MAX;
}

/* Adds a node. The array must not be full, and none of its nodes may have been given out yet. */
static inline TWI_WORKER_ONLY void twi_sorted_add(struct twi_sorted *sorted, struct twi_node *node,
						  uint64_t since)
{
	sorted->entry[sorted->count++] = (struct twi_sorted_entry){since, node};
	sorted->left++;
}

/*
 * Sorts the added nodes by deadline, and equal deadlines by sequence number. Sets the nodes'
 * places. Cost: O(n).
 */
TWI_WORKER_ONLY void twi_sorted_sort(struct twi_sorted *sorted);

/*
 * Sorts a list of nodes by sequence number. The list is linked by the nodes' places, which the
 * wheel does not need meanwhile. Returns the first node. Cost: O(n), with only one access to each
 * node if they are in order already.
 */
TWI_WORKER_ONLY struct twi_node *twi_sorted_list(struct twi_node *first);

/* Returns the first entry; there must be one. Skips the holes before it. */
static inline TWI_WORKER_ONLY const struct twi_sorted_entry *
twi_sorted_first(struct twi_sorted *sorted)
{
	while (TWI_UNLIKELY(sorted->entry[sorted->at].node == NULL))
		sorted->at++;
	return &sorted->entry[sorted->at];
}

/*
 * Counts a node that was given out or removed. After the last node, the array will be filled from
 * its beginning again.
 */
static inline TWI_WORKER_ONLY void twi_sorted_gone(struct twi_sorted *sorted)
{
	if (--sorted->left == 0)
		sorted->at = sorted->count = 0;
}

/* Takes out the entry that twi_sorted_first has returned, and prefetches a later one. */
static inline TWI_WORKER_ONLY struct twi_node *twi_sorted_take(struct twi_sorted *sorted)
{
	const struct twi_sorted_entry *entry = &sorted->entry[sorted->at++];
	struct twi_node *node = entry->node;

	/*
	 * The later entry may be a hole, or left over from an earlier step. A prefetch of its
	 * pointer does no harm.
	 */
	TWI_PREFETCH_WRITE(entry[TWI_SORTED_AHEAD].node);
	node->place = TWI_PLACE_NONE;
	twi_sorted_gone(sorted);
	return node;
}

/* Removes the node at `place`. Leaves a hole. */
TWI_WORKER_ONLY void twi_sorted_remove(struct twi_sorted *sorted, uintptr_t place);

/* Checks order and places. Returns NULL or an error text. Adds the number of nodes to `*count`. */
TWI_WORKER_ONLY const char *twi_sorted_check(const struct twi_sorted *sorted, uint64_t *count);

#endif
