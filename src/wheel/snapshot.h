/* SPDX-License-Identifier: MIT */
/*
 * Counts the timeouts of a wheel, for a reader that wants to see an engine (turn/snapshot.h): by
 * level, by the time until the deadline, by slot. It walks over every pending timeout and changes
 * nothing.
 *
 * [worker], like the wheel.
 */
#ifndef TWI_WHEEL_SNAPSHOT_H
#define TWI_WHEEL_SNAPSHOT_H

#include "wheel/wheel.h"

enum {
	/* Overdue; ten decades, the first below 10 us; later; never. */
	TWI_SNAPSHOT_AGES = 13,
	TWI_SNAPSHOT_DECADES = 10,
	/* How many of the fullest slots are listed. */
	TWI_SNAPSHOT_SLOTS = 10,
};

/* The first decade ends here. */
#define TWI_SNAPSHOT_FIRST_NS INT64_C(10000)

struct twi_wheel_snapshot_slot {
	unsigned level;
	uint32_t number;
	uint64_t count;
};

struct twi_wheel_snapshot {
	int64_t now_ns;
	uint64_t level[TWI_WHEEL_LEVELS]; /* entries in its slots */
	uint64_t overdue;                 /* came after their tick */
	uint64_t unslotted;               /* found no memory for a slot entry */
	uint64_t ready;                   /* due, in order of deadlines, not given out yet */
	uint64_t later;                   /* chains that have to catch up */
	uint64_t rejected;                /* by an executor */
	uint64_t age[TWI_SNAPSHOT_AGES];  /* pending ones, without the cancelled */
	uint64_t cancelled;               /* not taken out yet */
	struct twi_node *first_cancelled; /* the one with the earliest deadline */
	struct twi_wheel_snapshot_slot
		slot[TWI_SNAPSHOT_SLOTS]; /* the fullest first; count 0: none */
};

/* Fills `ret`, by the time `now_ns`. */
TWI_WORKER_ONLY void twi_wheel_snapshot_take(const struct twi_wheel *wheel, int64_t now_ns,
					     struct twi_wheel_snapshot *ret);

/* Counts one more pending node, which is not in the wheel. */
TWI_WORKER_ONLY void twi_wheel_snapshot_add(struct twi_wheel_snapshot *snapshot,
					    struct twi_node *node);

#endif
