/* SPDX-License-Identifier: MIT */
/*
 * The sort of an ordered wheel against the C library's: few and many nodes, less than a block and
 * several, with deadlines of all kinds. Nodes with equal deadlines must keep their order.
 *
 * Seen to fail: a digit too few, a digit sorted from the end, the last of a block left out, the
 * newer of two equal ones merged first, blocks that are not merged, places not updated after a
 * merge, an insertion that passes equal ones; an overlong step measured by the length that was
 * allowed; memory that is not cleared, or not given back; a first step of no ticks; each bound of a
 * step one off; a step that stays short for ever because the piles of an earlier one count; a
 * prefetch of an entry beyond the block.
 */
#include "fixture.h"
#include "wheel/order.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 5 * 32768 + 77 };

static struct twi_order *order;
static struct twi_node *node[MOST];

/* The expected order: a deadline and the index of its node. */
static struct expected {
	int64_t deadline_ns;
	size_t at;
} expected[MOST];

static int by_deadline(const void *a, const void *b)
{
	const struct expected *one = a;
	const struct expected *other = b;

	if (one->deadline_ns != other->deadline_ns)
		return one->deadline_ns < other->deadline_ns ? -1 : 1;
	return one->at < other->at ? -1 : 1;
}

static uint64_t any(void)
{
	return (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
}

static int64_t all_alike(size_t i)
{
	(void)i;
	return 42;
}

static int64_t descending(size_t i)
{
	return -(int64_t)i;
}

static int64_t of_a_few(size_t i)
{
	(void)i;
	return INT64_MAX - (int64_t)(any() % 7);
}

static int64_t inside_a_tick(size_t i)
{
	(void)i;
	return (int64_t)(any() % 1000000);
}

static int64_t of_all(size_t i)
{
	if (i == 5)
		return INT64_MIN;
	return i == 9 ? INT64_MAX : (int64_t)any();
}

static int64_t (*const deadlines[])(size_t i) = {all_alike, descending, of_a_few, inside_a_tick,
						 of_all};

/* Adds nodes in batches of all sizes, as the wheel does. */
static TWI_WORKER_ONLY void order_fill(size_t count)
{
	for (size_t i = 0; i < count;) {
		size_t size = 1 + (size_t)rand() % 64;
		struct twi_due_batch batch = {
			.node = &node[i],
			.count = size < count - i ? size : count - i,
			.capacity = size,
		};

		i += batch.count;
		twi_order_add(order, &batch);
		cr_assert_eq(batch.count, 0);
	}
}

static TWI_WORKER_ONLY void list_check(struct twi_node *list, size_t count)
{
	struct twi_node *previous = NULL;

	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(list, node[expected[i].at], "number %zu of %zu", i, count);
		cr_assert_eq(list->place, (uintptr_t)previous | TWI_PLACE_LISTED);
		/* As when the list is given out. */
		twi_order_ahead(order);
		previous = list;
		list = twi_list_next(list);
	}
	cr_assert_eq(list, NULL);
}

static TWI_WORKER_ONLY void sort_check(size_t count, int64_t (*deadline_ns)(size_t i))
{
	for (size_t i = 0; i < count; i++) {
		expected[i] = (struct expected){deadline_ns(i), i};
		(void)twi_node_begin(node[i], NULL, NULL, NULL, expected[i].deadline_ns);
	}
	order_fill(count);
	qsort(expected, count, sizeof(*expected), by_deadline);
	list_check(twi_order_take(order), count);
}

/* Uses the same memory again and again, because one sort must not see what another left. */
Test(order, as_the_c_library_does)
{
	static const size_t counts[] = {0,    1,   2,     3,     31,    32,        33,
					34,   500, 32767, 32768, 32769, 2 * 32768, 3 * 32768 - 1,
					MOST, 40};
	struct wheel_fixture fixture;

	wheel_open(&fixture, 64);
	order = twi_order_create(fixture.wheel->chunks.allocator);
	cr_assert(order != NULL);
	for (size_t i = 0; i < MOST; i++)
		node[i] = wheel_node(&fixture, 1);
	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
		for (size_t d = 0; d < sizeof(deadlines) / sizeof(*deadlines); d++)
			sort_check(counts[c], deadlines[d]);
	for (size_t i = 0; i < MOST; i++)
		wheel_free(&fixture, node[i]);
	twi_order_destroy(order, fixture.wheel->chunks.allocator);
	wheel_close(&fixture);
}

static size_t live_bytes;

static size_t mapped_bytes(size_t bytes, size_t page_bytes)
{
	return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/* Returns used memory. It ends at a page that no thread may touch. */
static void *used_allocate(void *context, size_t bytes, size_t align)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t mapped = mapped_bytes(bytes, page_bytes);
	char *memory = mmap(NULL, mapped + page_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)context;
	cr_assert(memory != MAP_FAILED);
	cr_assert_eq(bytes % align, 0);
	cr_assert_eq(mprotect(memory + mapped, page_bytes, PROT_NONE), 0);
	live_bytes += bytes;
	return memset(memory + mapped - bytes, 0xa5, bytes);
}

static void used_release(void *context, void *memory, size_t bytes, size_t align)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t mapped = mapped_bytes(bytes, page_bytes);

	(void)context;
	(void)align;
	live_bytes -= bytes;
	cr_assert_eq(munmap((char *)memory + bytes - mapped, mapped + page_bytes), 0);
}

static const struct tw_allocator used_allocator = {
	.allocate = used_allocate,
	.release = used_release,
};

static TWI_WORKER_UNCHECKED void used_check(void)
{
	order = twi_order_create(&used_allocator);
	cr_assert(order != NULL);
	cr_assert_eq(twi_order_step(order, 10, 100), 11);
	cr_assert_eq(twi_order_take(order), NULL);
	cr_assert_eq(live_bytes, twi_order_bytes());
	twi_order_destroy(order, &used_allocator);
	cr_assert_eq(live_bytes, 0);
}

Test(order, begins_empty_in_used_memory_and_gives_it_back)
{
	used_check();
}

static int64_t of_one_digit(size_t i)
{
	return (int64_t)(i % 256);
}

/* The prefetch must stay in the block. Tested with a full block, sorted into the array at the end
 * of the memory, and with several blocks. */
static TWI_WORKER_UNCHECKED void ahead_check(void)
{
	enum { BLOCK = 32768 };

	struct wheel_fixture fixture;

	wheel_open(&fixture, 64);
	order = twi_order_create(&used_allocator);
	cr_assert(order != NULL);
	for (size_t i = 0; i < 3 * BLOCK; i++)
		node[i] = wheel_node(&fixture, 1);
	sort_check(BLOCK, of_one_digit);
	sort_check(3 * BLOCK, of_one_digit);
	for (size_t i = 0; i < 3 * BLOCK; i++)
		wheel_free(&fixture, node[i]);
	twi_order_destroy(order, &used_allocator);
	wheel_close(&fixture);
}

Test(order, asks_ahead_for_nothing_beyond_the_block)
{
	ahead_check();
}

/* Steps may grow long while no timeout is due. After one that was too long, the next must fit. */
Test(order, step_after_a_rest)
{
	enum { TICKS = 100, COUNT = 3 * 32768 };

	struct wheel_fixture fixture;
	uint64_t now = 0;

	wheel_open(&fixture, 64);
	order = twi_order_create(fixture.wheel->chunks.allocator);
	cr_assert(order != NULL);
	for (int i = 0; i < 40; i++) {
		now = twi_order_step(order, now, UINT64_MAX / 2);
		cr_assert_eq(twi_order_take(order), NULL);
	}
	for (size_t i = 0; i < COUNT; i++)
		node[i] = wheel_node(&fixture, 1);
	cr_assert_eq(twi_order_step(order, now, now + TICKS), now + TICKS);
	order_fill(COUNT);
	cr_assert(twi_order_take(order) != NULL);
	cr_assert_leq(twi_order_step(order, now, now + TICKS) - now, TICKS / 3);
	for (size_t i = 0; i < COUNT; i++)
		wheel_free(&fixture, node[i]);
	twi_order_destroy(order, fixture.wheel->chunks.allocator);
	wheel_close(&fixture);
}

/* Returns the step that follows one of `ticks`, a power of two, in which `count` nodes were due. */
static TWI_WORKER_ONLY uint64_t step_after(uint64_t ticks, size_t count)
{
	uint64_t now = 0;

	for (uint64_t grown = 1; grown < ticks; grown *= 2) {
		now = twi_order_step(order, now, UINT64_MAX / 2);
		cr_assert_eq(twi_order_take(order), NULL);
	}
	cr_assert_eq(twi_order_step(order, now, UINT64_MAX / 2), now + ticks);
	order_fill(count);
	cr_assert_eq(twi_order_take(order) == NULL, count == 0);
	return twi_order_step(order, now, UINT64_MAX / 2) - now;
}

static TWI_WORKER_ONLY void step_check(struct wheel_fixture *fixture, uint64_t ticks, size_t count,
				       uint64_t expected_ticks)
{
	order = twi_order_create(fixture->wheel->chunks.allocator);
	cr_assert(order != NULL);
	cr_assert_eq(step_after(ticks, count), expected_ticks, "%zu in %d ticks", count,
		     (int)ticks);
	/* In any case, an empty step is followed by one of twice the length. */
	cr_assert_eq(twi_order_take(order), NULL);
	cr_assert_eq(twi_order_step(order, 0, UINT64_MAX / 2), 2 * expected_ticks);
	twi_order_destroy(order, fixture->wheel->chunks.allocator);
}

Test(order, step_follows_what_the_last_one_held)
{
	enum { BLOCK = 32768 };

	struct wheel_fixture fixture;

	wheel_open(&fixture, 64);
	for (size_t i = 0; i < 2 * BLOCK; i++)
		node[i] = wheel_node(&fixture, 1);
	step_check(&fixture, 8, BLOCK / 8 - 1, 16);
	step_check(&fixture, 8, BLOCK / 8, 8);
	step_check(&fixture, 8, BLOCK / 2, 8);
	step_check(&fixture, 8, BLOCK / 2 + 1, 4);
	step_check(&fixture, 8, BLOCK + 1, 2);
	step_check(&fixture, 1, BLOCK / 2 + 1, 1);
	for (size_t i = 0; i < 2 * BLOCK; i++)
		wheel_free(&fixture, node[i]);
	wheel_close(&fixture);
}

/* A step cut by the limit must not grow, because it does
 * not show whether a longer one would fit. */
Test(order, step_to_the_limit_does_not_grow)
{
	struct wheel_fixture fixture;

	wheel_open(&fixture, 64);
	order = twi_order_create(fixture.wheel->chunks.allocator);
	cr_assert(order != NULL);
	cr_assert_eq(twi_order_step(order, 0, 1), 1);
	cr_assert_eq(twi_order_take(order), NULL);
	cr_assert_eq(twi_order_step(order, 1, 100), 2);
	twi_order_destroy(order, fixture.wheel->chunks.allocator);
	wheel_close(&fixture);
}
