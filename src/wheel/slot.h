/* SPDX-License-Identifier: MIT */
/*
 * A slot: an unordered set of entries in a chain of chunks. All chunks except the last are full.
 *
 * When an entry is removed, the slot's last entry moves to its position, and the moved node's place
 * is updated. So there are no holes, and memory is bounded by the number of pending timeouts.
 * [worker], all of it.
 */
#ifndef TWI_WHEEL_SLOT_H
#define TWI_WHEEL_SLOT_H

#include "timeout/node.h"
#include "wheel/chunk.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_slot {
	struct twi_chunk *first TWI_WORKER_FIELD;
	struct twi_chunk *last TWI_WORKER_FIELD;
	/* No entry is due before this tick. If the slot is empty, it is UINT64_MAX. */
	uint64_t earliest TWI_WORKER_FIELD;
	uint32_t chunk_count TWI_WORKER_FIELD; /* how many chunks the slot has */
};

/* Nodes that leave the wheel to be expired. */
struct twi_due_batch {
	struct twi_node **node;
	size_t count;
	size_t capacity;
};

static inline void twi_slot_init(struct twi_slot *slot)
{
	*slot = (struct twi_slot){.first = NULL, .last = NULL, .earliest = UINT64_MAX};
}

static inline TWI_WORKER_ONLY bool twi_slot_empty(const struct twi_slot *slot)
{
	return slot->last == NULL;
}

/*
 * Adds an entry for the node and sets the node's place. Returns false, and changes nothing, if
 * there is no memory.
 */
TWI_WORKER_ONLY bool twi_slot_append(struct twi_slot *slot, uint32_t slot_number,
				     struct twi_chunk_pool *pool, struct twi_node *node,
				     uint64_t due_tick);

/* Removes the entry at `place`, which must be in this slot. */
TWI_WORKER_ONLY void twi_slot_remove(struct twi_slot *slot, struct twi_chunk_pool *pool,
				     uintptr_t place);

/*
 * Moves entries into `batch`, oldest chunk first, until the slot is empty or the next chunk does
 * not fit into the batch.
 */
TWI_WORKER_ONLY void twi_slot_take_all(struct twi_slot *slot, struct twi_chunk_pool *pool,
				       struct twi_due_batch *batch);

/*
 * Copies the oldest chunk to `*ret_chunk` and removes it from the slot. Its nodes keep their old
 * places until they are filed again. Returns false if the slot is empty.
 */
TWI_WORKER_ONLY bool twi_slot_take_chunk(struct twi_slot *slot, struct twi_chunk_pool *pool,
					 struct twi_chunk *ret_chunk);

/* The position of a search for due entries inside one slot. */
struct twi_slot_scan {
	/* the chunk where the search continues, or NULL before it begins */
	struct twi_chunk *cursor;
	uint64_t now;      /* no entry is due at or before this tick */
	uint64_t limit;    /* the search wants entries due at or before this tick */
	int64_t before_ns; /* `limit` as a time: deadlines before it are due */
	int64_t epoch_ns;
	uint64_t tick_ns;
	uint64_t earliest; /* no entry that the search has left in the slot is due before this */
};

/*
 * Moves due entries into `batch`. An entry is also moved if the tick by which it was filed is due,
 * but a reschedule has made the deadline later. Continues at the scan's position. Returns true if
 * the whole slot was searched. Then `earliest` of the slot is exact for timeouts that are due
 * within 2^32 ticks.
 */
TWI_WORKER_ONLY bool twi_slot_take_due(struct twi_slot *slot, struct twi_chunk_pool *pool,
				       struct twi_slot_scan *scan, struct twi_due_batch *batch);

/* Checks a slot's chunks. Returns NULL or an error text. Adds the number of entries to `*count`. */
TWI_WORKER_ONLY const char *twi_slot_check(const struct twi_slot *slot, uint32_t slot_number,
					   uint64_t *count);

#endif
