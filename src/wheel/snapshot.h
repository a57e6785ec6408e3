/* SPDX-License-Identifier: MIT */
/*
 * Counts the timeouts of a wheel, for a snapshot of an engine (turn/snapshot.h): by level, by the
 * time until the deadline, and by slot. The count visits every pending timeout and changes nothing.
 *
 * [worker], like the wheel.
 */
#ifndef TWI_WHEEL_SNAPSHOT_H
#define TWI_WHEEL_SNAPSHOT_H

#include "wheel/wheel.h"

enum {
	/*
	 * The number of ranges of the time until the deadline: overdue; ten decades, of which the
	 * first ends at 10 us; later than these; never.
	 */
	TWI_SNAPSHOT_AGES = 13,
	TWI_SNAPSHOT_DECADES = 10,
	/* How many of the fullest slots are listed. */
	TWI_SNAPSHOT_SLOTS = 10,
};

/* The end of the first decade. */
#define TWI_SNAPSHOT_FIRST_NS INT64_C(10000)

struct twi_wheel_snapshot_slot {
	unsigned level;
	uint32_t number;
	uint64_t count;
};

struct twi_wheel_snapshot {
	int64_t now_ns;
	uint64_t level[TWI_WHEEL_LEVELS]; /* entries in the slots of each level */
	uint64_t overdue;                 /* timeouts inserted after their tick */
	uint64_t unslotted;               /* timeouts without memory for a slot entry */
	uint64_t ready;    /* due timeouts, in order of deadlines, not given out yet */
	uint64_t later;    /* timeouts put aside until the next turn */
	uint64_t rejected; /* timeouts that an executor rejected */
	uint64_t age[TWI_SNAPSHOT_AGES];  /* pending timeouts, without cancelled ones */
	uint64_t cancelled;               /* cancelled timeouts that are still in the wheel */
	struct twi_node *first_cancelled; /* the cancelled one with the earliest deadline */
	struct twi_wheel_snapshot_slot
		/* the fullest slots, the fullest first; in unused elements, count is 0 */
		slot[TWI_SNAPSHOT_SLOTS];
};

/* Fills `ret`. `now_ns`: the present time, for the ages. */
TWI_WORKER_ONLY void twi_wheel_snapshot_take(const struct twi_wheel *wheel, int64_t now_ns,
					     struct twi_wheel_snapshot *ret);

/* Counts one more node. Used for nodes outside the wheel, too. */
TWI_WORKER_ONLY void twi_wheel_snapshot_add(struct twi_wheel_snapshot *snapshot,
					    struct twi_node *node);

#endif
