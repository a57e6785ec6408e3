/* SPDX-License-Identifier: MIT */
/*
 * The part that all wheels share: due ticks, overdue timeouts, unslotted, order.
 */
#include "wheel/wheel.h"

#include "base/compiler.h"
#include "base/tick.h"
#include "wheel/order.h"

TWI_WORKER_UNCHECKED void twi_wheel_init(struct twi_wheel *wheel, const struct twi_wheel_ops *ops,
					 const struct tw_allocator *allocator, size_t bytes,
					 uint64_t tick_ns, int64_t epoch_ns)
{
	wheel->ops = ops;
	wheel->tick_ns = tick_ns;
	wheel->epoch_ns = epoch_ns;
	twi_chunk_pool_init(&wheel->chunks, allocator);
	/* The accounting begins with the wheel itself. */
	wheel->chunks.bytes = bytes;
	twi_slot_init(&wheel->overdue);
}

TWI_WORKER_UNCHECKED bool twi_wheel_order(struct twi_wheel *wheel)
{
	wheel->order = twi_order_create(wheel->chunks.allocator);
	if (wheel->order == NULL)
		return false;
	wheel->chunks.bytes += twi_order_bytes();
	return true;
}

uint64_t twi_wheel_due_tick(const struct twi_wheel *wheel, struct twi_node *node)
{
	uint64_t since_ns = twi_since(twi_node_deadline_ns(node), wheel->epoch_ns);

	return twi_due_tick(since_ns, wheel->tick_ns);
}

int64_t twi_wheel_before_ns(const struct twi_wheel *wheel, uint64_t limit)
{
	return twi_absolute_ns(wheel->epoch_ns, twi_boundary_ns(limit, wheel->tick_ns));
}

uint64_t twi_wheel_checked_tick(const struct twi_wheel *wheel, struct twi_node *node,
				uint64_t *ret_word)
{
	/* Must be in this order, so that a node with an earlier deadline is seen as queued. */
	uint64_t due_tick = twi_wheel_due_tick(wheel, node);

	/* E4: this state word is not older than the deadline. */
	*ret_word = twi_load_acquire(&node->word);
	return due_tick;
}

const char *twi_wheel_filed_check(const struct twi_wheel *wheel, struct twi_node *node,
				  uint64_t filed)
{
	uint64_t word;
	uint64_t due_tick = twi_wheel_checked_tick(wheel, node, &word);

	if ((word & TWI_WORD_QUEUED) != 0)
		return NULL;
	if (due_tick < filed)
		return "an entry's due tick is after its node's";
	if (due_tick > filed && (word & TWI_WORD_RESCHEDULED) == 0)
		return "an entry's due tick is not its node's";
	return NULL;
}

static TWI_COLD TWI_WORKER_ONLY void list_add(struct twi_node **list, struct twi_node *node)
{
	twi_list_link(node, *list);
	if (*list != NULL)
		(*list)->place = (uintptr_t)node | TWI_PLACE_LISTED;
	*list = node;
	node->place = TWI_PLACE_LISTED;
}

static TWI_COLD TWI_WORKER_ONLY void list_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	struct twi_node *previous = (struct twi_node *)(node->place & ~TWI_PLACE_LISTED);
	struct twi_node *next = twi_list_next(node);

	if (previous != NULL)
		twi_list_link(previous, next);
	else if (wheel->unslotted == node)
		wheel->unslotted = next;
	else if (wheel->unslotted_seen == node)
		wheel->unslotted_seen = next;
	else if (wheel->later == node)
		wheel->later = next;
	else if (wheel->rejected == node)
		wheel->rejected = next;
	else
		wheel->ready = next;
	if (next != NULL)
		next->place = node->place;
	else if (wheel->rejected_last == node)
		wheel->rejected_last = previous;
	if (wheel->rejected_after == node)
		wheel->rejected_after = previous;
}

/* Takes the first node off the list. */
static TWI_WORKER_ONLY struct twi_node *unslotted_pop(struct twi_wheel *wheel)
{
	struct twi_node *node = wheel->unslotted;

	list_remove(wheel, node);
	return node;
}

static TWI_WORKER_ONLY bool slot_insert(struct twi_wheel *wheel, struct twi_node *node)
{
	uint64_t due_tick = twi_wheel_due_tick(wheel, node);

	if (TWI_UNLIKELY(due_tick <= wheel->horizon))
		return twi_slot_append(&wheel->overdue, TWI_SLOT_OVERDUE, &wheel->chunks, node,
				       due_tick);
	return wheel->ops->insert(wheel, node, due_tick);
}

static TWI_WORKER_ONLY void slot_or_list(struct twi_wheel *wheel, struct twi_node *node)
{
	if (TWI_UNLIKELY(!slot_insert(wheel, node)))
		list_add(&wheel->unslotted, node);
}

TWI_COLD void twi_wheel_unslotted_add(struct twi_wheel *wheel, struct twi_node *node)
{
	list_add(&wheel->unslotted, node);
}

void twi_wheel_insert(struct twi_wheel *wheel, struct twi_node *node)
{
	wheel->count++;
	slot_or_list(wheel, node);
}

void twi_wheel_insert_later(struct twi_wheel *wheel, struct twi_node *node)
{
	wheel->count++;
	list_add(&wheel->later, node);
}

TWI_COLD void twi_wheel_later_in(struct twi_wheel *wheel)
{
	while (wheel->later != NULL) {
		struct twi_node *node = wheel->later;

		list_remove(wheel, node);
		slot_or_list(wheel, node);
	}
}

/* Returns the node behind which a batch begins; NULL: in front of all. */
static TWI_WORKER_ONLY struct twi_node *rejected_place(const struct twi_wheel *wheel,
						       struct twi_node *node)
{
	if (wheel->rejected == NULL ||
	    twi_node_deadline_ns(node) <= twi_node_deadline_ns(wheel->rejected))
		return NULL;
	return wheel->rejected_last;
}

static TWI_WORKER_ONLY void rejected_link(struct twi_wheel *wheel, struct twi_node *node,
					  struct twi_node *after)
{
	struct twi_node *next = after != NULL ? twi_list_next(after) : wheel->rejected;

	twi_list_link(node, next);
	node->place = (uintptr_t)after | TWI_PLACE_LISTED;
	if (after != NULL)
		twi_list_link(after, node);
	else
		wheel->rejected = node;
	if (next != NULL)
		next->place = (uintptr_t)node | TWI_PLACE_LISTED;
	else
		wheel->rejected_last = node;
}

TWI_COLD void twi_wheel_insert_rejected(struct twi_wheel *wheel, struct twi_node *node,
					uint64_t limit)
{
	struct twi_node *after = wheel->rejected_after;

	wheel->count++;
	rejected_link(wheel, node, after != NULL ? after : rejected_place(wheel, node));
	wheel->rejected_after = node;
	wheel->rejected_tick = limit;
}

TWI_COLD void twi_wheel_rejected_in(struct twi_wheel *wheel, uint64_t limit, uint64_t most)
{
	for (; most > 0 && twi_wheel_rejected_left(wheel, limit); most--) {
		struct twi_node *node = wheel->rejected;

		list_remove(wheel, node);
		slot_or_list(wheel, node);
	}
}

void twi_wheel_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	if (node->place == TWI_PLACE_NONE)
		return;
	wheel->count--;
	if (TWI_UNLIKELY(twi_place_is_listed(node->place)))
		list_remove(wheel, node);
	else if (TWI_UNLIKELY(twi_place_chunk(node->place)->slot == TWI_SLOT_OVERDUE))
		twi_slot_remove(&wheel->overdue, &wheel->chunks, node->place);
	else
		wheel->ops->remove(wheel, node);
	node->place = TWI_PLACE_NONE;
}

static TWI_WORKER_ONLY void batch_add(struct twi_due_batch *batch, struct twi_node *node)
{
	node->place = TWI_PLACE_NONE;
	batch->node[batch->count++] = node;
}

/*
 * Takes due nodes into the batch, moves others into their slots if there is memory, and puts the
 * rest aside. So each node is looked at once per limit, in any number of batches. If one finds no
 * memory, the others are not tried.
 */
static TWI_WORKER_ONLY void unslotted_scan(struct twi_wheel *wheel, uint64_t limit,
					   struct twi_due_batch *batch)
{
	bool memory = true;

	while (wheel->unslotted != NULL && batch->count < batch->capacity) {
		struct twi_node *node = unslotted_pop(wheel);

		if (twi_wheel_due_tick(wheel, node) <= limit) {
			batch_add(batch, node);
		} else if (!memory || !slot_insert(wheel, node)) {
			memory = false;
			list_add(&wheel->unslotted_seen, node);
		}
	}
}

static TWI_COLD TWI_WORKER_ONLY void unslotted_advance(struct twi_wheel *wheel, uint64_t limit,
						       struct twi_due_batch *batch)
{
	unslotted_scan(wheel, limit, batch);
	if (wheel->unslotted != NULL || wheel->unslotted_limit == limit)
		return;
	wheel->unslotted = wheel->unslotted_seen;
	wheel->unslotted_seen = NULL;
	wheel->unslotted_limit = limit;
	unslotted_scan(wheel, limit, batch);
}

static TWI_WORKER_ONLY bool unslotted_empty(const struct twi_wheel *wheel)
{
	return wheel->unslotted == NULL && wheel->unslotted_seen == NULL;
}

/* Moves the timeouts of the slots that are due at or before `limit` into the batch. */
static TWI_WORKER_ONLY void slots_advance(struct twi_wheel *wheel, uint64_t limit,
					  struct twi_due_batch *batch)
{
	wheel->ops->advance(wheel, limit, batch);
	/*
	 * A cascade may have found no memory. In an ordered wheel such timeouts wait for their
	 * step.
	 */
	if (TWI_UNLIKELY(!unslotted_empty(wheel) && batch->count == 0))
		unslotted_advance(wheel, limit, batch);
}

/* Gives out ready nodes. If one was rescheduled beyond its step meanwhile, it is filed anew. */
static TWI_WORKER_ONLY void ready_give(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	int64_t before_ns = twi_wheel_before_ns(wheel, wheel->now);

	while (wheel->ready != NULL && batch->count < batch->capacity) {
		struct twi_node *node = wheel->ready;

		twi_order_ahead(wheel->order);
		list_remove(wheel, node);
		if (TWI_LIKELY(twi_node_deadline_ns(node) < before_ns))
			batch_add(batch, node);
		else
			slot_or_list(wheel, node);
	}
}

/* Puts the nodes back into the wheel that were rescheduled beyond the step. */
static TWI_WORKER_ONLY void step_keep(struct twi_wheel *wheel, uint64_t step,
				      struct twi_due_batch *batch)
{
	int64_t before_ns = twi_wheel_before_ns(wheel, step);
	size_t count = 0;

	for (size_t i = 0; i < batch->count; i++)
		if (TWI_LIKELY(twi_node_deadline_ns(batch->node[i]) < before_ns))
			batch->node[count++] = batch->node[i];
		else
			slot_or_list(wheel, batch->node[i]);
	batch->count = count;
}

/* Returns all due nodes of a step as a list, by deadline. Uses the batch as scratch memory. */
static TWI_WORKER_ONLY struct twi_node *step_sorted(struct twi_wheel *wheel, uint64_t step,
						    struct twi_due_batch *batch)
{
	for (slots_advance(wheel, step, batch); batch->count > 0;
	     slots_advance(wheel, step, batch)) {
		step_keep(wheel, step, batch);
		twi_order_add(wheel->order, batch);
	}
	return twi_order_take(wheel->order);
}

static TWI_WORKER_ONLY void ready_advance(struct twi_wheel *wheel, uint64_t limit,
					  struct twi_due_batch *batch)
{
	ready_give(wheel, batch);
	while (batch->count == 0 && limit > wheel->now) {
		uint64_t step = twi_order_step(wheel->order, wheel->now, limit);

		wheel->ready = step_sorted(wheel, step, batch);
		ready_give(wheel, batch);
	}
}

void twi_wheel_advance(struct twi_wheel *wheel, uint64_t limit, struct twi_due_batch *batch)
{
	batch->count = 0;
	if (TWI_UNLIKELY(!unslotted_empty(wheel)))
		unslotted_advance(wheel, wheel->order != NULL ? wheel->now : limit, batch);
	if (TWI_UNLIKELY(!twi_slot_empty(&wheel->overdue)))
		twi_slot_take_all(&wheel->overdue, &wheel->chunks, batch);
	/*
	 * If the batch had no room for all of these, the rest comes first: `now` must not pass it.
	 */
	if (TWI_UNLIKELY(batch->count == 0 && wheel->order != NULL))
		ready_advance(wheel, limit, batch);
	else if (TWI_LIKELY(batch->count == 0 && limit > wheel->now))
		slots_advance(wheel, limit, batch);
	wheel->count -= batch->count;
}

void twi_wheel_put_back(struct twi_wheel *wheel, struct twi_node **node, size_t count)
{
	if (wheel->order == NULL) {
		for (size_t i = 0; i < count; i++)
			twi_wheel_insert(wheel, node[i]);
		return;
	}
	wheel->count += count;
	/* In front of the ready nodes, the last one first. */
	while (count > 0)
		list_add(&wheel->ready, node[--count]);
}

/* Whether a list has overdue nodes. They have no entry that would show it. */
static TWI_COLD TWI_WORKER_ONLY bool list_owes(const struct twi_wheel *wheel, struct twi_node *node)
{
	while (node != NULL && twi_wheel_due_tick(wheel, node) > wheel->horizon)
		node = twi_list_next(node);
	return node != NULL;
}

int64_t twi_wheel_boundary_ns(const struct twi_wheel *wheel, uint64_t tick)
{
	if (tick == TWI_TICK_NEVER)
		return INT64_MAX;
	return twi_absolute_ns(wheel->epoch_ns, twi_boundary_ns(tick, wheel->tick_ns));
}

bool twi_wheel_owes(const struct twi_wheel *wheel)
{
	if (wheel->ready != NULL || wheel->later != NULL || !twi_slot_empty(&wheel->overdue))
		return true;
	return TWI_UNLIKELY(!unslotted_empty(wheel)) &&
	       (list_owes(wheel, wheel->unslotted) || list_owes(wheel, wheel->unslotted_seen));
}

uint64_t twi_wheel_next_due(const struct twi_wheel *wheel)
{
	if (!unslotted_empty(wheel) || wheel->rejected != NULL || twi_wheel_owes(wheel))
		return wheel->now + 1;
	return wheel->ops->next_due(wheel);
}

static TWI_WORKER_ONLY void unslotted_drain(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	while (!unslotted_empty(wheel) && batch->count < batch->capacity) {
		if (wheel->unslotted == NULL) {
			wheel->unslotted = wheel->unslotted_seen;
			wheel->unslotted_seen = NULL;
		}
		batch_add(batch, unslotted_pop(wheel));
	}
}

void twi_wheel_drain(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	batch->count = 0;
	twi_wheel_later_in(wheel);
	twi_wheel_rejected_in(wheel, TWI_TICK_NEVER, UINT64_MAX);
	ready_give(wheel, batch);
	unslotted_drain(wheel, batch);
	twi_slot_take_all(&wheel->overdue, &wheel->chunks, batch);
	wheel->ops->drain(wheel, batch);
	wheel->count -= batch->count;
}

static TWI_WORKER_ONLY const char *list_check(struct twi_node *node, uint64_t *count)
{
	struct twi_node *previous = NULL;

	for (; node != NULL; node = twi_list_next(node)) {
		if (node->place != ((uintptr_t)previous | TWI_PLACE_LISTED))
			return "a node on a list does not know it, or not its place there";
		previous = node;
		++*count;
	}
	return NULL;
}

const char *twi_wheel_check(const struct twi_wheel *wheel)
{
	uint64_t count = 0;
	const char *wrong = wheel->ops->check(wheel, &count);

	if (wrong == NULL)
		wrong = twi_slot_check(&wheel->overdue, TWI_SLOT_OVERDUE, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->unslotted, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->unslotted_seen, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->ready, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->later, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->rejected, &count);
	if (wrong == NULL && count != wheel->count)
		return "the count of the wheel is not what is in it";
	return wrong;
}

uint64_t twi_wheel_bytes(const struct twi_wheel *wheel)
{
	return wheel->chunks.bytes;
}

TWI_WORKER_UNCHECKED void twi_wheel_destroy(struct twi_wheel *wheel)
{
	if (wheel == NULL)
		return;
	twi_order_destroy(wheel->order, wheel->chunks.allocator);
	wheel->ops->destroy(wheel);
}
