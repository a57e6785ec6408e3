/* SPDX-License-Identifier: MIT */
/*
 * Lets a wheel give out timeouts in the order of their deadlines, although its slots separate them
 * only by tick.
 *
 * Advances go in steps of one tick or a few. A step empties its slots into the sorted run, which is
 * then given out from the front (sorted.h), equal deadlines by sequence (timeout/node.h). A run has
 * room for 4,096 nodes. The rest of a crowded step goes into the fine wheel: a hierarchical wheel
 * with ticks of a nanosecond. A node whose step has already been taken goes there too. Run and fine
 * wheel are given out together, by deadline. All nodes in a slot of the fine wheel's lowest level
 * have the same deadline. They are sorted as a list, by sequence. Nodes of the run with that
 * deadline join the slot before.
 *
 * An ordered wheel takes a step when all of the step's ticks are over. The wheel of a loop is open:
 * it takes the present tick as well, and gives out the timeouts that are due by now. The tick's
 * other timeouts wait in run and fine wheel. So each timeout leaves its slot once, however often
 * the loop polls inside a tick, and in the fine wheel it moves at most once per level.
 *
 * Times are in nanoseconds since the epoch, as in base/tick.h. Tick k of the fine wheel is over k
 * nanoseconds after the epoch, so that a deadline of k - 1 is due in it.
 *
 * The run holds a copy of each deadline. A node that was rescheduled to a later deadline is filed
 * again when the run reaches its copy.
 */
#ifndef TWI_WHEEL_FINE_H
#define TWI_WHEEL_FINE_H

#include "wheel/wheel.h"

/* Returns NULL if there is no memory. Adds its own bytes to those of the wheel. */
struct twi_fine *twi_fine_create(struct twi_wheel *wheel);

/* NULL is accepted. */
void twi_fine_destroy(struct twi_fine *fine, const struct tw_allocator *allocator);

/*
 * Files a node whose due tick is not after `now`. If its deadline has passed, it is overdue.
 * Returns false, and changes nothing, if there is no memory.
 */
TWI_WORKER_ONLY bool twi_fine_insert(struct twi_wheel *wheel, struct twi_node *node,
				     uint64_t due_tick);

/* Removes a node from the run, or from the fine wheel. */
TWI_WORKER_ONLY void twi_fine_remove(struct twi_wheel *wheel, struct twi_node *node);

/* Does the same as twi_wheel_advance, for the slots, the run and the fine wheel. */
TWI_WORKER_ONLY void twi_fine_advance(struct twi_wheel *wheel, uint64_t limit,
				      struct twi_due_batch *batch);

/* Returns the tick that contains an open wheel's present time. */
static inline TWI_WORKER_ONLY uint64_t twi_fine_present(const struct twi_wheel *wheel)
{
	return wheel->before == 0 ? 0 : (wheel->before - 1) / wheel->tick_ns + 1;
}

/* Returns the time up to which all timeouts that were in the slots have been given out. */
TWI_WORKER_ONLY uint64_t twi_fine_passed(const struct twi_wheel *wheel);

/* Returns whether the run or the fine wheel holds a timeout. */
TWI_WORKER_ONLY bool twi_fine_occupied(const struct twi_wheel *wheel);

/* Returns whether the run or the fine wheel may hold a timeout that is due. */
TWI_WORKER_ONLY bool twi_fine_owes(const struct twi_wheel *wheel);

/* Takes timeouts out in any order, until the batch is full or all are out. */
TWI_WORKER_ONLY void twi_fine_drain(struct twi_wheel *wheel, struct twi_due_batch *batch);

/* Checks everything. Returns NULL or an error text. Adds the number of timeouts to `*count`. */
TWI_WORKER_ONLY const char *twi_fine_check(const struct twi_wheel *wheel, uint64_t *count);

/* Calls `visit` for each timeout of the run. */
TWI_WORKER_ONLY void twi_fine_each(const struct twi_wheel *wheel,
				   void (*visit)(void *context, struct twi_node *node),
				   twi_slot_visit *visit_slot, void *context);

#endif
