/* SPDX-License-Identifier: MIT */
#include "runtime/order.h"

#include "runtime/explore.h"

#include <string.h>

struct event {
	uint32_t epoch;
	uint32_t fiber;
	bool writes;
	struct order_set before; /* all earlier accesses, direct and indirect */
};

static struct {
	unsigned count;
	struct event event[ORDER_EVENTS];
} state MODEL_STATE;

void order_begin(void)
{
	state.count = 0;
}

bool order_open(void)
{
	return explore_harness()->any_order && state.count < ORDER_EVENTS;
}

static void set_add(struct order_set *set, unsigned number)
{
	set->bit[number / 64] |= UINT64_C(1) << number % 64;
}

static bool set_has(const struct order_set *set, unsigned number)
{
	return (set->bit[number / 64] >> number % 64 & 1) != 0;
}

static bool sets_meet(const struct order_set *a, const struct order_set *b)
{
	for (unsigned i = 0; i < ORDER_WORDS; i++) {
		if ((a->bit[i] & b->bit[i]) != 0)
			return true;
	}
	return false;
}

struct order_set order_before(const struct model_clock *clock)
{
	struct order_set set = {{0}};

	for (unsigned i = 0; i < state.count; i++) {
		const struct event *event = &state.event[i];
		const uint32_t *known = event->writes ? clock->w : clock->r;

		if (event->epoch <= known[event->fiber])
			set_add(&set, i);
	}
	return set;
}

/* Returns the set with everything that comes before its members. */
static struct order_set closure(const struct order_set *set)
{
	struct order_set all = *set;

	for (unsigned i = 0; i < state.count; i++) {
		if (set_has(set, i))
			order_join(&all, &state.event[i].before);
	}
	return all;
}

bool order_allows(const struct order_set *before, const struct order_set *after)
{
	struct order_set all = closure(before);

	return !sets_meet(&all, after);
}

void order_add(const struct order_set *before, const struct order_set *after, bool writes,
	       struct order_set *ret_set)
{
	struct event *event = &state.event[state.count];

	event->epoch = fiber_self()->epoch;
	event->fiber = fiber_self()->number;
	event->writes = writes;
	event->before = closure(before);
	for (unsigned i = 0; i < state.count; i++) {
		struct event *later = &state.event[i];

		if (!set_has(after, i) && !sets_meet(&later->before, after))
			continue;
		order_join(&later->before, &event->before);
		set_add(&later->before, state.count);
	}
	set_add(ret_set, state.count++);
}
