/* SPDX-License-Identifier: MIT */
/* Arrays of items, for the tests of batches. */
#ifndef TESTS_BATCH_SCENE_H
#define TESTS_BATCH_SCENE_H

#include "probe.h"

#include <stdlib.h>

static inline struct tw_item item_of(int64_t time_ns, const struct tw_kind *kind, void *arg)
{
	return (struct tw_item){.time_ns = time_ns, .kind = kind, .arg = arg};
}

static inline void *array_make(size_t count, size_t bytes)
{
	void *array = calloc(count, bytes);

	check_true(array != NULL);
	return array;
}

/* Makes an array with the same item `count` times. */
static inline struct tw_item *items_make(size_t count, int64_t time_ns, const struct tw_kind *kind,
					 void *arg)
{
	struct tw_item *items = array_make(count, sizeof *items);

	for (size_t i = 0; i < count; i++)
		items[i] = item_of(time_ns, kind, arg);
	return items;
}

#endif
