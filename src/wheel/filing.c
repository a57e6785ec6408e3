/* SPDX-License-Identifier: MIT */
/* Functions that the wheels call to compute due ticks and to file nodes. */
#include "base/compiler.h"
#include "base/tick.h"
#include "wheel/list.h"
#include "wheel/wheel.h"

/* Inserts a timeout whose due tick has passed. Used in a wheel without an order. */
static TWI_WORKER_ONLY bool overdue_insert(struct twi_wheel *wheel, struct twi_node *node,
					   uint64_t due_tick)
{
	return twi_slot_append(&wheel->overdue, TWI_SLOT_OVERDUE, &wheel->chunks, node, due_tick);
}

TWI_WORKER_UNCHECKED void twi_wheel_init(struct twi_wheel *wheel, const struct twi_wheel_ops *ops,
					 const struct tw_allocator *allocator, size_t bytes,
					 uint64_t tick_ns, int64_t epoch_ns)
{
	wheel->ops = ops;
	wheel->tick_ns = tick_ns;
	wheel->epoch_ns = epoch_ns;
	twi_chunk_pool_init(&wheel->chunks, allocator);
	/* The pool's byte count includes the wheel's own memory. */
	wheel->chunks.bytes = bytes;
	twi_slot_init(&wheel->overdue);
	wheel->insert_passed = overdue_insert;
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
	/*
	 * The deadline must be read before the state word. If another thread has moved the deadline
	 * to an earlier time, the state word then shows that the node is queued.
	 */
	uint64_t due_tick = twi_wheel_due_tick(wheel, node);

	/* E4: pairs with the reschedule, so that this state word is not older than the deadline. */
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

bool twi_wheel_try_file(struct twi_wheel *wheel, struct twi_node *node)
{
	uint64_t due_tick = twi_wheel_due_tick(wheel, node);

	if (TWI_LIKELY(due_tick > wheel->horizon))
		return wheel->ops->insert(wheel, node, due_tick);
	return wheel->insert_passed(wheel, node, due_tick);
}

void twi_wheel_file(struct twi_wheel *wheel, struct twi_node *node)
{
	if (TWI_UNLIKELY(!twi_wheel_try_file(wheel, node)))
		twi_list_add(&wheel->unslotted, node);
}

TWI_COLD void twi_wheel_unslotted_add(struct twi_wheel *wheel, struct twi_node *node)
{
	twi_list_add(&wheel->unslotted, node);
}

void twi_wheel_ready_next(struct twi_wheel *wheel, struct twi_node *first)
{
	struct twi_node *last = NULL;

	wheel->ready_before = wheel->before;
	while (first != NULL) {
		struct twi_node *next = (struct twi_node *)first->place;

		twi_list_append(&wheel->ready, &last, first);
		first = next;
	}
}
