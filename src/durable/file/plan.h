/* SPDX-License-Identifier: MIT */
/*
 * Plans: what a load has seen of a bucket and not given yet, so that the next load need not look at
 * the bucket again. A plan is a heap of marks, the earliest on top. It has the mark of each timer
 * of the bucket behind `from` and up to `last`: a new or moved one is added to it. Marks of timers
 * that have ended or moved stay, and so do those of a transaction that was taken back. So a load
 * reads each row before it gives it.
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
	/* The marks that a plan keeps. While a bucket is read it has twice as many: 8 MiB. */
	TWI_PLAN_MARKS = 131072,
#endif
	/* The loader's wall clock and its elapsed one each have a place of their own. */
	TWI_PLANS = 2,
};

/* A place in the order of timers, and the kind of the timer there. */
struct twi_mark {
	int64_t due_ns, place, serial, kind;
};

struct twi_plan {
	int64_t bucket;
	struct twi_mark from, last;
	struct twi_mark *marks; /* NULL: no plan */
	size_t count, room;
};

struct twi_plans {
	struct twi_plan plans[TWI_PLANS];
	unsigned used; /* the one that was used last */
};

/* By deadline, then by id. */
bool twi_mark_before(const struct twi_mark *mark, const struct twi_mark *other);
/* The same, for qsort(). */
int twi_mark_compare(const void *one, const void *other);

/* The plan of a bucket that has all timers behind `after`, or NULL. */
struct twi_plan *twi_plan_find(struct twi_plans *plans, int64_t bucket,
			       const struct twi_mark *after);
/* Begins a plan of what lies behind `after`, in place of another. NULL: no memory. */
struct twi_plan *twi_plan_begin(struct twi_plans *plans, int64_t bucket,
				const struct twi_mark *after);
/* Adds a mark of the bucket while it is read. False: no memory. */
bool twi_plan_collect(struct twi_plan *plan, const struct twi_mark *mark);
/* The bucket was read. */
void twi_plan_ready(struct twi_plan *plan);

/* The earliest mark, or NULL. */
const struct twi_mark *twi_plan_first(const struct twi_plan *plan);
void twi_plan_pop(struct twi_plan *plan);
/* The mark was given, or not wanted: from here on the plan has what lies behind it. */
void twi_plan_pass(struct twi_plan *plan, const struct twi_mark *mark);
/* Puts a mark back that was not given. */
void twi_plan_push(struct twi_plan *plan, const struct twi_mark *mark);
/* The bucket has no timers behind this plan's. */
bool twi_plan_whole(const struct twi_plan *plan);
void twi_plan_end(struct twi_plan *plan);

/* A timer was put into a bucket. */
void twi_plans_add(struct twi_plans *plans, int64_t bucket, const struct twi_mark *mark);
/* Ends all: the next load reads the bucket. */
void twi_plans_end(struct twi_plans *plans);

#endif
