/* SPDX-License-Identifier: MIT */
#include "wheel/fine.h"

#include "base/compiler.h"
#include "base/tick.h"
#include "memory/memory.h"
#include "wheel/list.h"
#include "wheel/sorted.h"

/* [worker], except the fields that are [const]. */
struct twi_fine {
	struct twi_wheel *wheel;  /* [const] the fine wheel */
	uint64_t step_ticks_most; /* [const] the ticks that the fine wheel covers */
	/*
	 * The largest number of ticks in the next step. It grows while steps find few timeouts, so
	 * that a wheel that is behind sorts many ticks at once.
	 */
	uint64_t step_ticks TWI_WORKER_FIELD;
	/*
	 * All timeouts that came from the slots and have deadlines before this time are given out.
	 */
	uint64_t passed TWI_WORKER_FIELD;
	struct twi_sorted sorted TWI_WORKER_FIELD;
};

TWI_WORKER_UNCHECKED struct twi_fine *twi_fine_create(struct twi_wheel *wheel)
{
	const struct tw_allocator *allocator = wheel->chunks.allocator;
	struct twi_fine *fine = twi_allocate(allocator, sizeof *fine, TWI_CACHE_LINE);
	uint64_t reach;

	if (fine == NULL)
		return NULL;
	fine->wheel = twi_wheel_create_fine(wheel, &reach);
	if (fine->wheel == NULL) {
		twi_release(allocator, fine, sizeof *fine, TWI_CACHE_LINE);
		return NULL;
	}
	fine->step_ticks_most = reach / wheel->tick_ns;
	fine->step_ticks = 1;
	fine->passed = 0;
	twi_sorted_init(&fine->sorted);
	wheel->chunks.bytes += sizeof *fine + fine->wheel->chunks.bytes;
	return fine;
}

TWI_WORKER_UNCHECKED void twi_fine_destroy(struct twi_fine *fine,
					   const struct tw_allocator *allocator)
{
	if (fine == NULL)
		return;
	fine->wheel->ops->destroy(fine->wheel);
	twi_release(allocator, fine, sizeof *fine, TWI_CACHE_LINE);
}

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* Returns the end of tick `tick`, or `before` (deadlines before it are due) if that is earlier. */
static TWI_WORKER_ONLY uint64_t due_end(const struct twi_wheel *wheel, uint64_t tick)
{
	return least(twi_boundary_ns(tick, wheel->tick_ns), wheel->before);
}

/*
 * Advances the fine wheel to `until`. Returns false if it has not got there: the batch is full, or
 * ready nodes must be given out first.
 */
static TWI_WORKER_ONLY bool wheel_give(struct twi_wheel *fine, uint64_t until,
				       struct twi_due_batch *batch)
{
	size_t before = batch->count;

	if (fine->count == 0 || until <= fine->now)
		return true;
	fine->ops->advance(fine, until, batch);
	fine->count -= batch->count - before;
	return fine->now >= until;
}

/* Advances the time of the fine wheel, which must be empty. */
static TWI_WORKER_ONLY void wheel_move(struct twi_wheel *fine, uint64_t until)
{
	struct twi_due_batch none = {.node = NULL};

	if (until > fine->now)
		fine->ops->advance(fine, until, &none);
}

bool twi_fine_insert(struct twi_wheel *wheel, struct twi_node *node, uint64_t due_tick)
{
	struct twi_fine *fine = wheel->fine;
	uint64_t due = twi_wheel_due_tick(fine->wheel, node);

	(void)due_tick;

	if (fine->wheel->count == 0)
		wheel_move(fine->wheel, fine->passed);
	if (due <= fine->wheel->now || due <= fine->passed) {
		twi_list_append(&wheel->late, &wheel->late_last, node);
		return true;
	}
	if (!fine->wheel->ops->insert(fine->wheel, node, due))
		return false;
	fine->wheel->count++;
	return true;
}

void twi_fine_remove(struct twi_wheel *wheel, struct twi_node *node)
{
	struct twi_fine *fine = wheel->fine;

	if (twi_place_is_beside(node->place)) {
		twi_sorted_remove(&fine->sorted, node->place);
		return;
	}
	fine->wheel->ops->remove(fine->wheel, node);
	fine->wheel->count--;
}

/*
 * Files a node again that was in the run under the deadline `since`, and was rescheduled to a later
 * one.
 */
static TWI_COLD TWI_WORKER_ONLY void sorted_refile(struct twi_wheel *wheel, struct twi_node *node,
						   uint64_t since)
{
	struct twi_fine *fine = wheel->fine;

	/*
	 * All nodes of the run with deadlines before `since` have been given out, so `passed` may
	 * rise to `since`. It must not rise further: the new deadline may be before that of the
	 * run's next node, and must not count as overdue.
	 */
	fine->passed = since > fine->passed ? since : fine->passed;
	twi_wheel_file(wheel, node);
}

/* Returns the first deadline of the run, or UINT64_MAX. */
static TWI_WORKER_ONLY uint64_t sorted_first(struct twi_sorted *sorted)
{
	return sorted->left > 0 ? twi_sorted_first(sorted)->since : UINT64_MAX;
}

/* Returns a time that is not after the earliest deadline in the fine wheel. */
static TWI_WORKER_ONLY uint64_t wheel_first(const struct twi_wheel *fine)
{
	return fine->count > 0 ? fine->ops->next_due(fine) - 1 : UINT64_MAX;
}

/*
 * Moves the run's nodes with the deadline `since` into the fine wheel, to its nodes with the same
 * deadline.
 */
static TWI_COLD TWI_WORKER_ONLY void equals_join(struct twi_wheel *wheel, uint64_t since)
{
	struct twi_fine *fine = wheel->fine;

	while (sorted_first(&fine->sorted) == since) {
		struct twi_node *node = twi_sorted_take(&fine->sorted);

		if (TWI_UNLIKELY(!fine->wheel->ops->insert(fine->wheel, node, since + 1)))
			twi_wheel_unslotted_add(wheel, node);
		else
			fine->wheel->count++;
	}
}

/*
 * Gives out the run's nodes whose deadlines are before `end` and before the fine wheel's first one.
 */
static TWI_WORKER_ONLY void sorted_give(struct twi_wheel *wheel, uint64_t end,
					struct twi_due_batch *batch)
{
	struct twi_sorted *sorted = &wheel->fine->sorted;
	uint64_t last = wheel_first(wheel->fine->wheel);

	while (sorted->left > 0 && batch->count < batch->capacity) {
		uint64_t since = twi_sorted_first(sorted)->since;
		struct twi_node *node;

		if (since >= end || since > last)
			return;
		if (TWI_UNLIKELY(since == last)) {
			equals_join(wheel, since);
			return;
		}
		node = twi_sorted_take(sorted);
		if (TWI_LIKELY(twi_since(twi_node_deadline_ns(node), wheel->epoch_ns) <= since)) {
			batch->node[batch->count++] = node;
			continue;
		}
		sorted_refile(wheel, node, since);
		/* The node may now be the first one of the fine wheel. */
		last = wheel_first(wheel->fine->wheel);
	}
}

/*
 * Gives out all nodes with deadlines before `end`, by deadline, from the run and from the fine
 * wheel. If both have nodes with the same deadline, the run's nodes move to the fine wheel, which
 * gives all of them out by sequence number.
 */
static TWI_WORKER_ONLY void due_give(struct twi_wheel *wheel, uint64_t end,
				     struct twi_due_batch *batch)
{
	struct twi_fine *fine = wheel->fine;
	uint64_t first;

	do {
		first = least(sorted_first(&fine->sorted), end);
		if (!wheel_give(fine->wheel, first, batch))
			return;
		sorted_give(wheel, end, batch);
		if (batch->count == batch->capacity)
			return;
	} while (first < end);
	fine->passed = end > fine->passed ? end : fine->passed;
}

/*
 * Files a node that the run cannot take: the run is full, or a reschedule has moved the deadline
 * beyond this step.
 */
static TWI_COLD TWI_WORKER_ONLY void rest_file(struct twi_wheel *wheel, struct twi_node *node,
					       uint64_t to)
{
	uint64_t due_tick = twi_wheel_due_tick(wheel, node);
	bool filed = due_tick <= to ? twi_fine_insert(wheel, node, due_tick)
				    : wheel->ops->insert(wheel, node, due_tick);
	if (TWI_UNLIKELY(!filed))
		twi_wheel_unslotted_add(wheel, node);
}

/* Files the nodes that came out of the slots, in the run if possible. */
static TWI_WORKER_ONLY void batch_file(struct twi_wheel *wheel, uint64_t to,
				       struct twi_due_batch *batch)
{
	struct twi_sorted *sorted = &wheel->fine->sorted;
	uint64_t end = twi_boundary_ns(to, wheel->tick_ns);

	for (size_t i = 0; i < batch->count; i++) {
		struct twi_node *node = batch->node[i];
		uint64_t since = twi_since(twi_node_deadline_ns(node), wheel->epoch_ns);

		if (TWI_LIKELY(since < end && !twi_sorted_full(sorted)))
			twi_sorted_add(sorted, node, since);
		else
			rest_file(wheel, node, to);
	}
	batch->count = 0;
}

/* Moves the nodes in the slots up to tick `to` into the run. Uses the batch as scratch memory. */
static TWI_WORKER_ONLY void slots_empty(struct twi_wheel *wheel, uint64_t to,
					struct twi_due_batch *batch)
{
	do {
		wheel->ops->advance(wheel, to, batch);
		batch_file(wheel, to, batch);
	} while (wheel->now < to);
	twi_sorted_sort(&wheel->fine->sorted);
}

/*
 * Adapts step_ticks after a step of `ticks` ticks, so that the nodes of the next step fit into the
 * run.
 */
static TWI_WORKER_ONLY void step_adapt(struct twi_fine *fine, uint64_t ticks)
{
	size_t count = fine->sorted.count;

	if (count > TWI_SORTED_MAX / 2)
		fine->step_ticks = ticks > 1 ? ticks / 2 : 1;
	else if (count < TWI_SORTED_MAX / 8 && ticks == fine->step_ticks)
		fine->step_ticks = least(2 * ticks, fine->step_ticks_most);
}

/*
 * Returns the tick after which the next step begins. No timeout in the slots is due at or before
 * it.
 */
static TWI_WORKER_ONLY uint64_t step_begin(const struct twi_wheel *wheel, uint64_t limit)
{
	if (TWI_LIKELY(limit - wheel->now <= wheel->fine->step_ticks))
		return wheel->now;
	return least(wheel->ops->next_due(wheel) - 1, limit);
}

/* Takes one step towards `limit`, of at most step_ticks ticks. */
static TWI_WORKER_ONLY void step(struct twi_wheel *wheel, uint64_t limit,
				 struct twi_due_batch *batch)
{
	struct twi_fine *fine = wheel->fine;
	uint64_t from = step_begin(wheel, limit);
	uint64_t to = from + least(limit - from, fine->step_ticks);

	fine->passed = due_end(wheel, from);
	slots_empty(wheel, to, batch);
	step_adapt(fine, to - from);
}

void twi_fine_advance(struct twi_wheel *wheel, uint64_t limit, struct twi_due_batch *batch)
{
	due_give(wheel, due_end(wheel, wheel->now), batch);
	while (batch->count == 0 && wheel->ready == NULL && wheel->now < limit) {
		step(wheel, limit, batch);
		due_give(wheel, due_end(wheel, wheel->now), batch);
	}
}

uint64_t twi_fine_passed(const struct twi_wheel *wheel)
{
	return wheel->fine->passed;
}

bool twi_fine_occupied(const struct twi_wheel *wheel)
{
	return wheel->fine != NULL &&
	       (wheel->fine->sorted.left > 0 || wheel->fine->wheel->count > 0);
}

/*
 * Returns whether slots up to an open wheel's present tick still hold timeouts, because the last
 * advance ended before it had emptied them.
 */
static TWI_WORKER_ONLY bool tick_owes(const struct twi_wheel *wheel)
{
	uint64_t limit = twi_fine_present(wheel);

	return wheel->open && wheel->now < limit && wheel->ops->next_due(wheel) <= limit;
}

bool twi_fine_owes(const struct twi_wheel *wheel)
{
	return wheel->fine != NULL &&
	       (sorted_first(&wheel->fine->sorted) < wheel->before ||
		wheel_first(wheel->fine->wheel) < wheel->before || tick_owes(wheel));
}

void twi_fine_drain(struct twi_wheel *wheel, struct twi_due_batch *batch)
{
	struct twi_fine *fine = wheel->fine;
	size_t before;

	while (fine->sorted.left > 0 && batch->count < batch->capacity) {
		(void)twi_sorted_first(&fine->sorted);
		batch->node[batch->count++] = twi_sorted_take(&fine->sorted);
	}
	before = batch->count;
	fine->wheel->ops->drain(fine->wheel, batch);
	fine->wheel->count -= batch->count - before;
}

const char *twi_fine_check(const struct twi_wheel *wheel, uint64_t *count)
{
	const struct twi_fine *fine = wheel->fine;
	uint64_t counted = 0;
	const char *wrong = fine->wheel->ops->check(fine->wheel, &counted);

	if (wrong == NULL && counted != fine->wheel->count)
		return "the count of the fine wheel is not what is in it";
	*count += counted;
	return wrong != NULL ? wrong : twi_sorted_check(&fine->sorted, count);
}

void twi_fine_each(const struct twi_wheel *wheel,
		   void (*visit)(void *context, struct twi_node *node), twi_slot_visit *visit_slot,
		   void *context)
{
	const struct twi_fine *fine = wheel->fine;

	for (size_t i = fine->sorted.at; i < fine->sorted.count; i++)
		if (fine->sorted.entry[i].node != NULL)
			visit(context, fine->sorted.entry[i].node);
	fine->wheel->ops->each(fine->wheel, visit_slot, context);
}
