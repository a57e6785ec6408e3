/* SPDX-License-Identifier: MIT */
#include "durable/file/plan.h"

#include <stdlib.h>

static const struct twi_mark no_last = {INT64_MAX, INT64_MAX, INT64_MAX, 0};

bool twi_mark_before(const struct twi_mark *mark, const struct twi_mark *other)
{
	if (mark->due_ns != other->due_ns)
		return mark->due_ns < other->due_ns;
	if (mark->place != other->place)
		return mark->place < other->place;
	return mark->serial < other->serial;
}

int twi_mark_compare(const void *one, const void *other)
{
	return twi_mark_before(one, other) ? -1 : twi_mark_before(other, one);
}

static void swap(struct twi_plan *plan, size_t one, size_t other)
{
	struct twi_mark mark = plan->marks[one];

	plan->marks[one] = plan->marks[other];
	plan->marks[other] = mark;
}

static bool earlier(const struct twi_plan *plan, size_t one, size_t other)
{
	return twi_mark_before(&plan->marks[one], &plan->marks[other]);
}

static void sift_up(struct twi_plan *plan, size_t at)
{
	for (; at > 0 && earlier(plan, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(plan, at, (at - 1) / 2);
}

static void sift_down(struct twi_plan *plan)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < plan->count) {
		if (child + 1 < plan->count && earlier(plan, child + 1, child))
			child++;
		if (!earlier(plan, child, at))
			return;
		swap(plan, at, child);
		at = child;
	}
}

struct twi_plan *twi_plan_find(struct twi_plans *plans, int64_t bucket,
			       const struct twi_mark *after)
{
	for (unsigned i = 0; i < TWI_PLANS; i++) {
		struct twi_plan *plan = &plans->plans[i];

		if (plan->marks == NULL || plan->bucket != bucket ||
		    twi_mark_before(after, &plan->from))
			continue;
		plans->used = i;
		return plan;
	}
	return NULL;
}

struct twi_plan *twi_plan_begin(struct twi_plans *plans, int64_t bucket,
				const struct twi_mark *after)
{
	unsigned place = plans->plans[plans->used].marks == NULL ? plans->used
								 : (plans->used + 1) % TWI_PLANS;
	struct twi_plan *plan = &plans->plans[place];

	twi_plan_end(plan);
	plan->marks = malloc(TWI_PLAN_MARKS / 32 * sizeof(plan->marks[0]));
	if (plan->marks == NULL)
		return NULL;
	plan->room = TWI_PLAN_MARKS / 32;
	plan->bucket = bucket;
	plan->from = *after;
	plan->last = no_last;
	plans->used = place;
	return plan;
}

/* Keeps the earlier half of a full plan. */
static void halve(struct twi_plan *plan)
{
	qsort(plan->marks, plan->count, sizeof(plan->marks[0]), twi_mark_compare);
	plan->count = TWI_PLAN_MARKS;
	plan->last = plan->marks[plan->count - 1];
}

static bool grow(struct twi_plan *plan)
{
	struct twi_mark *marks;

	if (plan->count < plan->room)
		return true;
	marks = realloc(plan->marks, 2 * plan->room * sizeof(marks[0]));
	if (marks == NULL)
		return false;
	plan->marks = marks;
	plan->room *= 2;
	return true;
}

bool twi_plan_collect(struct twi_plan *plan, const struct twi_mark *mark)
{
	if (!twi_mark_before(&plan->from, mark) || twi_mark_before(&plan->last, mark))
		return true;
	if (plan->count == 2 * TWI_PLAN_MARKS)
		halve(plan);
	/* halve() may have moved `last` to an earlier mark. */
	if (twi_mark_before(&plan->last, mark))
		return true;
	if (!grow(plan))
		return false;
	plan->marks[plan->count++] = *mark;
	return true;
}

void twi_plan_ready(struct twi_plan *plan)
{
	/* Sorted marks are a heap. */
	qsort(plan->marks, plan->count, sizeof(plan->marks[0]), twi_mark_compare);
}

const struct twi_mark *twi_plan_first(const struct twi_plan *plan)
{
	return plan->count > 0 ? &plan->marks[0] : NULL;
}

void twi_plan_pop(struct twi_plan *plan)
{
	plan->marks[0] = plan->marks[--plan->count];
	sift_down(plan);
}

void twi_plan_pass(struct twi_plan *plan, const struct twi_mark *mark)
{
	if (twi_mark_before(&plan->from, mark))
		plan->from = *mark;
}

void twi_plan_push(struct twi_plan *plan, const struct twi_mark *mark)
{
	if (plan->count == 2 * TWI_PLAN_MARKS || !grow(plan)) {
		twi_plan_end(plan);
		return;
	}
	plan->marks[plan->count++] = *mark;
	sift_up(plan, plan->count - 1);
}

bool twi_plan_whole(const struct twi_plan *plan)
{
	return plan->last.due_ns == no_last.due_ns && plan->last.place == no_last.place;
}

void twi_plan_end(struct twi_plan *plan)
{
	free(plan->marks);
	*plan = (struct twi_plan){.marks = NULL};
}

void twi_plans_add(struct twi_plans *plans, int64_t bucket, const struct twi_mark *mark)
{
	for (int i = 0; i < TWI_PLANS; i++) {
		struct twi_plan *plan = &plans->plans[i];

		if (plan->marks != NULL && plan->bucket == bucket &&
		    twi_mark_before(&plan->from, mark) && !twi_mark_before(&plan->last, mark))
			twi_plan_push(plan, mark);
	}
}

void twi_plans_end(struct twi_plans *plans)
{
	for (int i = 0; i < TWI_PLANS; i++)
		twi_plan_end(&plans->plans[i]);
}
