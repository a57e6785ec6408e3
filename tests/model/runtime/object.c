/* SPDX-License-Identifier: MIT */
#include "runtime/object.h"

struct standing object_standing(const struct atomic_object *object, unsigned at)
{
	struct model_clock clock = fiber_self()->reads;
	struct standing standing = {.before = object->forgotten};
	struct order_set known;

	clock_join(&clock, &object->store[at].publishes);
	known = order_before(&clock);
	order_join(&standing.before, &known);
	for (unsigned i = 0; i < object->count; i++) {
		const struct store *store = &object->store[i];

		order_join(i <= at ? &standing.before : &standing.after, &store->writer);
		if (i != at)
			order_join(i < at ? &standing.before : &standing.after, &store->readers);
	}
	return standing;
}

void object_load_order(struct atomic_object *object, unsigned at)
{
	struct standing standing;

	if (!order_open())
		return;
	standing = object_standing(object, at);
	order_add(&standing.before, &standing.after, false, &object->store[at].readers);
}

static struct standing store_standing(const struct atomic_object *object, unsigned at)
{
	struct standing standing = {.before = order_before(&fiber_self()->now)};

	order_join(&standing.before, &object->forgotten);
	for (unsigned i = 0; i < object->count; i++) {
		struct order_set *side = i < at ? &standing.before : &standing.after;

		order_join(side, &object->store[i].writer);
		order_join(side, &object->store[i].readers);
	}
	return standing;
}

bool object_store_stands(const struct atomic_object *object, unsigned at)
{
	struct standing standing = store_standing(object, at);

	return order_allows(&standing.before, &standing.after);
}

void object_store_order(struct atomic_object *object, unsigned at, struct order_set *ret_writer)
{
	struct standing standing;

	if (!order_open())
		return;
	standing = store_standing(object, at);
	order_add(&standing.before, &standing.after, true, ret_writer);
}
