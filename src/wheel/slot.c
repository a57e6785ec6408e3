/* SPDX-License-Identifier: MIT */
#include "wheel/slot.h"

#include "base/compiler.h"
#include "base/tick.h"

static struct twi_node *entry_node(const struct twi_entry *entry)
{
	return twi_block_at(entry->block);
}

static TWI_WORKER_ONLY struct twi_chunk *last_extend(struct twi_slot *slot, uint32_t slot_number,
						     struct twi_chunk_pool *pool)
{
	struct twi_chunk *chunk = twi_chunk_take(pool);

	if (chunk == NULL)
		return NULL;
	chunk->next = NULL;
	chunk->previous = slot->last;
	chunk->slot = slot_number | pool->mark;
	if (slot->last != NULL)
		slot->last->next = chunk;
	else
		slot->first = chunk;
	slot->last = chunk;
	slot->chunk_count++;
	return chunk;
}

bool twi_slot_append(struct twi_slot *slot, uint32_t slot_number, struct twi_chunk_pool *pool,
		     struct twi_node *node, uint64_t due_tick)
{
	struct twi_chunk *chunk = slot->last;

	if (chunk == NULL || chunk->count == TWI_CHUNK_ENTRIES) {
		chunk = last_extend(slot, slot_number, pool);
		if (chunk == NULL)
			return false;
	}
	chunk->entry[chunk->count] =
		(struct twi_entry){.block = twi_block_index(node), .due = (uint32_t)due_tick};
	node->place = twi_place_of(chunk, chunk->count);
	chunk->count++;
	if (due_tick < slot->earliest)
		slot->earliest = due_tick;
	return true;
}

/* Unlinks a chunk from its slot's list and returns it to the pool. */
static TWI_WORKER_ONLY void chunk_unlink(struct twi_slot *slot, struct twi_chunk_pool *pool,
					 struct twi_chunk *chunk)
{
	if (chunk->previous != NULL)
		chunk->previous->next = chunk->next;
	else
		slot->first = chunk->next;
	if (chunk->next != NULL)
		chunk->next->previous = chunk->previous;
	else
		slot->last = chunk->previous;
	slot->chunk_count--;
	if (slot->last == NULL)
		slot->earliest = UINT64_MAX;
	twi_chunk_give(pool, chunk);
}

/* Removes the entry at `number`: moves the slot's last entry to its position. */
static TWI_WORKER_ONLY void hole_fill(struct twi_slot *slot, struct twi_chunk_pool *pool,
				      struct twi_chunk *chunk, uint32_t number)
{
	struct twi_chunk *last = slot->last;
	uint32_t last_number = last->count - 1;

	if (chunk != last || number != last_number) {
		chunk->entry[number] = last->entry[last_number];
		entry_node(&chunk->entry[number])->place = twi_place_of(chunk, number);
	}
	last->count = last_number;
	if (last_number == 0)
		chunk_unlink(slot, pool, last);
}

void twi_slot_remove(struct twi_slot *slot, struct twi_chunk_pool *pool, uintptr_t place)
{
	hole_fill(slot, pool, twi_place_chunk(place), twi_place_number(place));
}

/*
 * Moves all entries of a chunk into the batch. Prefetches the nodes first, because they are
 * scattered in memory.
 */
static TWI_WORKER_ONLY void chunk_take(const struct twi_chunk *chunk, struct twi_due_batch *batch)
{
	struct twi_node **node = &batch->node[batch->count];

	for (uint32_t number = 0; number < chunk->count; number++) {
		node[number] = entry_node(&chunk->entry[number]);
		TWI_PREFETCH_WRITE(node[number]);
	}
	for (uint32_t number = 0; number < chunk->count; number++)
		node[number]->place = TWI_PLACE_NONE;
	batch->count += chunk->count;
}

void twi_slot_take_all(struct twi_slot *slot, struct twi_chunk_pool *pool,
		       struct twi_due_batch *batch)
{
	struct twi_chunk *chunk;

	while ((chunk = slot->first) != NULL && batch->capacity - batch->count >= chunk->count) {
		chunk_take(chunk, batch);
		chunk_unlink(slot, pool, chunk);
	}
}

bool twi_slot_take_chunk(struct twi_slot *slot, struct twi_chunk_pool *pool,
			 struct twi_chunk *ret_chunk)
{
	if (slot->first == NULL)
		return false;
	*ret_chunk = *slot->first;
	chunk_unlink(slot, pool, slot->first);
	return true;
}

/* The entries of one chunk that are due, in the order of the chunk. */
struct due_set {
	uint8_t number[TWI_CHUNK_ENTRIES];
	struct twi_node *node[TWI_CHUNK_ENTRIES];
	uint32_t count;
};

/*
 * Selects the entries that may be due by the low halves of their due ticks alone, and prefetches
 * their nodes.
 */
static void due_candidates(const struct twi_chunk *chunk, struct twi_slot_scan *scan,
			   struct due_set *ret_set)
{
	uint64_t span = scan->limit - scan->now;

	ret_set->count = 0;
	for (uint32_t number = 0; number < chunk->count; number++) {
		/*
		 * Low halves wrap around, so they cannot be compared directly. But no entry is due
		 * at or before `now`, so its distance from `now` decides.
		 */
		uint32_t ahead = chunk->entry[number].due - (uint32_t)scan->now;

		if (ahead <= span) {
			struct twi_node *node = entry_node(&chunk->entry[number]);

			TWI_PREFETCH_WRITE(node);
			ret_set->number[ret_set->count] = (uint8_t)number;
			ret_set->node[ret_set->count++] = node;
		} else if (scan->now + ahead < scan->earliest) {
			scan->earliest = scan->now + ahead;
		}
	}
}

/*
 * Decides about an entry that looks due by the low half of its due tick, although the node's
 * deadline is not due. Returns true if the timeout is due 2^32 ticks later or more, so that its
 * entry stays. Returns false if the timeout was rescheduled, so that it must leave the slot.
 */
static TWI_COLD bool far_note(int64_t deadline_ns, uint32_t due, struct twi_slot_scan *scan)
{
	uint64_t since_ns = twi_since(deadline_ns, scan->epoch_ns);
	uint64_t due_tick = twi_due_tick(since_ns, scan->tick_ns);

	/*
	 * The first condition can only be true for the last tick before the end of time: the end of
	 * that tick cannot be represented, so before_ns is too early.
	 */
	if (due_tick <= scan->limit || (uint32_t)due_tick != due)
		return false;
	if (due_tick < scan->earliest)
		scan->earliest = due_tick;
	return true;
}

/* Removes from the set the candidates that are due 2^32 ticks later or more. */
static void due_confirm(const struct twi_chunk *chunk, struct due_set *set,
			struct twi_slot_scan *scan)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		int64_t deadline_ns = twi_node_deadline_ns(set->node[i]);

		if (TWI_UNLIKELY(deadline_ns >= scan->before_ns) &&
		    far_note(deadline_ns, chunk->entry[set->number[i]].due, scan))
			continue;
		set->number[kept] = set->number[i];
		set->node[kept++] = set->node[i];
	}
	set->count = kept;
}

static TWI_WORKER_ONLY void batch_add(struct twi_due_batch *batch, const struct due_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		set->node[i]->place = TWI_PLACE_NONE;
		batch->node[batch->count++] = set->node[i];
	}
}

/*
 * Removes the entries of the set from the chunk. Returns true if the chunk became empty and was
 * freed. Then the scan must continue with the next chunk.
 */
static TWI_WORKER_ONLY bool set_remove(struct twi_slot *slot, struct twi_chunk_pool *pool,
				       struct twi_chunk *chunk, const struct due_set *set)
{
	if (set->count == chunk->count) {
		chunk_unlink(slot, pool, chunk);
		return true;
	}
	/*
	 * Goes from the highest number down. So if the moved entry comes from this chunk, it is not
	 * in the set. If it comes from a later chunk, the scan finds it when it searches this chunk
	 * again.
	 */
	for (uint32_t i = set->count; i-- > 0;)
		hole_fill(slot, pool, chunk, set->number[i]);
	return false;
}

bool twi_slot_take_due(struct twi_slot *slot, struct twi_chunk_pool *pool,
		       struct twi_slot_scan *scan, struct twi_due_batch *batch)
{
	struct twi_chunk *chunk = scan->cursor != NULL ? scan->cursor : slot->first;

	while (chunk != NULL) {
		struct twi_chunk *next = chunk->next;
		struct due_set set;

		if (batch->capacity - batch->count < TWI_CHUNK_ENTRIES) {
			scan->cursor = chunk;
			return false;
		}
		due_candidates(chunk, scan, &set);
		due_confirm(chunk, &set, scan);
		if (set.count > 0) {
			batch_add(batch, &set);
			/*
			 * The removal has moved entries from the slot's last chunk into this chunk,
			 * so this chunk must be searched once more.
			 */
			if (!set_remove(slot, pool, chunk, &set))
				continue;
		}
		chunk = next;
	}
	scan->cursor = NULL;
	slot->earliest = scan->earliest;
	return true;
}

static TWI_WORKER_ONLY const char *chunk_check(struct twi_chunk *chunk, uint32_t slot_number)
{
	if (chunk->slot != slot_number)
		return "a chunk is in another slot than it knows";
	if (chunk->count == 0 || (chunk->next != NULL && chunk->count != TWI_CHUNK_ENTRIES))
		return "a chunk that is not the last has room";
	for (uint32_t number = 0; number < chunk->count; number++) {
		if (entry_node(&chunk->entry[number])->place != twi_place_of(chunk, number))
			return "a node does not know its place";
	}
	return NULL;
}

const char *twi_slot_check(const struct twi_slot *slot, uint32_t slot_number, uint64_t *count)
{
	struct twi_chunk *previous = NULL;
	uint32_t chunk_count = 0;

	for (struct twi_chunk *chunk = slot->first; chunk != NULL; chunk = chunk->next) {
		const char *wrong = chunk_check(chunk, slot_number);

		if (wrong != NULL)
			return wrong;
		if (chunk->previous != previous)
			return "a chunk is linked wrongly";
		*count += chunk->count;
		chunk_count++;
		previous = chunk;
	}
	if (chunk_count != slot->chunk_count)
		return "a slot's chunks are not as many as it knows";
	return slot->last == previous ? NULL : "a slot's last chunk is not its last";
}
