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
	struct twi_chunk *first;
	struct twi_chunk *last;
	uint64_t earliest; /* lower bound of the entries' due ticks; UINT64_MAX when empty */
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

static inline bool twi_slot_empty(const struct twi_slot *slot)
{
	return slot->last == NULL;
}

/* Makes an entry and tells the node its place. False: no memory, nothing changed. */
bool twi_slot_append(struct twi_slot *slot, uint32_t slot_number, struct twi_chunk_pool *pool,
		     struct twi_node *node, uint64_t due_tick);

/* Takes out the entry at `place`, which is in this slot. */
void twi_slot_remove(struct twi_slot *slot, struct twi_chunk_pool *pool, uintptr_t place);

/* Moves entries into `batch`, oldest first, chunk by chunk, until the slot or the room is used up.
 */
void twi_slot_take_all(struct twi_slot *slot, struct twi_chunk_pool *pool,
		       struct twi_due_batch *batch);

/*
 * Moves into `batch` what is due at or before tick `limit`. `now` is the tick up to which nothing
 * is left, `before` the time since the epoch (in the node's own clock) that `limit` stands for:
 * a deadline is due when it is below. Goes on at `*cursor`. Returns true when the whole slot was
 * looked at; the slot's lower bound is exact then, up to 2^32 ticks.
 */
struct twi_slot_scan {
	struct twi_chunk *cursor; /* NULL: at the slot's begin */
	uint64_t now;
	uint64_t limit;
	int64_t before_ns;
	uint64_t earliest;
};

/* The judge of a slot's chain: NULL, or what is wrong. Adds the entries to `*count`. */
const char *twi_slot_check(const struct twi_slot *slot, uint32_t slot_number, uint64_t *count);

bool twi_slot_take_due(struct twi_slot *slot, struct twi_chunk_pool *pool,
		       struct twi_slot_scan *scan, struct twi_due_batch *batch);

#endif
