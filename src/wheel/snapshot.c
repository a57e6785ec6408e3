/* SPDX-License-Identifier: MIT */
#include "wheel/snapshot.h"

#include "base/compiler.h"
#include "wheel/fine.h"
#include "wheel/list.h"

enum {
	/*
	 * Inside a chunk, nodes are prefetched this many entries ahead: as many cache misses as a
	 * core can handle in parallel.
	 */
	AHEAD = 12,
};

static unsigned age_of(int64_t until_ns)
{
	int64_t end_ns = TWI_SNAPSHOT_FIRST_NS;
	unsigned age = 1;

	if (until_ns <= 0)
		return 0;
	for (; age <= TWI_SNAPSHOT_DECADES && until_ns >= end_ns; age++)
		end_ns *= 10;
	return age;
}

/*
 * Counts a cancelled node. Its address may be kept, because the node stays in the wheel, unchanged,
 * until reclaim takes it out.
 */
static void cancelled_count(struct twi_wheel_snapshot *snapshot, struct twi_node *node,
			    int64_t deadline_ns)
{
	snapshot->cancelled++;
	if (snapshot->first_cancelled == NULL ||
	    deadline_ns < twi_node_deadline_ns(snapshot->first_cancelled))
		snapshot->first_cancelled = node;
}

void twi_wheel_snapshot_add(struct twi_wheel_snapshot *snapshot, struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	/*
	 * RELAXED: the result is only shown to people. The worker may read a node of its wheel in
	 * any state.
	 */
	if (twi_word_state(twi_load_relaxed(&node->word)) == TWI_WORD_CANCELLED)
		cancelled_count(snapshot, node, deadline_ns);
	else if (deadline_ns == TW_NEVER)
		snapshot->age[TWI_SNAPSHOT_AGES - 1]++;
	else
		snapshot->age[age_of(deadline_ns - snapshot->now_ns)]++;
}

/* Adds a slot to the list of the fullest, if it is one of them. The list is short and sorted. */
static void slot_rank(struct twi_wheel_snapshot *snapshot, struct twi_wheel_snapshot_slot slot)
{
	unsigned at = TWI_SNAPSHOT_SLOTS;

	for (; at > 0 && snapshot->slot[at - 1].count < slot.count; at--)
		if (at < TWI_SNAPSHOT_SLOTS)
			snapshot->slot[at] = snapshot->slot[at - 1];
	if (at < TWI_SNAPSHOT_SLOTS)
		snapshot->slot[at] = slot;
}

static TWI_WORKER_ONLY void chunk_count(struct twi_wheel_snapshot *snapshot,
					const struct twi_chunk *chunk)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		if (i + AHEAD < chunk->count)
			TWI_PREFETCH(twi_block_at(chunk->entry[i + AHEAD].block));
		twi_wheel_snapshot_add(snapshot, twi_block_at(chunk->entry[i].block));
	}
}

static TWI_WORKER_ONLY uint64_t slot_count(struct twi_wheel_snapshot *snapshot,
					   const struct twi_slot *slot)
{
	uint64_t count = 0;

	for (const struct twi_chunk *chunk = slot->first; chunk != NULL; chunk = chunk->next) {
		chunk_count(snapshot, chunk);
		count += chunk->count;
	}
	return count;
}

static TWI_WORKER_ONLY void slot_visit(void *context, unsigned level, uint32_t number,
				       const struct twi_slot *slot)
{
	struct twi_wheel_snapshot *snapshot = context;
	uint64_t count = slot_count(snapshot, slot);

	snapshot->level[level] += count;
	slot_rank(snapshot, (struct twi_wheel_snapshot_slot){
				    .level = level, .number = number, .count = count});
}

static TWI_WORKER_ONLY void fine_visit(void *context, unsigned level, uint32_t number,
				       const struct twi_slot *slot)
{
	struct twi_wheel_snapshot *snapshot = context;

	(void)level;
	(void)number;
	snapshot->ready += slot_count(snapshot, slot);
}

static TWI_WORKER_ONLY void sorted_visit(void *context, struct twi_node *node)
{
	struct twi_wheel_snapshot *snapshot = context;

	twi_wheel_snapshot_add(snapshot, node);
	snapshot->ready++;
}

static TWI_WORKER_ONLY uint64_t list_count(struct twi_wheel_snapshot *snapshot,
					   struct twi_node *node)
{
	uint64_t count = 0;

	for (; node != NULL; node = twi_list_next(node), count++)
		twi_wheel_snapshot_add(snapshot, node);
	return count;
}

void twi_wheel_snapshot_take(const struct twi_wheel *wheel, int64_t now_ns,
			     struct twi_wheel_snapshot *ret)
{
	*ret = (struct twi_wheel_snapshot){.now_ns = now_ns};
	wheel->ops->each(wheel, slot_visit, ret);
	ret->overdue = slot_count(ret, &wheel->overdue) + list_count(ret, wheel->late);
	ret->unslotted = list_count(ret, wheel->unslotted) + list_count(ret, wheel->unslotted_seen);
	ret->ready = list_count(ret, wheel->ready);
	if (wheel->fine != NULL)
		twi_fine_each(wheel, sorted_visit, fine_visit, ret);
	ret->later = list_count(ret, wheel->later);
	ret->rejected = list_count(ret, wheel->rejected);
}
