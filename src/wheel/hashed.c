/* SPDX-License-Identifier: MIT */
/*
 * The hashed wheel (Varghese & Lauck, "Hashed and Hierarchical Timing Wheels", 1987, scheme 6; as
 * in Netty): a timeout waits in the slot with the number (due tick mod slots), until the revolution
 * in which it is due. A revolution is one pass over all slots.
 *
 * Cost. insert and remove: O(1). If a slot has a due timeout, the advance reads all entries of the
 * slot in sequence, 8 bytes each, and touches only the nodes that are due. If all timeouts of a
 * slot are due in later revolutions, the advance does not read the slot. A bitmap shows which slots
 * are empty.
 */
#include "base/bits.h"
#include "base/compiler.h"
#include "base/tick.h"
#include "memory/memory.h"
#include "wheel/wheel.h"

/* [worker], except the fields that are [const]. */
struct hashed_wheel {
	struct twi_wheel wheel;
	uint32_t slots; /* [const] number of slots, a power of two */

	/*
	 * The state of sweep(), which catches up slot by slot: the tick at which its revolution
	 * ends (0: no sweep is under way), the tick of the last slot that it has finished, and the
	 * tick up to which it takes timeouts.
	 */
	uint64_t sweep_end TWI_WORKER_FIELD;
	uint64_t sweep_at TWI_WORKER_FIELD;
	uint64_t sweep_limit TWI_WORKER_FIELD;

	/*
	 * If a batch was full in the middle of a slot: the scan of that slot, which the next batch
	 * continues, and the slot's number.
	 */
	struct twi_slot_scan scan TWI_WORKER_FIELD;
	size_t scan_number TWI_WORKER_FIELD;

	uint64_t *occupied TWI_WORKER_FIELD; /* bitmap of slots that are not empty */
	struct twi_slot slot[] TWI_WORKER_FIELD;
};

static struct hashed_wheel *hashed_of(struct twi_wheel *wheel)
{
	return TWI_CONTAINER_OF(wheel, struct hashed_wheel, wheel);
}

static const struct hashed_wheel *hashed_of_const(const struct twi_wheel *wheel)
{
	return TWI_CONTAINER_OF(wheel, const struct hashed_wheel, wheel);
}

static TWI_WORKER_ONLY bool hashed_insert(struct twi_wheel *wheel, struct twi_node *node,
					  uint64_t due_tick)
{
	struct hashed_wheel *self = hashed_of(wheel);
	uint32_t number = (uint32_t)due_tick & (self->slots - 1);

	if (!twi_slot_append(&self->slot[number], number, &wheel->chunks, node, due_tick))
		return false;
	twi_bitmap_set(self->occupied, number);
	return true;
}

static TWI_WORKER_ONLY void hashed_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	struct hashed_wheel *self = hashed_of(wheel);
	uint32_t number = twi_place_chunk(node->place)->slot;

	twi_slot_remove(&self->slot[number], &wheel->chunks, node->place);
	/*
	 * The removal may have moved an entry that the scan has not seen to a place that the scan
	 * has passed. So the scan must start again.
	 */
	if (number == self->scan_number)
		self->scan.cursor = NULL;
	if (twi_slot_empty(&self->slot[number]))
		twi_bitmap_clear(self->occupied, number);
}

/* Returns the first tick in (now, until] whose slot is not empty, or TWI_TICK_NEVER. */
static TWI_WORKER_ONLY uint64_t next_occupied(const struct hashed_wheel *self, uint64_t now,
					      uint64_t until)
{
	size_t from = (size_t)(now + 1) & (self->slots - 1);
	size_t count = until - now < self->slots ? (size_t)(until - now) : self->slots;
	size_t number = twi_bitmap_next(self->occupied, self->slots, from);

	/*
	 * The search above may go beyond `until`, to the end of the bitmap. The search must wrap
	 * around only if the range does.
	 */
	if (number == TWI_BITS_NONE && from + count > self->slots)
		number = twi_bitmap_next(self->occupied, self->slots, 0);
	if (number == TWI_BITS_NONE || ((number - from) & (self->slots - 1)) >= count)
		return TWI_TICK_NEVER;
	return now + 1 + ((number - from) & (self->slots - 1));
}

/*
 * Takes the timeouts that are due by `limit` from the slot of tick `at`. Returns false if the batch
 * is full before the slot is finished.
 */
static TWI_WORKER_ONLY bool slot_visit(struct hashed_wheel *self, uint64_t at, uint64_t limit,
				       struct twi_due_batch *batch)
{
	size_t number = (size_t)at & (self->slots - 1);
	struct twi_slot *slot = &self->slot[number];
	struct twi_slot_scan *scan = &self->scan;

	if (slot->earliest > limit)
		return true;
	if (scan->cursor == NULL || self->scan_number != number)
		*scan = (struct twi_slot_scan){
			.now = self->wheel.now,
			.limit = limit,
			.before_ns = twi_wheel_before_ns(&self->wheel, limit),
			.epoch_ns = self->wheel.epoch_ns,
			.tick_ns = self->wheel.tick_ns,
			.earliest = UINT64_MAX,
		};
	self->scan_number = number;
	if (!twi_slot_take_due(slot, &self->wheel.chunks, scan, batch))
		return false;
	if (twi_slot_empty(slot))
		twi_bitmap_clear(self->occupied, number);
	return true;
}

/*
 * Catches up if the wheel is a revolution or more behind. Visits each slot once, and takes all its
 * timeouts that are due by the sweep's limit. If the wheel advanced tick by tick instead, it would
 * visit each slot once for every revolution that it has missed. If a timeout is inserted meanwhile
 * and is due by the limit, it becomes overdue, because the sweep may have passed its slot.
 */
static TWI_WORKER_ONLY void sweep(struct hashed_wheel *self, struct twi_due_batch *batch)
{
	while (self->sweep_at < self->sweep_end) {
		uint64_t at = next_occupied(self, self->sweep_at, self->sweep_end);

		if (at == TWI_TICK_NEVER)
			break;
		if (!slot_visit(self, at, self->sweep_limit, batch))
			return;
		self->sweep_at = at;
	}
	self->sweep_at = self->sweep_end;
	if (batch->count == 0) {
		self->sweep_end = 0;
		self->wheel.now = self->sweep_limit;
	}
}

static TWI_WORKER_ONLY void sweep_begin(struct hashed_wheel *self, uint64_t limit)
{
	self->sweep_at = self->wheel.now;
	self->sweep_end = self->wheel.now + self->slots;
	self->sweep_limit = limit;
	self->wheel.horizon = limit;
	/*
	 * If a scan of a slot is under way, it must start again, because it has another limit than
	 * the sweep.
	 */
	self->scan.cursor = NULL;
}

static TWI_WORKER_ONLY void now_set(struct hashed_wheel *self, uint64_t tick)
{
	self->wheel.now = self->wheel.horizon = tick;
}

/* Advances tick by tick, if the wheel is less than a revolution behind. */
static TWI_WORKER_ONLY void step(struct hashed_wheel *self, uint64_t limit,
				 struct twi_due_batch *batch)
{
	while (self->wheel.now < limit) {
		uint64_t at = next_occupied(self, self->wheel.now, limit);

		if (at == TWI_TICK_NEVER) {
			now_set(self, limit);
			return;
		}
		/*
		 * `now` must stay before `at` until the slot is finished. A timeout that is
		 * inserted meanwhile is overdue if it is due by `at` - 1.
		 */
		now_set(self, at - 1);
		if (!slot_visit(self, at, at, batch))
			return;
		now_set(self, at);
	}
}

static TWI_WORKER_ONLY void hashed_advance(struct twi_wheel *wheel, uint64_t limit,
					   struct twi_due_batch *batch)
{
	struct hashed_wheel *self = hashed_of(wheel);

	/*
	 * If a sweep was interrupted by a full batch, its limit may be earlier than `limit`. Then
	 * another sweep follows.
	 */
	while (batch->count == 0 && (self->sweep_end != 0 || limit - wheel->now >= self->slots)) {
		if (self->sweep_end == 0)
			sweep_begin(self, limit);
		sweep(self, batch);
	}
	if (batch->count == 0)
		step(self, limit, batch);
}

static TWI_WORKER_ONLY uint64_t hashed_next_due(const struct twi_wheel *wheel)
{
	const struct hashed_wheel *self = hashed_of_const(wheel);
	uint64_t next = TWI_TICK_NEVER;

	for (size_t number = twi_bitmap_next(self->occupied, self->slots, 0);
	     number != TWI_BITS_NONE;
	     number = twi_bitmap_next(self->occupied, self->slots, number + 1)) {
		if (self->slot[number].earliest < next)
			next = self->slot[number].earliest;
	}
	return next;
}

static TWI_WORKER_ONLY void hashed_drain(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	struct hashed_wheel *self = hashed_of(wheel);
	size_t number;

	while (batch->capacity - batch->count >= TWI_CHUNK_ENTRIES &&
	       (number = twi_bitmap_next(self->occupied, self->slots, 0)) != TWI_BITS_NONE) {
		twi_slot_take_all(&self->slot[number], &wheel->chunks, batch);
		if (twi_slot_empty(&self->slot[number]))
			twi_bitmap_clear(self->occupied, number);
	}
}

/*
 * Returns the due tick by which an entry was filed. Used by the check. The entry holds only the low
 * half of that tick. If the low half of the node's due tick is the same, and no reschedule has
 * queued the node, returns the node's due tick. Otherwise returns the first tick from now on with
 * that low half, or the slot's earliest due tick if that is later.
 */
static TWI_WORKER_ONLY uint64_t entry_filed(const struct hashed_wheel *self,
					    const struct twi_slot *slot,
					    const struct twi_entry *entry)
{
	uint64_t word;
	uint64_t due_tick = twi_wheel_checked_tick(&self->wheel, twi_block_at(entry->block), &word);
	uint64_t first = self->wheel.now + (uint32_t)(entry->due - (uint32_t)self->wheel.now);

	if ((uint32_t)due_tick == entry->due && (word & TWI_WORD_QUEUED) == 0)
		return due_tick;
	return first > slot->earliest ? first : slot->earliest;
}

static TWI_WORKER_ONLY const char *entry_check(const struct hashed_wheel *self,
					       const struct twi_slot *slot, uint32_t number,
					       const struct twi_entry *entry)
{
	struct twi_node *node = twi_block_at(entry->block);
	uint64_t filed = entry_filed(self, slot, entry);

	if ((filed & (self->slots - 1)) != number)
		return "an entry is in another slot than its due tick's";
	if (filed <= self->wheel.now)
		return "an entry is still in its slot after its due tick";
	if (slot->earliest > filed)
		return "a slot's earliest due tick is later than an entry's";
	return twi_wheel_filed_check(&self->wheel, node, filed);
}

static TWI_WORKER_ONLY const char *slot_check(const struct hashed_wheel *self, uint32_t number,
					      uint64_t *count)
{
	const struct twi_slot *slot = &self->slot[number];
	const char *wrong = twi_slot_check(slot, number, count);

	if (twi_bitmap_test(self->occupied, number) == twi_slot_empty(slot))
		return "the bitmap is wrong about a slot";
	for (struct twi_chunk *chunk = slot->first; chunk != NULL && wrong == NULL;
	     chunk = chunk->next) {
		for (uint32_t i = 0; i < chunk->count && wrong == NULL; i++)
			wrong = entry_check(self, slot, number, &chunk->entry[i]);
	}
	return wrong;
}

static TWI_WORKER_ONLY const char *hashed_check(const struct twi_wheel *wheel, uint64_t *count)
{
	const struct hashed_wheel *self = hashed_of_const(wheel);

	for (uint32_t number = 0; number < self->slots; number++) {
		const char *wrong = slot_check(self, number, count);

		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

static TWI_WORKER_ONLY void hashed_each(const struct twi_wheel *wheel, twi_slot_visit *visit,
					void *context)
{
	const struct hashed_wheel *self = hashed_of_const(wheel);

	for (size_t number = twi_bitmap_next(self->occupied, self->slots, 0);
	     number != TWI_BITS_NONE;
	     number = twi_bitmap_next(self->occupied, self->slots, number + 1))
		visit(context, 0, (uint32_t)number, &self->slot[number]);
}

static size_t bytes_of(uint32_t slots)
{
	return sizeof(struct hashed_wheel) + slots * sizeof(struct twi_slot) +
	       twi_bitmap_words(slots) * sizeof(uint64_t);
}

static TWI_WORKER_UNCHECKED void hashed_destroy(struct twi_wheel *wheel)
{
	const struct tw_allocator *allocator = wheel->chunks.allocator;
	size_t bytes = bytes_of(hashed_of(wheel)->slots);

	twi_chunk_pool_done(&wheel->chunks);
	twi_release(allocator, wheel, bytes, TWI_CACHE_LINE);
}

static const struct twi_wheel_ops hashed_ops = {
	.insert = hashed_insert,
	.remove = hashed_remove,
	.advance = hashed_advance,
	.next_due = hashed_next_due,
	.drain = hashed_drain,
	.check = hashed_check,
	.each = hashed_each,
	.destroy = hashed_destroy,
};

TWI_WORKER_UNCHECKED struct twi_wheel *twi_wheel_create_hashed(const struct tw_allocator *allocator,
							       uint32_t slots, uint64_t tick_ns,
							       int64_t epoch_ns)
{
	struct hashed_wheel *self = twi_allocate_zeroed(allocator, bytes_of(slots), TWI_CACHE_LINE);

	if (self == NULL)
		return NULL;
	twi_wheel_init(&self->wheel, &hashed_ops, allocator, bytes_of(slots), tick_ns, epoch_ns);
	self->slots = slots;
	self->occupied = (uint64_t *)(void *)&self->slot[slots];
	for (uint32_t number = 0; number < slots; number++)
		twi_slot_init(&self->slot[number]);
	return &self->wheel;
}
