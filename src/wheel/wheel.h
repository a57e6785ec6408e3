/* SPDX-License-Identifier: MIT */
/*
 * The wheel interface: where pending timeouts wait for their tick.
 *
 * [worker], all of it: no other thread ever touches a wheel. Timeouts go in and out in any order,
 * between two advances too that share the work of a catch-up.
 *
 * One that comes when its due tick has passed already (it was long in ingress, or its deadline is
 * in the past) is overdue: the next advance takes it out, whatever its limit.
 *
 * A deadline may change while its node is in the wheel. To a later one: the node comes out at the old
 * time, and whoever takes it looks, and puts it back. To an earlier one: it is taken out and put back
 * as soon as the worker is told.
 *
 * A wheel cannot refuse a timeout. One that finds no memory for its slot entry goes on the limbo
 * list, is looked at in each advance, and moves into its slot as soon as there is memory.
 *
 * To add a wheel: an ops table in a file of its own and a create function below.
 */
#ifndef TWI_WHEEL_WHEEL_H
#define TWI_WHEEL_WHEEL_H

#include "wheel/chunk.h"
#include "wheel/slot.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_order;
struct twi_wheel;

/* Is shown a slot that is not empty: its level (a hashed wheel has one), its number there. */
typedef void twi_slot_visit(void *context, unsigned level, uint32_t number,
			    const struct twi_slot *slot);

/* No wheel has more levels. */
enum { TWI_WHEEL_LEVELS = 11 };

struct twi_wheel_ops {
	/* Places the node for `due_tick`, which is after now. False: no memory, nothing changed. */
	bool (*insert)(struct twi_wheel *wheel, struct twi_node *node, uint64_t due_tick);
	/* Takes the node out of its slot. */
	void (*remove)(struct twi_wheel *wheel, struct twi_node *node);
	/* As twi_wheel_advance, limbo and overdue excepted. */
	void (*advance)(struct twi_wheel *wheel, uint64_t limit, struct twi_due_batch *batch);
	/* As twi_wheel_next_due, likewise. */
	uint64_t (*next_due)(const struct twi_wheel *wheel);
	/* Takes out anything, in any order, until the batch is full or the slots are empty. */
	void (*drain)(struct twi_wheel *wheel, struct twi_due_batch *batch);
	/* The brute-force judge: NULL, or what is wrong. Adds the entries it met to `*count`. */
	const char *(*check)(const struct twi_wheel *wheel, uint64_t *count);
	/* Shows all slots that are not empty, from the lowest level up. Changes nothing. */
	void (*each)(const struct twi_wheel *wheel, twi_slot_visit *visit, void *context);
	void (*destroy)(struct twi_wheel *wheel);
};

/* What every wheel has. [worker], all that is not [const]. */
struct twi_wheel {
	const struct twi_wheel_ops *ops; /* [const] */
	uint64_t tick_ns;                /* [const] */
	int64_t epoch_ns;                /* [const] when tick 0 began, in the engine's clock */

	/* Nothing that is due at or before this tick is in a slot. */
	uint64_t now TWI_WORKER_FIELD;
	/* What is due by this tick is overdue: `now`, or what a catch-up under way aims at. */
	uint64_t horizon TWI_WORKER_FIELD;
	/* Timeouts in the wheel, overdue and limbo included. */
	uint64_t count TWI_WORKER_FIELD;
	/* Since it was made: entries moved from a slot to a lower level's. */
	uint64_t cascaded TWI_WORKER_FIELD;

	/* What came after its tick: due at the next advance. */
	struct twi_slot overdue TWI_WORKER_FIELD;
	/* No memory for a slot entry; linked by ingress link and place. To be looked at, and looked
	 * at with this limit. */
	struct twi_node *limbo TWI_WORKER_FIELD;
	struct twi_node *limbo_seen TWI_WORKER_FIELD;
	uint64_t limbo_limit TWI_WORKER_FIELD;
	/* Due, out of the slots, and not given out yet; linked as limbo is, by deadline. */
	struct twi_node *ready TWI_WORKER_FIELD;
	/* For the past of the advance under way; linked as limbo is: overdue with the next one. */
	struct twi_node *later TWI_WORKER_FIELD;
	/*
	 * Refused by an executor, the first one first; linked likewise. They are overdue a few at a time,
	 * in advances beyond that in which the last of them was refused.
	 */
	struct twi_node *refused TWI_WORKER_FIELD;
	struct twi_node *refused_last TWI_WORKER_FIELD;
	struct twi_node *refused_after
		TWI_WORKER_FIELD; /* where a batch goes on; NULL: it begins */
	uint64_t refused_tick TWI_WORKER_FIELD;
	struct twi_order *order; /* [const] sorts what is due; NULL: it is given out as it comes */
	struct twi_chunk_pool chunks TWI_WORKER_FIELD;
	const void *owner; /* [const] whose it is, for who traces */
};

/* Nothing is due, ever. */
#define TWI_TICK_NEVER UINT64_MAX

/* The overdue ones, as a slot number: no wheel has so many. */
#define TWI_SLOT_OVERDUE UINT32_MAX

/* A hashed wheel: `slots` is a power of two. NULL when there is no memory. */
struct twi_wheel *twi_wheel_create_hashed(const struct tw_allocator *allocator, uint32_t slots,
					  uint64_t tick_ns, int64_t epoch_ns);

/* A hierarchical wheel. NULL when there is no memory. */
struct twi_wheel *twi_wheel_create_hierarchical(const struct tw_allocator *allocator,
						uint64_t tick_ns, int64_t epoch_ns);

/* Before anything is in it: what is due will be given out by deadline. False: no memory. */
bool twi_wheel_order(struct twi_wheel *wheel);

/* NULL is accepted. What is still in the wheel is forgotten. */
void twi_wheel_destroy(struct twi_wheel *wheel);

TWI_WORKER_ONLY void twi_wheel_insert(struct twi_wheel *wheel, struct twi_node *node);

/*
 * For a node that would be due in the advance under way: it is in the wheel, but comes out no sooner
 * than after the next twi_wheel_later_in.
 */
TWI_WORKER_ONLY void twi_wheel_insert_later(struct twi_wheel *wheel, struct twi_node *node);

/* What was inserted for later is due with the next advance. */
TWI_WORKER_ONLY void twi_wheel_later_in(struct twi_wheel *wheel);

/*
 * For a node that came out due in the advance up to `limit`, and was refused: it is in the wheel, among
 * the refused ones. A batch (`refused_after` is NULL when it begins) stays together, and goes before or
 * behind the others by the deadline of its first.
 */
TWI_WORKER_ONLY void twi_wheel_insert_refused(struct twi_wheel *wheel, struct twi_node *node,
					      uint64_t limit);

/* The first of them, so many at most, are due with an advance up to `limit`, if it is beyond theirs. */
TWI_WORKER_ONLY void twi_wheel_refused_in(struct twi_wheel *wheel, uint64_t limit, uint64_t most);

/* Whether that has left some that an advance up to `limit` may have, too. */
static inline TWI_WORKER_ONLY bool twi_wheel_refused_left(const struct twi_wheel *wheel,
							  uint64_t limit)
{
	return wheel->refused != NULL && limit > wheel->refused_tick;
}

/* The node may be in the wheel or not. */
TWI_WORKER_ONLY void twi_wheel_remove(struct twi_wheel *wheel, struct twi_node *node);

/*
 * Moves what is overdue, and what is due at or before `limit`, into the batch, whose capacity is at
 * least TWI_CHUNK_ENTRIES. When the batch comes back empty, `now` has reached `limit`.
 *
 * Order: by tick; when `limit` is a revolution or more ahead, by slot. Inside a tick: not promised. An
 * ordered wheel: what is overdue as it came, then all else by deadline, however far ahead `limit` is.
 */
TWI_WORKER_ONLY void twi_wheel_advance(struct twi_wheel *wheel, uint64_t limit,
				       struct twi_due_batch *batch);

/* What the last advance gave out, or the end of it, and nobody ran: the next one gives it out again. */
TWI_WORKER_ONLY void twi_wheel_put_back(struct twi_wheel *wheel, struct twi_node **node,
					size_t count);

/* When tick `tick` is over; INT64_MAX for none. */
TWI_WORKER_ONLY int64_t twi_wheel_boundary_ns(const struct twi_wheel *wheel, uint64_t tick);

/* Something has left the slots, or came too late for them: the next advance gives it out at once. */
TWI_WORKER_ONLY bool twi_wheel_owes(const struct twi_wheel *wheel);

/* A tick not after the earliest due one and after now, or TWI_TICK_NEVER when the wheel is empty.
 */
TWI_WORKER_ONLY uint64_t twi_wheel_next_due(const struct twi_wheel *wheel);

/* Takes out anything, until the batch is full or the wheel is empty. */
TWI_WORKER_ONLY void twi_wheel_drain(struct twi_wheel *wheel, struct twi_due_batch *batch);

/* The judge: walks over everything. NULL when all is right, else a text that says what is not. */
TWI_WORKER_ONLY const char *twi_wheel_check(const struct twi_wheel *wheel);

/* The bytes of wheel and entries. */
TWI_WORKER_ONLY uint64_t twi_wheel_bytes(const struct twi_wheel *wheel);

/* For wheels: what all have in common. `bytes`: of the wheel's own memory, which is zero. */
void twi_wheel_init(struct twi_wheel *wheel, const struct twi_wheel_ops *ops,
		    const struct tw_allocator *allocator, size_t bytes, uint64_t tick_ns,
		    int64_t epoch_ns);

/* For wheels: a node that is counted already, and finds no memory on its way between slots. */
TWI_WORKER_ONLY void twi_wheel_limbo_add(struct twi_wheel *wheel, struct twi_node *node);

/* The tick at whose boundary a node is due, also when that has passed; by now, if it is rescheduled. */
uint64_t twi_wheel_due_tick(const struct twi_wheel *wheel, struct twi_node *node);

/* What is due at or before tick `limit` has an earlier deadline than this. */
int64_t twi_wheel_before_ns(const struct twi_wheel *wheel, uint64_t limit);

/* For the judges: the due tick as anybody may be changing it, and a word that is not older. */
uint64_t twi_wheel_judged_tick(const struct twi_wheel *wheel, struct twi_node *node,
			       uint64_t *ret_word);

/*
 * For the judges: whether an entry for tick `filed` is right about its node. It is not after the
 * node's due tick, unless the node is on its way to be filed anew, and not before, unless it was
 * rescheduled. NULL, or what is wrong.
 */
const char *twi_wheel_filed_check(const struct twi_wheel *wheel, struct twi_node *node,
				  uint64_t filed);

#endif
