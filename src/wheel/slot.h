/* SPDX-License-Identifier: MIT */
/*
 * A slot: a bag of entries in chained chunks, all of them full but the last.
 *
 * An entry that leaves is replaced by the slot's last one, so that no hole is ever carried along
 * and memory stays at what is pending; the replaced node is told its new place. [worker], all of
 * it.
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
	/* Lower bound of the entries' due ticks; UINT64_MAX when empty. */
	uint64_t earliest TWI_WORKER_FIELD;
	uint32_t chunk_count TWI_WORKER_FIELD; /* how crowded it is */
};

/* What leaves a slot, on its way to whoever expires it. */
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

/* Makes an entry and tells the node its place. False: no memory, nothing changed. */
TWI_WORKER_ONLY bool twi_slot_append(struct twi_slot *slot, uint32_t slot_number,
				     struct twi_chunk_pool *pool, struct twi_node *node,
				     uint64_t due_tick);

/* Takes out the entry at `place`, which is in this slot. */
TWI_WORKER_ONLY void twi_slot_remove(struct twi_slot *slot, struct twi_chunk_pool *pool,
				     uintptr_t place);

/* Moves entries into `batch`, oldest first, chunk by chunk, until the slot or the room is used up.
 */
TWI_WORKER_ONLY void twi_slot_take_all(struct twi_slot *slot, struct twi_chunk_pool *pool,
				       struct twi_due_batch *batch);

/*
 * Takes the oldest chunk out; its nodes keep the place they had until they get another. False: the
 * slot is empty.
 */
TWI_WORKER_ONLY bool twi_slot_take_chunk(struct twi_slot *slot, struct twi_chunk_pool *pool,
					 struct twi_chunk *ret_chunk);

/* Where a search for due entries stands, inside one slot. */
struct twi_slot_scan {
	struct twi_chunk *cursor; /* NULL: at the slot's begin */
	uint64_t now;             /* nothing is due at or before this tick */
	uint64_t limit;           /* what is due at or before this tick is wanted */
	int64_t before_ns;        /* the same as a deadline: due is what lies below */
	int64_t epoch_ns;
	uint64_t tick_ns;
	uint64_t earliest; /* lower bound of what was seen and is not due */
};

/*
 * Moves into `batch` what is due, or was when it was filed and is rescheduled, and goes on where the
 * scan stands. Returns true when the whole
 * slot was looked at; its lower bound is exact then, up to 2^32 ticks.
 */
TWI_WORKER_ONLY bool twi_slot_take_due(struct twi_slot *slot, struct twi_chunk_pool *pool,
				       struct twi_slot_scan *scan, struct twi_due_batch *batch);

/* The judge of a slot's chain: NULL, or what is wrong. Adds the entries to `*count`. */
TWI_WORKER_ONLY const char *twi_slot_check(const struct twi_slot *slot, uint32_t slot_number,
					   uint64_t *count);

#endif
