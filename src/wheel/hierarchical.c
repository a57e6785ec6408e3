/* SPDX-License-Identifier: MIT */
/*
 * The hierarchical wheel (Varghese & Lauck, "Hashed and Hierarchical Timing Wheels", 1987, scheme
 * 7; as in the Linux kernel and Kafka). It has levels of slots. A slot of the lowest level is one
 * tick wide, and a slot of each higher level is 64 times as wide as one of the level below. When
 * the time of a higher level's slot comes, the wheel moves its timeouts to the levels below. So a
 * timeout moves at most levels - 1 times.
 *
 * Levels overlap. A level covers its next 254 slots, which is almost as far as four slots of the
 * next level. So if a timeout is placed in a slot of a higher level, that slot begins almost three
 * slot widths later, or more. A crowded slot is emptied in slices, one per advance, and the first
 * slice is taken one slot width before the slot's time. So a near timeout usually waits for one
 * slice at most, and not for a million far timeouts that are all due at one tick.
 *
 * Cost. insert and remove: O(1). advance: O(levels) per occupied slot; ticks without timeouts cost
 * nothing. next_due: O(levels).
 */
#include "base/bits.h"
#include "base/compiler.h"
#include "base/probe.h"
#include "base/tick.h"
#include "memory/memory.h"
#include "wheel/levels.h"
#include "wheel/sorted.h"
#include "wheel/wheel.h"

enum {
	/*
	 * A slot with more chunks than this is crowded. It is emptied early, in parts of this size.
	 */
	SLICE_CHUNKS = 64,
	/* The fine wheel reaches 66 ms ahead, or one tick, if that is longer. */
	FINE_LEVELS_MIN = 4,
};

_Static_assert((int)LEVELS <= (int)TWI_WHEEL_LEVELS, "a counter per level has room");

struct level {
	uint64_t occupied[SLOTS / 64]; /* bitmap of slots that are not empty */
	struct twi_slot slot[SLOTS];
};

/*
 * [worker], except `levels`, which is [const]. An occupied slot of a level above 0 always begins
 * after `now`.
 */
struct hierarchical_wheel {
	struct twi_wheel wheel;
	unsigned levels;
	struct level level[] TWI_WORKER_FIELD;
};

static struct hierarchical_wheel *hierarchical_of(struct twi_wheel *wheel)
{
	return TWI_CONTAINER_OF(wheel, struct hierarchical_wheel, wheel);
}

static const struct hierarchical_wheel *hierarchical_of_const(const struct twi_wheel *wheel)
{
	return TWI_CONTAINER_OF(wheel, const struct hierarchical_wheel, wheel);
}

static TWI_WORKER_ONLY bool place(struct hierarchical_wheel *self, struct twi_node *node,
				  uint64_t due_tick)
{
	unsigned number = level_of(due_tick - self->wheel.now);
	uint32_t index = (uint32_t)(due_tick >> level_shift(number)) & (SLOTS - 1);
	struct level *level = &self->level[number];

	if (!twi_slot_append(&level->slot[index], number * SLOTS + index, &self->wheel.chunks, node,
			     due_tick))
		return false;
	twi_bitmap_set(level->occupied, index);
	return true;
}

static TWI_WORKER_ONLY bool hierarchical_insert(struct twi_wheel *wheel, struct twi_node *node,
						uint64_t due_tick)
{
	return place(hierarchical_of(wheel), node, due_tick);
}

static TWI_WORKER_ONLY void hierarchical_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	uint32_t number = twi_place_chunk(node->place)->slot & ~TWI_SLOT_FINE;
	struct level *level = &hierarchical_of(wheel)->level[number / SLOTS];
	uint32_t index = number % SLOTS;

	twi_slot_remove(&level->slot[index], &wheel->chunks, node->place);
	if (twi_slot_empty(&level->slot[index]))
		twi_bitmap_clear(level->occupied, index);
}

/*
 * Returns the first occupied slot after slot `at`, or TWI_TICK_NEVER. Slots are counted from tick
 * 0.
 */
static TWI_WORKER_ONLY uint64_t occupied_after(const struct level *level, uint64_t at)
{
	size_t from = (size_t)(at + 1) & (SLOTS - 1);
	size_t index = twi_bitmap_next(level->occupied, SLOTS, from);

	if (index == TWI_BITS_NONE)
		index = twi_bitmap_next(level->occupied, SLOTS, 0);
	if (index == TWI_BITS_NONE)
		return TWI_TICK_NEVER;
	return at + 1 + ((index - from) & (SLOTS - 1));
}

static TWI_WORKER_ONLY bool crowded(const struct twi_slot *slot)
{
	return slot->chunk_count > SLICE_CHUNKS;
}

/*
 * Returns the due tick by which an entry was filed. Its low half is in the entry, its high half is
 * that of the slot's first tick. If the slot is wider than 2^32 ticks, returns the slot's first
 * tick.
 */
static uint64_t entry_filed(unsigned level, uint64_t begin, const struct twi_entry *entry)
{
	if (TWI_UNLIKELY(level_shift(level) > 32))
		return begin;
	return (begin & ~(uint64_t)UINT32_MAX) | entry->due;
}

/*
 * Returns the due tick by which a cascade files an entry again. Reads the node's deadline only if
 * the slot is wider than 2^32 ticks, or if the node was rescheduled. If the deadline became
 * earlier, returns the old tick: the node was also pushed to the worker, and reclaim will file it
 * by the new deadline.
 */
static TWI_WORKER_ONLY uint64_t entry_due_tick(const struct hierarchical_wheel *self,
					       unsigned level, uint64_t begin,
					       const struct twi_entry *entry)
{
	struct twi_node *node = twi_block_at(entry->block);
	uint64_t filed = entry_filed(level, begin, entry);
	uint64_t due_tick;

	/*
	 * RELAXED: if a reschedule is missed here, it is seen when the node's next slot is emptied.
	 */
	if (TWI_LIKELY(level_shift(level) <= 32 &&
		       (twi_load_relaxed(&node->word) & TWI_WORD_RESCHEDULED) == 0))
		return filed;
	due_tick = twi_wheel_due_tick(&self->wheel, node);
	return due_tick > filed ? due_tick : filed;
}

/* Moves a node to the outer wheel, which files it by its present deadline. */
static TWI_COLD TWI_WORKER_ONLY void outer_file(struct hierarchical_wheel *self,
						struct twi_node *node)
{
	self->wheel.count--;
	twi_wheel_file(self->wheel.outer, node);
}

static TWI_COLD TWI_WORKER_ONLY void slotless_add(struct hierarchical_wheel *self,
						  struct twi_node *node)
{
	if (self->wheel.outer == NULL) {
		twi_wheel_unslotted_add(&self->wheel, node);
		return;
	}
	self->wheel.count--;
	twi_wheel_unslotted_add(self->wheel.outer, node);
}

/*
 * Moves an entry to a slot of a lower level. If the entry is in a fine wheel and its node was
 * rescheduled, the outer wheel files the node, because the new deadline may be beyond the fine
 * wheel's reach.
 */
static TWI_WORKER_ONLY void entry_cascade(struct hierarchical_wheel *self, unsigned level,
					  uint64_t begin, const struct twi_entry *entry)
{
	struct twi_node *node = twi_block_at(entry->block);
	uint64_t due_tick = entry_due_tick(self, level, begin, entry);

	if (TWI_UNLIKELY(self->wheel.outer != NULL && due_tick != entry_filed(level, begin, entry)))
		outer_file(self, node);
	else if (!place(self, node, due_tick))
		slotless_add(self, node);
}

/* Moves the entries of a chunk to slots of lower levels. */
static TWI_WORKER_ONLY void chunk_cascade(struct hierarchical_wheel *self, unsigned level,
					  uint64_t begin, const struct twi_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		TWI_PREFETCH_WRITE(twi_block_at(chunk->entry[i].block));
	for (uint32_t i = 0; i < chunk->count; i++)
		entry_cascade(self, level, begin, &chunk->entry[i]);
	if (self->wheel.outer != NULL)
		self->wheel.outer->cascaded += chunk->count;
	else
		self->wheel.cascaded += chunk->count;
	TWI_PROBE3(cascade, self->wheel.owner, level, chunk->count);
}

/* Empties at most `most` chunks of a slot into the levels below. */
static TWI_WORKER_ONLY void slot_cascade(struct hierarchical_wheel *self, unsigned number,
					 uint64_t at, uint32_t most)
{
	struct level *level = &self->level[number];
	size_t index = (size_t)at & (SLOTS - 1);
	struct twi_slot *slot = &level->slot[index];
	struct twi_chunk chunk;

	while (most-- > 0 && twi_slot_take_chunk(slot, &self->wheel.chunks, &chunk))
		chunk_cascade(self, number, slot_begin(number, at), &chunk);
	if (twi_slot_empty(slot))
		twi_bitmap_clear(level->occupied, index);
}

/* Empties the slots of all higher levels that begin at `tick`, from the top level down. */
static TWI_WORKER_ONLY void cascade_at(struct hierarchical_wheel *self, uint64_t tick)
{
	for (unsigned number = self->levels; number-- > 1;) {
		uint64_t at = tick >> level_shift(number);

		if (slot_begin(number, at) == tick &&
		    twi_bitmap_test(self->level[number].occupied, (size_t)at & (SLOTS - 1)))
			slot_cascade(self, number, at, UINT32_MAX);
	}
}

/* Returns how many chunks of a slot to move now: enough to finish in time, at least a slice. */
static TWI_WORKER_ONLY uint32_t slice_chunks(const struct hierarchical_wheel *self,
					     const struct twi_slot *slot, uint64_t begin)
{
	uint64_t part = slot->chunk_count / (begin - self->wheel.now) + 1;

	return part > SLICE_CHUNKS ? (uint32_t)part : SLICE_CHUNKS;
}

/* Moves one slice of each level's next slot, if that slot is crowded. */
static TWI_WORKER_ONLY void cascade_ahead(struct hierarchical_wheel *self)
{
	for (unsigned number = self->levels; number-- > 1;) {
		uint64_t at = (self->wheel.now >> level_shift(number)) + 1;
		const struct twi_slot *slot = &self->level[number].slot[at & (SLOTS - 1)];

		if (TWI_UNLIKELY(crowded(slot)))
			slot_cascade(self, number, at,
				     slice_chunks(self, slot, slot_begin(number, at)));
	}
}

/*
 * Returns the first tick after now at which a timeout is due or an occupied slot begins, or
 * TWI_TICK_NEVER.
 */
static TWI_WORKER_ONLY uint64_t next_event(const struct hierarchical_wheel *self)
{
	uint64_t next = TWI_TICK_NEVER;

	for (unsigned number = 0; number < self->levels; number++) {
		uint64_t at = occupied_after(&self->level[number],
					     self->wheel.now >> level_shift(number));

		if (at != TWI_TICK_NEVER && slot_begin(number, at) < next)
			next = slot_begin(number, at);
	}
	return next;
}

static TWI_WORKER_ONLY void now_set(struct hierarchical_wheel *self, uint64_t tick)
{
	self->wheel.now = self->wheel.horizon = tick;
}

/*
 * Appends the nodes of a chunk to a list that is linked by their places. Returns the list's new
 * end. If a node was rescheduled to a later tick, the outer wheel files it. Used in a fine wheel.
 */
static TWI_WORKER_ONLY uintptr_t *chunk_list(struct hierarchical_wheel *self, uint64_t tick,
					     const struct twi_chunk *chunk, uintptr_t *end)
{
	for (uint32_t i = 0; i < chunk->count; i++)
		TWI_PREFETCH_WRITE(twi_block_at(chunk->entry[i].block));
	for (uint32_t i = 0; i < chunk->count; i++) {
		struct twi_node *node = twi_block_at(chunk->entry[i].block);

		if (TWI_UNLIKELY(twi_wheel_due_tick(&self->wheel, node) > tick)) {
			outer_file(self, node);
			continue;
		}
		self->wheel.count--;
		*end = (uintptr_t)node;
		end = &node->place;
	}
	return end;
}

/* Makes the nodes in the slot of `tick` the outer wheel's ready list, by sequence number. */
static TWI_COLD TWI_WORKER_ONLY void equals_give(struct hierarchical_wheel *self, uint64_t tick,
						 struct twi_slot *slot)
{
	uintptr_t list = 0;
	uintptr_t *end = &list;
	struct twi_chunk chunk;

	while (twi_slot_take_chunk(slot, &self->wheel.chunks, &chunk))
		end = chunk_list(self, tick, &chunk, end);
	*end = 0;
	twi_wheel_ready_next(self->wheel.outer, twi_sorted_list((struct twi_node *)list));
}

/*
 * Takes the nodes of a slot of a fine wheel, all of which have the same deadline. A single node
 * goes into the batch. Several go to the outer wheel's ready list. Returns false if that list must
 * be given out first.
 */
static TWI_WORKER_ONLY bool fine_take(struct hierarchical_wheel *self, uint64_t tick,
				      struct twi_slot *slot, struct twi_due_batch *batch)
{
	struct twi_node *node;

	if (slot->first->count > 1) {
		equals_give(self, tick, slot);
		return self->wheel.outer->ready == NULL;
	}
	twi_slot_take_all(slot, &self->wheel.chunks, batch);
	if (!twi_slot_empty(slot))
		return true;
	node = batch->node[batch->count - 1];
	if (TWI_UNLIKELY(twi_wheel_due_tick(&self->wheel, node) > tick)) {
		batch->count--;
		outer_file(self, node);
	}
	return true;
}

/*
 * Takes what is due at `tick`. Returns false if the batch is full or the outer wheel has ready
 * nodes.
 */
static TWI_WORKER_ONLY bool tick_visit(struct hierarchical_wheel *self, uint64_t tick,
				       struct twi_due_batch *batch)
{
	size_t index = (size_t)tick & (SLOTS - 1);
	struct twi_slot *slot = &self->level[0].slot[index];
	bool all = true;

	/* The slot may be empty: the advance also stops where a slot of a higher level begins. */
	if (self->wheel.outer != NULL && !twi_slot_empty(slot))
		all = fine_take(self, tick, slot, batch);
	else
		twi_slot_take_all(slot, &self->wheel.chunks, batch);
	if (!twi_slot_empty(slot))
		return false;
	twi_bitmap_clear(self->level[0].occupied, index);
	return all;
}

static TWI_WORKER_ONLY void hierarchical_advance(struct twi_wheel *wheel, uint64_t limit,
						 struct twi_due_batch *batch)
{
	struct hierarchical_wheel *self = hierarchical_of(wheel);
	uint64_t next;

	while ((next = next_event(self)) <= limit) {
		/*
		 * A timeout that is inserted before this tick is finished is overdue if it is due
		 * before `next`.
		 */
		now_set(self, next - 1);
		cascade_at(self, next);
		if (!tick_visit(self, next, batch))
			return;
		now_set(self, next);
	}
	now_set(self, limit);
	cascade_ahead(self);
}

/*
 * Returns the tick at which the worker must work on a slot: because the slot's first timeout is
 * due, or because the slot is crowded and must be emptied early.
 */
static TWI_WORKER_ONLY uint64_t slot_next(const struct hierarchical_wheel *self, unsigned number,
					  uint64_t at)
{
	const struct twi_slot *slot = &self->level[number].slot[at & (SLOTS - 1)];
	uint64_t ahead;

	if (TWI_LIKELY(number == 0 || !crowded(slot)))
		return slot->earliest;
	ahead = slot_begin(number, at - 1);
	return ahead > self->wheel.now ? ahead : self->wheel.now + 1;
}

static TWI_WORKER_ONLY uint64_t level_next(const struct hierarchical_wheel *self, unsigned number)
{
	const struct level *level = &self->level[number];
	uint64_t first = occupied_after(level, self->wheel.now >> level_shift(number));
	uint64_t second, next, next_of_second;

	if (first == TWI_TICK_NEVER)
		return TWI_TICK_NEVER;
	next = slot_next(self, number, first);
	/*
	 * If the slot after the first is crowded, it may have to be emptied before the first one's
	 * time.
	 */
	second = first + 1;
	if (!twi_bitmap_test(level->occupied, (size_t)second & (SLOTS - 1)))
		return next;
	next_of_second = slot_next(self, number, second);
	return next_of_second < next ? next_of_second : next;
}

static TWI_WORKER_ONLY uint64_t hierarchical_next_due(const struct twi_wheel *wheel)
{
	const struct hierarchical_wheel *self = hierarchical_of_const(wheel);
	uint64_t next = TWI_TICK_NEVER;

	for (unsigned number = 0; number < self->levels; number++) {
		uint64_t next_of_level = level_next(self, number);

		if (next_of_level < next)
			next = next_of_level;
	}
	return next;
}

static TWI_WORKER_ONLY void level_drain(struct twi_wheel *wheel, struct level *level,
					struct twi_due_batch *batch)
{
	size_t index;

	while (batch->capacity - batch->count >= TWI_CHUNK_ENTRIES &&
	       (index = twi_bitmap_next(level->occupied, SLOTS, 0)) != TWI_BITS_NONE) {
		twi_slot_take_all(&level->slot[index], &wheel->chunks, batch);
		if (twi_slot_empty(&level->slot[index]))
			twi_bitmap_clear(level->occupied, index);
	}
}

static TWI_WORKER_ONLY void hierarchical_drain(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	struct hierarchical_wheel *self = hierarchical_of(wheel);

	for (unsigned number = 0; number < self->levels; number++)
		level_drain(wheel, &self->level[number], batch);
}

/*
 * Returns the due tick by which an entry was filed in a slot wider than 2^32 ticks. That is the
 * node's due tick if it lies in the slot and the node is not queued. Otherwise it is the slot's
 * first tick, or the slot's earliest due tick if that is later. Used by the check.
 */
static TWI_WORKER_ONLY uint64_t wide_filed(const struct hierarchical_wheel *self, unsigned number,
					   uint64_t begin, const struct twi_slot *slot,
					   const struct twi_entry *entry)
{
	uint64_t word;
	uint64_t due_tick = twi_wheel_checked_tick(&self->wheel, twi_block_at(entry->block), &word);

	if ((uint32_t)due_tick == entry->due && (word & TWI_WORD_QUEUED) == 0 &&
	    due_tick >> level_shift(number) == begin >> level_shift(number))
		return due_tick;
	return begin > slot->earliest ? begin : slot->earliest;
}

static TWI_WORKER_ONLY const char *entry_check(const struct hierarchical_wheel *self,
					       unsigned number, uint32_t index,
					       const struct twi_entry *entry)
{
	const struct twi_slot *slot = &self->level[number].slot[index];
	uint64_t at_now = self->wheel.now >> level_shift(number);
	uint64_t ahead = (index - at_now) & (SLOTS - 1);
	uint64_t filed = entry_filed(number, slot_begin(number, at_now + ahead), entry);

	if (ahead == 0)
		return "an entry is still in its slot after that has begun";
	if (filed >> level_shift(number) != at_now + ahead)
		return "an entry is in another slot than its due tick's";
	if (level_shift(number) > 32)
		filed = wide_filed(self, number, filed, slot, entry);
	if (slot->earliest > filed)
		return "a slot's earliest due tick is later than an entry's";
	return twi_wheel_filed_check(&self->wheel, twi_block_at(entry->block), filed);
}

static TWI_WORKER_ONLY const char *slot_check(const struct hierarchical_wheel *self,
					      unsigned number, uint32_t index, uint64_t *count)
{
	const struct twi_slot *slot = &self->level[number].slot[index];
	const char *wrong =
		twi_slot_check(slot, (number * SLOTS + index) | self->wheel.chunks.mark, count);

	if (twi_bitmap_test(self->level[number].occupied, index) == twi_slot_empty(slot))
		return "the bitmap is wrong about a slot";
	for (struct twi_chunk *chunk = slot->first; chunk != NULL && wrong == NULL;
	     chunk = chunk->next) {
		for (uint32_t i = 0; i < chunk->count && wrong == NULL; i++)
			wrong = entry_check(self, number, index, &chunk->entry[i]);
	}
	return wrong;
}

static TWI_WORKER_ONLY const char *hierarchical_check(const struct twi_wheel *wheel,
						      uint64_t *count)
{
	const struct hierarchical_wheel *self = hierarchical_of_const(wheel);

	for (uint32_t i = 0; i < self->levels * SLOTS; i++) {
		const char *wrong = slot_check(self, i / SLOTS, i % SLOTS, count);

		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

static TWI_WORKER_ONLY void level_each(const struct hierarchical_wheel *self, unsigned number,
				       twi_slot_visit *visit, void *context)
{
	const struct level *level = &self->level[number];

	for (size_t index = twi_bitmap_next(level->occupied, SLOTS, 0); index != TWI_BITS_NONE;
	     index = twi_bitmap_next(level->occupied, SLOTS, index + 1))
		visit(context, number, (uint32_t)index, &level->slot[index]);
}

static TWI_WORKER_ONLY void hierarchical_each(const struct twi_wheel *wheel, twi_slot_visit *visit,
					      void *context)
{
	const struct hierarchical_wheel *self = hierarchical_of_const(wheel);

	for (unsigned number = 0; number < self->levels; number++)
		level_each(self, number, visit, context);
}

static size_t wheel_bytes(unsigned levels)
{
	return sizeof(struct hierarchical_wheel) + levels * sizeof(struct level);
}

static TWI_WORKER_UNCHECKED void hierarchical_destroy(struct twi_wheel *wheel)
{
	const struct tw_allocator *allocator = wheel->chunks.allocator;

	twi_chunk_pool_done(&wheel->chunks);
	twi_release(allocator, wheel, wheel_bytes(hierarchical_of(wheel)->levels), TWI_CACHE_LINE);
}

static const struct twi_wheel_ops hierarchical_ops = {
	.insert = hierarchical_insert,
	.remove = hierarchical_remove,
	.advance = hierarchical_advance,
	.next_due = hierarchical_next_due,
	.drain = hierarchical_drain,
	.check = hierarchical_check,
	.each = hierarchical_each,
	.destroy = hierarchical_destroy,
};

static TWI_WORKER_UNCHECKED struct twi_wheel *levels_create(const struct tw_allocator *allocator,
							    unsigned levels, uint64_t tick_ns,
							    int64_t epoch_ns)
{
	struct hierarchical_wheel *self =
		twi_allocate_zeroed(allocator, wheel_bytes(levels), TWI_CACHE_LINE);

	if (self == NULL)
		return NULL;
	twi_wheel_init(&self->wheel, &hierarchical_ops, allocator, wheel_bytes(levels), tick_ns,
		       epoch_ns);
	self->levels = levels;
	for (uint32_t i = 0; i < levels * SLOTS; i++)
		twi_slot_init(&self->level[i / SLOTS].slot[i % SLOTS]);
	return &self->wheel;
}

TWI_WORKER_UNCHECKED struct twi_wheel *
twi_wheel_create_hierarchical(const struct tw_allocator *allocator, uint64_t tick_ns,
			      int64_t epoch_ns)
{
	return levels_create(allocator, LEVELS, tick_ns, epoch_ns);
}

TWI_WORKER_UNCHECKED struct twi_wheel *twi_wheel_create_fine(struct twi_wheel *outer,
							     uint64_t *ret_reach)
{
	unsigned levels = FINE_LEVELS_MIN;
	struct twi_wheel *wheel;

	while (level_of(outer->tick_ns) >= levels)
		levels++;
	wheel = levels_create(outer->chunks.allocator, levels, 1, outer->epoch_ns);
	if (wheel == NULL)
		return NULL;
	wheel->chunks.source = &outer->chunks;
	wheel->chunks.mark = TWI_SLOT_FINE;
	wheel->outer = outer;
	wheel->owner = outer->owner;
	*ret_reach = ((uint64_t)REACH << level_shift(levels - 1)) - 1;
	return wheel;
}
