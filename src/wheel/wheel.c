/* SPDX-License-Identifier: MIT */
/* The part that all wheels share: overdue and unslotted timeouts, and advances. */
#include "wheel/wheel.h"

#include "base/compiler.h"
#include "base/tick.h"
#include "wheel/fine.h"
#include "wheel/list.h"

TWI_WORKER_UNCHECKED bool twi_wheel_order(struct twi_wheel *wheel, bool open)
{
	wheel->fine = twi_fine_create(wheel);
	if (wheel->fine == NULL)
		return false;
	wheel->insert_passed = twi_fine_insert;
	wheel->open = open;
	return true;
}

/*
 * Advances `before` of an open wheel, so that timeouts with deadlines up to `now_ns` are due. A
 * time before the epoch changes nothing. The deadline TW_NEVER never becomes due.
 */
static TWI_WORKER_ONLY void before_move(struct twi_wheel *wheel, int64_t now_ns)
{
	uint64_t before;

	if (now_ns < wheel->epoch_ns)
		return;
	before = twi_since(now_ns < INT64_MAX ? now_ns + 1 : INT64_MAX, wheel->epoch_ns);
	wheel->before = before > wheel->before ? before : wheel->before;
}

uint64_t twi_wheel_limit(struct twi_wheel *wheel, int64_t now_ns)
{
	uint64_t tick = twi_since(now_ns, wheel->epoch_ns) / wheel->tick_ns;

	if (!wheel->open)
		return tick > wheel->horizon ? tick : wheel->horizon;
	before_move(wheel, now_ns);
	return twi_fine_present(wheel);
}

int64_t twi_wheel_due_before_ns(const struct twi_wheel *wheel, uint64_t limit)
{
	if (wheel->open)
		return twi_absolute_ns(wheel->epoch_ns, wheel->before);
	return twi_wheel_before_ns(wheel, limit);
}

int64_t twi_wheel_needs_ns(const struct twi_wheel *wheel, int64_t deadline_ns)
{
	uint64_t since_ns = twi_since(deadline_ns, wheel->epoch_ns);
	uint64_t tick = twi_due_tick(since_ns, wheel->tick_ns);

	if (tick > wheel->horizon)
		return twi_wheel_boundary_ns(wheel, tick);
	if (!wheel->open || since_ns < wheel->before)
		return 0;
	return twi_wheel_boundary_ns(wheel, wheel->horizon);
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
	else if (wheel->late == node)
		wheel->late = next;
	else if (wheel->rejected == node)
		wheel->rejected = next;
	else
		wheel->ready = next;
	if (next != NULL)
		next->place = node->place;
	else if (wheel->rejected_last == node)
		wheel->rejected_last = previous;
	else if (wheel->later_last == node)
		wheel->later_last = previous;
	else if (wheel->late_last == node)
		wheel->late_last = previous;
	if (wheel->rejected_after == node)
		wheel->rejected_after = previous;
}

/* Removes the first node from the unslotted list, and returns it. */
static TWI_WORKER_ONLY struct twi_node *unslotted_pop(struct twi_wheel *wheel)
{
	struct twi_node *node = wheel->unslotted;

	list_remove(wheel, node);
	return node;
}

/* Files a node behind all others that have the same deadline. */
static TWI_WORKER_ONLY void file_behind(struct twi_wheel *wheel, struct twi_node *node)
{
	if (wheel->fine != NULL)
		twi_node_set_sequence(node, wheel->sequence++);
	twi_wheel_file(wheel, node);
}

void twi_wheel_insert(struct twi_wheel *wheel, struct twi_node *node)
{
	wheel->count++;
	file_behind(wheel, node);
}

void twi_wheel_reinsert(struct twi_wheel *wheel, struct twi_node *node)
{
	wheel->count++;
	twi_wheel_file(wheel, node);
}

void twi_wheel_insert_later(struct twi_wheel *wheel, struct twi_node *node)
{
	wheel->count++;
	twi_list_append(&wheel->later, &wheel->later_last, node);
}

TWI_COLD void twi_wheel_later_in(struct twi_wheel *wheel)
{
	while (wheel->later != NULL) {
		struct twi_node *node = wheel->later;

		list_remove(wheel, node);
		file_behind(wheel, node);
	}
}

/*
 * Returns the node after which a new batch of rejected nodes is inserted, or NULL if the batch goes
 * to the front. `node`: the first node of the batch.
 */
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
		file_behind(wheel, node);
	}
}

/* Removes a node that is in the wheel, but in none of the slots of `ops`. */
static TWI_NOINLINE TWI_WORKER_ONLY void elsewhere_remove(struct twi_wheel *wheel,
							  struct twi_node *node)
{
	if (twi_place_is_listed(node->place))
		list_remove(wheel, node);
	else if (!twi_place_is_beside(node->place) &&
		 twi_place_chunk(node->place)->slot == TWI_SLOT_OVERDUE)
		twi_slot_remove(&wheel->overdue, &wheel->chunks, node->place);
	else
		twi_fine_remove(wheel, node);
}

void twi_wheel_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	if (node->place == TWI_PLACE_NONE)
		return;
	wheel->count--;
	if (TWI_UNLIKELY(twi_place_is_beside(node->place) ||
			 twi_place_chunk(node->place)->slot >= TWI_SLOT_FINE))
		elsewhere_remove(wheel, node);
	else
		wheel->ops->remove(wheel, node);
	node->place = TWI_PLACE_NONE;
}

static TWI_WORKER_ONLY void batch_add(struct twi_due_batch *batch, struct twi_node *node)
{
	node->place = TWI_PLACE_NONE;
	batch->node[batch->count++] = node;
}

/* Returns a node's deadline, in nanoseconds since the epoch. */
static TWI_WORKER_ONLY uint64_t node_since(const struct twi_wheel *wheel, struct twi_node *node)
{
	return twi_since(twi_node_deadline_ns(node), wheel->epoch_ns);
}

/*
 * Goes through the unslotted list. Takes due nodes into the batch, moves others into their slots if
 * there is memory, and moves the rest to unslotted_seen. So each node is looked at once per
 * advance, however many batches the advance needs. If there is no memory for one node, the others
 * are not tried.
 */
static TWI_WORKER_ONLY void unslotted_scan(struct twi_wheel *wheel, uint64_t before,
					   struct twi_due_batch *batch)
{
	bool memory = true;

	while (wheel->unslotted != NULL && batch->count < batch->capacity) {
		struct twi_node *node = unslotted_pop(wheel);

		if (node_since(wheel, node) < before) {
			batch_add(batch, node);
		} else if (!memory || !twi_wheel_try_file(wheel, node)) {
			memory = false;
			twi_list_add(&wheel->unslotted_seen, node);
		}
	}
}

static TWI_COLD TWI_WORKER_ONLY void unslotted_advance(struct twi_wheel *wheel, uint64_t before,
						       struct twi_due_batch *batch)
{
	unslotted_scan(wheel, before, batch);
	if (wheel->unslotted != NULL || wheel->unslotted_before == before)
		return;
	wheel->unslotted = wheel->unslotted_seen;
	wheel->unslotted_seen = NULL;
	wheel->unslotted_before = before;
	unslotted_scan(wheel, before, batch);
}

static TWI_WORKER_ONLY bool unslotted_empty(const struct twi_wheel *wheel)
{
	return wheel->unslotted == NULL && wheel->unslotted_seen == NULL;
}

/*
 * Returns whether the first ready node must be given out before the first late one. If their
 * deadlines are equal, it must: the late node was inserted later, when timeouts with its deadline
 * had already been given out.
 */
static TWI_WORKER_ONLY bool ready_first(struct twi_wheel *wheel)
{
	return wheel->ready != NULL &&
	       (wheel->late == NULL ||
		twi_node_deadline_ns(wheel->ready) <= twi_node_deadline_ns(wheel->late));
}

/*
 * Gives out a node of the ready or late list. If a reschedule has moved its deadline to `before` or
 * later, files the node again instead.
 */
static TWI_WORKER_ONLY void listed_give(struct twi_wheel *wheel, struct twi_node *node,
					uint64_t before, struct twi_due_batch *batch)
{
	list_remove(wheel, node);
	if (TWI_LIKELY(node_since(wheel, node) < before))
		batch_add(batch, node);
	else
		file_behind(wheel, node);
}

/* Gives out ready and late nodes. Used in a wheel with an order. */
static TWI_WORKER_ONLY void passed_give(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	while (batch->count < batch->capacity) {
		if (ready_first(wheel))
			listed_give(wheel, wheel->ready, wheel->ready_before, batch);
		else if (wheel->late != NULL)
			listed_give(wheel, wheel->late, wheel->before, batch);
		else
			return;
	}
}

/*
 * Returns the time before which unslotted nodes may be given out. In a wheel with an order, they
 * must not overtake nodes in slots.
 */
static TWI_WORKER_ONLY uint64_t unslotted_end(const struct twi_wheel *wheel, uint64_t limit)
{
	return wheel->fine != NULL ? twi_fine_passed(wheel)
				   : twi_boundary_ns(limit, wheel->tick_ns);
}

/*
 * Takes the due timeouts that are not in the wheel's slots: unslotted, overdue, ready and late
 * ones.
 */
static TWI_COLD TWI_WORKER_ONLY void beside_advance(struct twi_wheel *wheel, uint64_t limit,
						    struct twi_due_batch *batch)
{
	if (!unslotted_empty(wheel))
		unslotted_advance(wheel, unslotted_end(wheel, limit), batch);
	twi_slot_take_all(&wheel->overdue, &wheel->chunks, batch);
	passed_give(wheel, batch);
}

static TWI_WORKER_ONLY bool beside_empty(const struct twi_wheel *wheel)
{
	return unslotted_empty(wheel) && twi_slot_empty(&wheel->overdue) && wheel->ready == NULL &&
	       wheel->late == NULL;
}

static TWI_WORKER_ONLY void slots_advance(struct twi_wheel *wheel, uint64_t limit,
					  struct twi_due_batch *batch)
{
	if (wheel->fine != NULL)
		twi_fine_advance(wheel, limit, batch);
	else if (TWI_LIKELY(limit > wheel->now))
		wheel->ops->advance(wheel, limit, batch);
}

static TWI_WORKER_ONLY void all_advance(struct twi_wheel *wheel, uint64_t limit,
					struct twi_due_batch *batch)
{
	if (TWI_UNLIKELY(!beside_empty(wheel)))
		beside_advance(wheel, limit, batch);
	/*
	 * If beside_advance has put nodes into the batch, there may have been no space for all of
	 * them. The rest must come before nodes in slots, so the slots must not advance yet.
	 */
	if (TWI_LIKELY(batch->count == 0))
		slots_advance(wheel, limit, batch);
	/*
	 * The advance of the slots may have made nodes unslotted, because a cascade found no
	 * memory, or ready.
	 */
	if (TWI_UNLIKELY(batch->count == 0 && !beside_empty(wheel)))
		beside_advance(wheel, limit, batch);
}

void twi_wheel_advance(struct twi_wheel *wheel, uint64_t limit, struct twi_due_batch *batch)
{
	uint64_t end = twi_boundary_ns(limit, wheel->tick_ns);

	batch->count = 0;
	if (!wheel->open && end > wheel->before)
		wheel->before = end;
	/*
	 * Repeats if the batch is empty only because all ready nodes were rescheduled and filed
	 * again.
	 */
	do
		all_advance(wheel, limit, batch);
	while (TWI_UNLIKELY(batch->count == 0 && wheel->now < limit));
	wheel->count -= batch->count;
}

void twi_wheel_put_back(struct twi_wheel *wheel, struct twi_node **node, size_t count)
{
	if (wheel->fine == NULL) {
		for (size_t i = 0; i < count; i++)
			twi_wheel_insert(wheel, node[i]);
		return;
	}
	wheel->count += count;
	/*
	 * If there are ready nodes already, they became ready together with the nodes that are put
	 * back, so ready_before stays valid.
	 */
	if (wheel->ready == NULL)
		wheel->ready_before = wheel->before;
	/*
	 * Inserts the nodes before the ready ones. Begins with the last node, so that their order
	 * is kept.
	 */
	while (count > 0)
		twi_list_add(&wheel->ready, node[--count]);
}

/*
 * Returns whether an unslotted list has due nodes. Each must be looked at, because no slot records
 * their earliest due tick.
 */
static TWI_COLD TWI_WORKER_ONLY bool list_owes(const struct twi_wheel *wheel, struct twi_node *node)
{
	uint64_t before = wheel->fine != NULL ? wheel->before
					      : twi_boundary_ns(wheel->horizon, wheel->tick_ns);

	while (node != NULL && node_since(wheel, node) >= before)
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
	if (wheel->ready != NULL || wheel->late != NULL || wheel->later != NULL ||
	    !twi_slot_empty(&wheel->overdue) || twi_fine_owes(wheel))
		return true;
	return TWI_UNLIKELY(!unslotted_empty(wheel)) &&
	       (list_owes(wheel, wheel->unslotted) || list_owes(wheel, wheel->unslotted_seen));
}

uint64_t twi_wheel_next_due(const struct twi_wheel *wheel)
{
	if (!unslotted_empty(wheel) || wheel->rejected != NULL || twi_fine_occupied(wheel) ||
	    twi_wheel_owes(wheel))
		return wheel->now + !wheel->open;
	return wheel->ops->next_due(wheel);
}

static TWI_WORKER_ONLY void list_drain(struct twi_wheel *wheel, struct twi_node **list,
				       struct twi_due_batch *batch)
{
	while (*list != NULL && batch->count < batch->capacity) {
		struct twi_node *node = *list;

		list_remove(wheel, node);
		batch_add(batch, node);
	}
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
	list_drain(wheel, &wheel->ready, batch);
	list_drain(wheel, &wheel->late, batch);
	unslotted_drain(wheel, batch);
	twi_slot_take_all(&wheel->overdue, &wheel->chunks, batch);
	wheel->ops->drain(wheel, batch);
	if (wheel->fine != NULL)
		twi_fine_drain(wheel, batch);
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

	if (wrong == NULL && wheel->fine != NULL)
		wrong = twi_fine_check(wheel, &count);
	if (wrong == NULL)
		wrong = twi_slot_check(&wheel->overdue, TWI_SLOT_OVERDUE, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->unslotted, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->unslotted_seen, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->ready, &count);
	if (wrong == NULL)
		wrong = list_check(wheel->late, &count);
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
	twi_fine_destroy(wheel->fine, wheel->chunks.allocator);
	wheel->ops->destroy(wheel);
}
