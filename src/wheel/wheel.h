/* SPDX-License-Identifier: MIT */
/*
 * The wheel interface: where pending timeouts wait for their tick.
 *
 * [worker], all of it: no other thread ever touches a wheel. The worker inserts and removes
 * timeouts in any order, even between two advances that are parts of one catch-up.
 *
 * A timeout may be inserted after its due tick has passed, because it was in ingress for long, or
 * because its deadline is in the past. Then it is overdue: the next advance takes it out, whatever
 * limit that advance has.
 *
 * A deadline may change while its node is in the wheel. If it becomes later, the node comes out at
 * the old time; the worker then sees the new deadline and puts the node back. If it becomes
 * earlier, the worker is notified by a push, takes the node out and files it again.
 *
 * A wheel cannot reject a timeout. If there is no memory for a slot entry, the timeout goes to the
 * unslotted list. Each advance looks at that list, and moves timeouts into their slots as soon as
 * there is memory.
 *
 * To add a wheel, write an ops table in a file of its own, and a create function below.
 */
#ifndef TWI_WHEEL_WHEEL_H
#define TWI_WHEEL_WHEEL_H

#include "wheel/chunk.h"
#include "wheel/slot.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_fine;
struct twi_wheel;

/* Visits a slot that is not empty. `level`: 0 in a hashed wheel. */
typedef void twi_slot_visit(void *context, unsigned level, uint32_t number,
			    const struct twi_slot *slot);

/* The largest number of levels of a wheel. */
enum { TWI_WHEEL_LEVELS = 11 };

struct twi_wheel_ops {
	/*
	 * Files the node under `due_tick`, which is after now. Returns false, and changes nothing,
	 * if there is no memory.
	 */
	bool (*insert)(struct twi_wheel *wheel, struct twi_node *node, uint64_t due_tick);
	/* Takes the node out of its slot. */
	void (*remove)(struct twi_wheel *wheel, struct twi_node *node);
	/* Does the same as twi_wheel_advance, but only for timeouts in slots. */
	void (*advance)(struct twi_wheel *wheel, uint64_t limit, struct twi_due_batch *batch);
	/* Does the same as twi_wheel_next_due, but only for timeouts in slots. */
	uint64_t (*next_due)(const struct twi_wheel *wheel);
	/* Takes timeouts out in any order, until the batch is full or the slots are empty. */
	void (*drain)(struct twi_wheel *wheel, struct twi_due_batch *batch);
	/*
	 * Checks all slots by brute force. Returns NULL or an error text. Adds the number of
	 * entries to `*count`.
	 */
	const char *(*check)(const struct twi_wheel *wheel, uint64_t *count);
	/*
	 * Calls `visit` for all slots that are not empty, from the lowest level up. Changes
	 * nothing.
	 */
	void (*each)(const struct twi_wheel *wheel, twi_slot_visit *visit, void *context);
	void (*destroy)(struct twi_wheel *wheel);
};

/* The part that all wheels have in common. [worker], except the fields that are [const]. */
struct twi_wheel {
	const struct twi_wheel_ops *ops; /* [const] */
	uint64_t tick_ns;                /* [const] */
	int64_t epoch_ns;                /* [const] the time at which tick 0 ends (base/tick.h) */

	/* No slot holds a timeout that is due at or before this tick. */
	uint64_t now TWI_WORKER_FIELD;
	/*
	 * If a timeout is inserted that is due at or before this tick, it is overdue. Equal to
	 * `now` or, during a catch-up by slot (hashed.c), to its limit.
	 */
	uint64_t horizon TWI_WORKER_FIELD;
	/* How many timeouts are in the wheel, those that are in no slot included. */
	uint64_t count TWI_WORKER_FIELD;
	/* How many entries have moved to a lower level since the wheel was made. */
	uint64_t cascaded TWI_WORKER_FIELD;

	/*
	 * In a wheel without an order: timeouts that were inserted after their tick. They are due
	 * at the next advance.
	 */
	struct twi_slot overdue TWI_WORKER_FIELD;
	/*
	 * Timeouts for whose slot entry there was no memory, linked by ingress link and place
	 * (list.h). The present advance has not looked at the timeouts in `unslotted` yet, and has
	 * looked at those in `unslotted_seen`. That advance gives out the timeouts with deadlines
	 * before unslotted_before.
	 */
	struct twi_node *unslotted TWI_WORKER_FIELD;
	struct twi_node *unslotted_seen TWI_WORKER_FIELD;
	uint64_t unslotted_before TWI_WORKER_FIELD;
	/*
	 * In a wheel with an order: due nodes that will be given out next, in the list's order.
	 * Either they were given out and put back, or they all have the same deadline. Linked like
	 * unslotted.
	 */
	struct twi_node *ready TWI_WORKER_FIELD;
	/*
	 * The value of `before` when the ready nodes became due. If a ready node's deadline is not
	 * before this, the node was rescheduled since then.
	 */
	uint64_t ready_before TWI_WORKER_FIELD;
	/*
	 * In a wheel with an order: overdue timeouts, in the order in which they were inserted.
	 * Linked like unslotted.
	 */
	struct twi_node *late TWI_WORKER_FIELD;
	struct twi_node *late_last TWI_WORKER_FIELD;
	/*
	 * Timeouts that were inserted during a turn and were due at once, in the order of
	 * insertion. They are kept out of the slots until twi_wheel_later_in, because otherwise the
	 * same turn would run them. Linked like unslotted.
	 */
	struct twi_node *later TWI_WORKER_FIELD;
	struct twi_node *later_last TWI_WORKER_FIELD;
	/*
	 * Timeouts that an executor rejected, in the order in which they will be tried again.
	 * Linked like unslotted. They become due again a few at a time, in advances to a later tick
	 * than rejected_tick, at which the last of them was rejected.
	 */
	struct twi_node *rejected TWI_WORKER_FIELD;
	struct twi_node *rejected_last TWI_WORKER_FIELD;
	struct twi_node *rejected_after
		TWI_WORKER_FIELD; /* the batch's last rejected node, or NULL before the first */
	uint64_t rejected_tick TWI_WORKER_FIELD;
	/*
	 * [const] Files a node whose due tick is not after `horizon`. Returns false if there is no
	 * memory.
	 */
	bool (*insert_passed)(struct twi_wheel *wheel, struct twi_node *node, uint64_t due_tick);
	/* [const] gives the order by deadline (fine.h); NULL in a wheel without an order */
	struct twi_fine *fine;
	struct twi_wheel *
		/* [const] the outer wheel of a fine wheel; NULL if this is not a fine wheel */
		outer;
	bool open; /* [const] an advance also gives out due timeouts of the present tick */
	/* In a wheel with an order: deadlines before this are due. Nanoseconds since the epoch. */
	uint64_t before TWI_WORKER_FIELD;
	/* In a wheel with an order: the sequence number of the next timeout that is inserted. */
	uint64_t sequence TWI_WORKER_FIELD;
	struct twi_chunk_pool chunks TWI_WORKER_FIELD;
	const void *owner; /* [const] the worker, for trace points */
};

/* The next due tick of an empty wheel. */
#define TWI_TICK_NEVER UINT64_MAX

/* The slot number of `overdue`. No wheel has so many slots. */
#define TWI_SLOT_OVERDUE UINT32_MAX

/* This bit marks the slot numbers of a fine wheel. No wheel has so many slots. */
#define TWI_SLOT_FINE (UINT32_C(1) << 31)

/* Makes a hashed wheel. `slots` must be a power of two. Returns NULL if there is no memory. */
struct twi_wheel *twi_wheel_create_hashed(const struct tw_allocator *allocator, uint32_t slots,
					  uint64_t tick_ns, int64_t epoch_ns);

/* Makes a hierarchical wheel. Returns NULL if there is no memory. */
struct twi_wheel *twi_wheel_create_hierarchical(const struct tw_allocator *allocator,
						uint64_t tick_ns, int64_t epoch_ns);

/*
 * Makes a fine wheel for `outer` (fine.h). Sets `*ret_reach` to the nanoseconds that the fine wheel
 * can reach ahead. Returns NULL if there is no memory.
 */
struct twi_wheel *twi_wheel_create_fine(struct twi_wheel *outer, uint64_t *ret_reach);

/*
 * Makes the wheel give out its due timeouts in the order of their deadlines. If `open`, an advance
 * also gives out the present tick's timeouts that are due already. The wheel must be empty. Returns
 * false if there is no memory.
 */
bool twi_wheel_order(struct twi_wheel *wheel, bool open);

/* Frees the wheel, but not the timeouts in it. NULL is accepted. */
void twi_wheel_destroy(struct twi_wheel *wheel);

/* Inserts a node. A wheel with an order gives out equal deadlines in the order of insertion. */
TWI_WORKER_ONLY void twi_wheel_insert(struct twi_wheel *wheel, struct twi_node *node);

/* Inserts a node that was in the wheel before. The node keeps its place among equal deadlines. */
TWI_WORKER_ONLY void twi_wheel_reinsert(struct twi_wheel *wheel, struct twi_node *node);

/*
 * Inserts a node that is due in the present turn. It is not given out before the next
 * twi_wheel_later_in, because otherwise the turn might never end.
 */
TWI_WORKER_ONLY void twi_wheel_insert_later(struct twi_wheel *wheel, struct twi_node *node);

/* Makes the nodes that twi_wheel_insert_later has put aside due in the next advance. */
TWI_WORKER_ONLY void twi_wheel_later_in(struct twi_wheel *wheel);

/*
 * Inserts a node that the advance up to `limit` gave out and that an executor rejected. The nodes
 * of a batch stay together; `rejected_after` is NULL at the beginning of a batch. If the deadline
 * of the batch's first node is not after that of the first rejected node, the batch goes to the
 * front, otherwise to the end.
 */
TWI_WORKER_ONLY void twi_wheel_insert_rejected(struct twi_wheel *wheel, struct twi_node *node,
					       uint64_t limit);

/*
 * Makes the first rejected nodes due again, at most `most` of them, if `limit` is after the tick of
 * the last rejection.
 */
TWI_WORKER_ONLY void twi_wheel_rejected_in(struct twi_wheel *wheel, uint64_t limit, uint64_t most);

/* Returns whether rejected nodes are left that could become due in an advance up to `limit`. */
static inline TWI_WORKER_ONLY bool twi_wheel_rejected_left(const struct twi_wheel *wheel,
							   uint64_t limit)
{
	return wheel->rejected != NULL && limit > wheel->rejected_tick;
}

/* Removes a node, if it is in the wheel. */
TWI_WORKER_ONLY void twi_wheel_remove(struct twi_wheel *wheel, struct twi_node *node);

/*
 * Returns the limit of an advance at `now_ns`: the last tick that is over then or, in an open
 * wheel, the tick that contains that time. If an earlier call was for a later time, uses that time
 * instead.
 */
TWI_WORKER_ONLY uint64_t twi_wheel_limit(struct twi_wheel *wheel, int64_t now_ns);

/*
 * Moves the overdue timeouts, and those that are due at or before `limit`, into the batch. In an
 * open wheel, a timeout of the tick `limit` itself is due only if its deadline is not after the
 * time that was passed to twi_wheel_limit. The batch's capacity must be at least TWI_CHUNK_ENTRIES.
 * If the batch is empty afterwards, `now` has reached `limit`.
 *
 * Order. In a wheel without an order, timeouts are given out by tick, and in any order inside a
 * tick. But if `limit` is a revolution or more ahead, a hashed wheel gives them out by slot. A
 * wheel with an order gives out overdue timeouts in the order of their insertion. Then it gives out
 * all others by deadline, however far ahead `limit` is, and equal deadlines in the order of their
 * insertion. An overdue node comes after nodes of the same deadline that were put back.
 */
TWI_WORKER_ONLY void twi_wheel_advance(struct twi_wheel *wheel, uint64_t limit,
				       struct twi_due_batch *batch);

/*
 * Puts back nodes that the last advance gave out and that did not run: all of them, or the last
 * ones. The next advance gives them out again.
 */
TWI_WORKER_ONLY void twi_wheel_put_back(struct twi_wheel *wheel, struct twi_node **node,
					size_t count);

/*
 * Returns the time of the engine's clock at which tick `tick` ends, or INT64_MAX for
 * TWI_TICK_NEVER.
 */
TWI_WORKER_ONLY int64_t twi_wheel_boundary_ns(const struct twi_wheel *wheel, uint64_t tick);

/*
 * Returns whether there may be timeouts that the next advance gives out at once, whatever limit it
 * has.
 */
TWI_WORKER_ONLY bool twi_wheel_owes(const struct twi_wheel *wheel);

/*
 * Returns a tick after `now` that is not after the earliest due tick, or TWI_TICK_NEVER if the
 * wheel is empty. In an open wheel the result may also be `now`, the present tick.
 */
TWI_WORKER_ONLY uint64_t twi_wheel_next_due(const struct twi_wheel *wheel);

/* Takes timeouts out in any order, until the batch is full or the wheel is empty. */
TWI_WORKER_ONLY void twi_wheel_drain(struct twi_wheel *wheel, struct twi_due_batch *batch);

/* Checks the whole wheel by brute force. Returns NULL, or a text that names the error. */
TWI_WORKER_ONLY const char *twi_wheel_check(const struct twi_wheel *wheel);

/* Returns the bytes of the wheel and its entries. */
TWI_WORKER_ONLY uint64_t twi_wheel_bytes(const struct twi_wheel *wheel);

/*
 * Makes nodes with the same deadline ready, so that they are given out before those in slots.
 * Called by wheels. The list that begins with `first` is linked by the nodes' places. No other node
 * may be ready.
 */
TWI_WORKER_ONLY void twi_wheel_ready_next(struct twi_wheel *wheel, struct twi_node *first);

/*
 * Sets up the common part. Called by wheels. `bytes`: the wheel's own memory, which must be zeroed.
 */
void twi_wheel_init(struct twi_wheel *wheel, const struct twi_wheel_ops *ops,
		    const struct tw_allocator *allocator, size_t bytes, uint64_t tick_ns,
		    int64_t epoch_ns);

/*
 * Files a node that is already counted. Called by wheels. Returns false, and changes nothing, if
 * there is no memory.
 */
TWI_WORKER_ONLY bool twi_wheel_try_file(struct twi_wheel *wheel, struct twi_node *node);

/*
 * Files a node as twi_wheel_try_file does. If there is no memory, the node goes to the unslotted
 * list.
 */
TWI_WORKER_ONLY void twi_wheel_file(struct twi_wheel *wheel, struct twi_node *node);

/*
 * Adds a node to the unslotted list, because there is no memory for a slot entry. Called by wheels.
 * The node must already be counted.
 */
TWI_WORKER_ONLY void twi_wheel_unslotted_add(struct twi_wheel *wheel, struct twi_node *node);

/* Returns the due tick of a node, by its present deadline. That tick may be over already. */
uint64_t twi_wheel_due_tick(const struct twi_wheel *wheel, struct twi_node *node);

/*
 * Returns the end of tick `limit`: a timeout is due at or before that tick if its deadline is
 * before this time.
 */
int64_t twi_wheel_before_ns(const struct twi_wheel *wheel, uint64_t limit);

/*
 * Returns the time before which deadlines are due in an advance to `limit`. In an open wheel, that
 * is just after the time that was passed to twi_wheel_limit.
 */
TWI_WORKER_ONLY int64_t twi_wheel_due_before_ns(const struct twi_wheel *wheel, uint64_t limit);

/*
 * Returns the time at which the worker must advance the wheel for a node with this deadline. 0
 * means at once.
 */
TWI_WORKER_ONLY int64_t twi_wheel_needs_ns(const struct twi_wheel *wheel, int64_t deadline_ns);

/*
 * Returns a node's due tick. Stores in `*ret_word` a state word that is not older than the deadline
 * that was read. Another thread may be changing both. Used by the checks.
 */
uint64_t twi_wheel_checked_tick(const struct twi_wheel *wheel, struct twi_node *node,
				uint64_t *ret_word);

/*
 * Checks whether an entry may be filed under tick `filed`. This tick must not be after the node's
 * due tick, unless the node is queued to be filed again. It must not be before the node's due tick,
 * unless the node was rescheduled. Returns NULL or an error text.
 */
const char *twi_wheel_filed_check(const struct twi_wheel *wheel, struct twi_node *node,
				  uint64_t filed);

#endif
