/* SPDX-License-Identifier: MIT */
/*
 * Makes a wheel give out timeouts in the order of their deadlines, although its slots separate them
 * only by tick.
 *
 * An advance works in steps of one tick or a few. A step moves the nodes of its slots into the
 * sorted run (sorted.h). The run is then given out from the front, equal deadlines by sequence
 * number (timeout/node.h). A run has space for 4,096 nodes.
 *
 * If a step has more nodes, the rest goes into the fine wheel: a hierarchical wheel with ticks of a
 * nanosecond. A node that is inserted after its step was taken goes there too. Run and fine wheel
 * are given out together, by deadline. All nodes in a slot of the fine wheel's lowest level have
 * the same deadline, so they are sorted as a list, by sequence number. If the run has nodes with
 * the same deadline, they are moved to that slot before the sort.
 *
 * An ordered wheel takes a step when all of the step's ticks are over. The wheel of a loop is open:
 * it also empties the slot of the present tick, and gives out those of its timeouts that are due by
 * now. The other timeouts of that tick wait in the run and in the fine wheel. So each timeout
 * leaves its slot once, however often the loop polls inside a tick, and in the fine wheel it moves
 * at most once per level.
 *
 * Times are in nanoseconds since the epoch, as in base/tick.h. Tick k of the fine wheel ends k
 * nanoseconds after the epoch, so a timeout with the deadline k - 1 is due in it.
 *
 * The run holds a copy of each deadline. A node that was rescheduled to a later deadline is filed
 * again when the run reaches the node's entry.
 */
#ifndef TWI_WHEEL_FINE_H
#define TWI_WHEEL_FINE_H

#include "wheel/wheel.h"

/*
 * Makes the run and the fine wheel. Adds their bytes to the wheel's byte count. Returns NULL if
 * there is no memory.
 */
struct twi_fine *twi_fine_create(struct twi_wheel *wheel);

/* Frees run and fine wheel. NULL is accepted. */
void twi_fine_destroy(struct twi_fine *fine, const struct tw_allocator *allocator);

/*
 * Files a node whose due tick is not after `now`. If its deadline has passed, it is overdue.
 * Returns false, and changes nothing, if there is no memory.
 */
TWI_WORKER_ONLY bool twi_fine_insert(struct twi_wheel *wheel, struct twi_node *node,
				     uint64_t due_tick);

/* Removes a node from the run, or from the fine wheel. */
TWI_WORKER_ONLY void twi_fine_remove(struct twi_wheel *wheel, struct twi_node *node);

/* Does the same as twi_wheel_advance, but only for the slots, the run and the fine wheel. */
TWI_WORKER_ONLY void twi_fine_advance(struct twi_wheel *wheel, uint64_t limit,
				      struct twi_due_batch *batch);

/* Returns the tick that contains an open wheel's present time. */
static inline TWI_WORKER_ONLY uint64_t twi_fine_present(const struct twi_wheel *wheel)
{
	return wheel->before == 0 ? 0 : (wheel->before - 1) / wheel->tick_ns + 1;
}

/* Returns the time before which all timeouts from the slots have been given out. */
TWI_WORKER_ONLY uint64_t twi_fine_passed(const struct twi_wheel *wheel);

/* Returns whether the run or the fine wheel holds a timeout. */
TWI_WORKER_ONLY bool twi_fine_occupied(const struct twi_wheel *wheel);

/*
 * Returns whether the run, the fine wheel or a slot up to the present tick may hold a due timeout.
 */
TWI_WORKER_ONLY bool twi_fine_owes(const struct twi_wheel *wheel);

/* Takes timeouts out in any order, until the batch is full or all are out. */
TWI_WORKER_ONLY void twi_fine_drain(struct twi_wheel *wheel, struct twi_due_batch *batch);

/*
 * Checks the run and the fine wheel. Returns NULL or an error text. Adds the number of timeouts to
 * `*count`.
 */
TWI_WORKER_ONLY const char *twi_fine_check(const struct twi_wheel *wheel, uint64_t *count);

/* Calls `visit` for each timeout of the run, and `visit_slot` for each slot of the fine wheel. */
TWI_WORKER_ONLY void twi_fine_each(const struct twi_wheel *wheel,
				   void (*visit)(void *context, struct twi_node *node),
				   twi_slot_visit *visit_slot, void *context);

#endif
