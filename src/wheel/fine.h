/* SPDX-License-Identifier: MIT */
/*
 * What a wheel needs to give out by deadline what its slots tell apart only by tick.
 *
 * Advances go in steps of one tick or a few. A step empties its slots into the sorted run, which is
 * then given out from the front (sorted.h), equal deadlines by sequence (timeout/node.h). A run has
 * room for 4,096 nodes. The rest of a crowded
 * step goes into the fine wheel: a hierarchical wheel with ticks of a nanosecond. So does a node
 * that is inserted when its step has been taken already. The two are given out together, by
 * deadline. If a slot of the fine wheel's lowest level has more than one node, these have one
 * deadline, and are sorted as a list. If the run has nodes with the same deadline, they join the
 * slot before.
 *
 * An ordered wheel takes a step when all of its ticks are over. An open wheel, which a loop has,
 * takes the present tick as well, and gives out what is due by the present time. The rest of the
 * tick waits in run and fine wheel. So each timeout leaves its slot once, however often the loop
 * polls inside a tick, and in the fine wheel it moves as many times as that has levels, at most.
 *
 * Times are in nanoseconds since the epoch, as in base/tick.h. Tick k of the fine wheel is over k
 * nanoseconds after the epoch, so that a deadline of k - 1 is due in it.
 *
 * The run holds a copy of each deadline. If a node was rescheduled to a later one, it is filed anew
 * when its turn comes by the copy.
 */
#ifndef TWI_WHEEL_FINE_H
#define TWI_WHEEL_FINE_H

#include "wheel/wheel.h"

/* Returns NULL if there is no memory. Adds its own bytes to those of the wheel. */
struct twi_fine *twi_fine_create(struct twi_wheel *wheel);

/* NULL is accepted. */
void twi_fine_destroy(struct twi_fine *fine, const struct tw_allocator *allocator);

/*
 * Files a node whose due tick is not after `now`. If its deadline has passed, it is overdue. False:
 * no memory, and nothing is changed.
 */
TWI_WORKER_ONLY bool twi_fine_insert(struct twi_wheel *wheel, struct twi_node *node,
				     uint64_t due_tick);

/* Removes a node from the run, or from the fine wheel. */
TWI_WORKER_ONLY void twi_fine_remove(struct twi_wheel *wheel, struct twi_node *node);

/* Like twi_wheel_advance, for what is in slots, run and fine wheel. */
TWI_WORKER_ONLY void twi_fine_advance(struct twi_wheel *wheel, uint64_t limit,
				      struct twi_due_batch *batch);

/* Returns the tick of an open wheel's time. */
static inline TWI_WORKER_ONLY uint64_t twi_fine_present(const struct twi_wheel *wheel)
{
	return wheel->before == 0 ? 0 : (wheel->before - 1) / wheel->tick_ns + 1;
}

/* Returns the time up to which all that was in the slots has been given out. */
TWI_WORKER_ONLY uint64_t twi_fine_passed(const struct twi_wheel *wheel);

/* Whether run or fine wheel have a timeout. */
TWI_WORKER_ONLY bool twi_fine_occupied(const struct twi_wheel *wheel);

/* Whether run or fine wheel may have a timeout that is due. */
TWI_WORKER_ONLY bool twi_fine_owes(const struct twi_wheel *wheel);

/* Takes timeouts out in any order, until the batch is full or all are out. */
TWI_WORKER_ONLY void twi_fine_drain(struct twi_wheel *wheel, struct twi_due_batch *batch);

/* Checks all. Returns NULL or an error text. Adds the timeouts to `*count`. */
TWI_WORKER_ONLY const char *twi_fine_check(const struct twi_wheel *wheel, uint64_t *count);

/* Calls `visit` for each timeout of the run. */
TWI_WORKER_ONLY void twi_fine_each(const struct twi_wheel *wheel,
				   void (*visit)(void *context, struct twi_node *node),
				   twi_slot_visit *visit_slot, void *context);

#endif
