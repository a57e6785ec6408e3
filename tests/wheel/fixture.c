/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void *test_allocate(void *context, size_t bytes, size_t align)
{
	const struct wheel_fixture *fixture = context;

	return fixture->memory_fails ? NULL
				     : aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void test_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

TWI_WORKER_UNCHECKED void wheel_open(struct wheel_fixture *fixture, uint32_t slots)
{
	fixture->memory_fails = false;
	fixture->allocator = (struct tw_allocator){test_allocate, test_release, fixture};
	fixture->batch =
		(struct twi_due_batch){.node = fixture->due, .capacity = TWI_CHUNK_ENTRIES};
	twi_stock_init(&fixture->stock, false);
#ifdef WHEEL_HIERARCHICAL
	(void)slots;
	fixture->wheel = twi_wheel_create_hierarchical(&fixture->allocator, TICK_NS, 0);
#else
	fixture->wheel = twi_wheel_create_hashed(&fixture->allocator, slots, TICK_NS, 0);
#endif
	cr_assert(fixture->wheel != NULL);
}

void wheel_close(struct wheel_fixture *fixture)
{
	twi_wheel_destroy(fixture->wheel);
	twi_stock_flush(&fixture->stock);
}

struct twi_node *wheel_node(struct wheel_fixture *fixture, uint64_t due_tick)
{
	struct twi_node *node = twi_pool_take(&fixture->stock);

	cr_assert(node != NULL);
	(void)twi_node_begin(node, NULL, NULL, NULL, (int64_t)((due_tick - 1) * TICK_NS));
	return node;
}

struct twi_node *wheel_insert(struct wheel_fixture *fixture, uint64_t due_tick)
{
	struct twi_node *node = wheel_node(fixture, due_tick);

	twi_wheel_insert(fixture->wheel, node);
	return node;
}

void wheel_free(struct wheel_fixture *fixture, struct twi_node *node)
{
	twi_pool_give(&fixture->stock, node);
}

uint64_t wheel_advance(struct wheel_fixture *fixture, uint64_t limit,
		       void (*take)(void *context, struct twi_node *node), void *context)
{
	uint64_t count = 0;

	for (;;) {
		twi_wheel_advance(fixture->wheel, limit, &fixture->batch);
		if (fixture->batch.count == 0)
			return count;
		for (size_t i = 0; i < fixture->batch.count; i++) {
			cr_assert_eq(fixture->due[i]->place, TWI_PLACE_NONE);
			if (take != NULL)
				take(context, fixture->due[i]);
			wheel_free(fixture, fixture->due[i]);
		}
		count += fixture->batch.count;
	}
}

void wheel_judge(const struct wheel_fixture *fixture)
{
	const char *wrong = twi_wheel_check(fixture->wheel);

	cr_assert(wrong == NULL, "the judge says: %s", wrong);
}
