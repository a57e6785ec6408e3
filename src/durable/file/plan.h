/* SPDX-License-Identifier: MIT */
/*
 * Plans. A plan lists timers of a bucket that a load has read but not passed on yet. So the next
 * load need not read the bucket again. A plan is a heap of marks, with the earliest on top. It has
 * the mark of each timer of the bucket behind `from` and up to `last`. If a timer is put into this
 * part of the bucket, its mark is added. When a timer ends or moves away, or its transaction is
 * rolled back, its mark stays. So a load reads the row of each mark before it passes the timer on.
 */
#ifndef TWI_DURABLE_FILE_PLAN_H
#define TWI_DURABLE_FILE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
#ifdef TWI_TEST_SMALL
	TWI_PLAN_MARKS = 32,
#else
	/*
	 * The most marks that a plan keeps. While a bucket is read, the plan may have twice as
	 * many: 8 MiB.
	 */
	TWI_PLAN_MARKS = 131072,
#endif
	/* One plan for the loads by the wall clock, and one for those by elapsed time. */
	TWI_PLANS = 2,
};

/* A position in the order of timers, and the kind of the timer there. */
struct twi_mark {
	int64_t due_ns, place, serial, kind;
};

struct twi_plan {
	int64_t bucket;
	struct twi_mark from, last;
	struct twi_mark *marks; /* the heap, or NULL if there is no plan */
	size_t count, room;
};

struct twi_plans {
	struct twi_plan plans[TWI_PLANS];
	unsigned used; /* the plan that was used last */
};

/* Returns whether a mark comes before another: by deadline, then by id. */
bool twi_mark_before(const struct twi_mark *mark, const struct twi_mark *other);
/* Compares two marks in that order, for qsort(). */
int twi_mark_compare(const void *one, const void *other);

/* Returns a plan of this bucket that begins at `after` or before, or NULL. */
struct twi_plan *twi_plan_find(struct twi_plans *plans, int64_t bucket,
			       const struct twi_mark *after);
/*
 * Begins a plan of the bucket's timers behind `after`. The new plan takes a free place, or replaces
 * the plan that was not used last. Returns NULL if there is no memory.
 */
struct twi_plan *twi_plan_begin(struct twi_plans *plans, int64_t bucket,
				const struct twi_mark *after);
/* Adds a mark while the bucket is read. Returns false if there is no memory. */
bool twi_plan_collect(struct twi_plan *plan, const struct twi_mark *mark);
/* Completes a plan. Must be called when all timers of the bucket were collected. */
void twi_plan_ready(struct twi_plan *plan);

/* Returns the earliest mark, or NULL. */
const struct twi_mark *twi_plan_first(const struct twi_plan *plan);
void twi_plan_pop(struct twi_plan *plan);
/*
 * Notes that a mark was passed on or is not wanted. Afterwards the plan covers only the timers
 * behind this mark.
 */
void twi_plan_pass(struct twi_plan *plan, const struct twi_mark *mark);
/* Puts back a mark that was not passed on. */
void twi_plan_push(struct twi_plan *plan, const struct twi_mark *mark);
/* Returns whether the bucket has no timers behind those of this plan. */
bool twi_plan_whole(const struct twi_plan *plan);
void twi_plan_end(struct twi_plan *plan);

/* Adds a mark to the plans of a bucket. Must be called when a timer was put into the bucket. */
void twi_plans_add(struct twi_plans *plans, int64_t bucket, const struct twi_mark *mark);
/* Ends all plans: the next load reads its bucket again. */
void twi_plans_end(struct twi_plans *plans);

#endif
