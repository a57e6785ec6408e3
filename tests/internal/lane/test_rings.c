/* SPDX-License-Identifier: MIT */
/*
 * The size of a ring. A ring begins small. It grows if it is full, and shrinks if it has been
 * nearly empty for long. If there is no memory, its size stays the same. No entry may be lost, and
 * all memory must be given back.
 *
 * Seen to fail with these defects: a ring does not grow, or allocates each time it is full; its
 * arrays are never freed; it never shrinks, or shrinks at once; each push tries to allocate while
 * there is no memory; an array counts as empty although its first entries were not taken.
 */
#include "fixture.h"
#include "rings.h"

#include "ingress/batch.h"

#include <stdlib.h>

enum {
	FULL = TWI_RING_ENTRIES,
	CALM_ROUNDS = 200,
};

/* The rings' arrays and bytes that are in use, and how often the library has tried to allocate an
 * array. An array of more than `most_bytes` is not allocated. */
static size_t arrays, ring_bytes, allocations, most_bytes;

static bool is_ring(size_t bytes, size_t align)
{
	bool ring = false;

	for (uint64_t size = TWI_RING_LEAST; size <= FULL; size *= 2)
		ring |= bytes == twi_ring_bytes(size - 1);
	return ring && align == TWI_CACHE_LINE;
}

static void *counted_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	if (is_ring(bytes, align)) {
		allocations++;
		if (bytes > most_bytes)
			return NULL;
		arrays++;
		ring_bytes += bytes;
	}
	return posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) == 0
		       ? memory
		       : NULL;
}

static void counted_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	if (is_ring(bytes, align)) {
		arrays--;
		ring_bytes -= bytes;
	}
	free(memory);
}

static const struct tw_allocator counted = {counted_allocate, counted_release, NULL};

static struct fixture fixture;
static atomic_int fired;

static void count(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind count_kind = TW_KIND(count, NULL);

/* Opens a loop engine, whose worker looks at the ring only when the test polls. */
static void begin(void)
{
	struct tw_options options = fixture_options();

	most_bytes = SIZE_MAX;
	check_int(tw_memory_allocator_set(&counted), 0);
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	check_int(tw_loop_exit(fixture.engine), 0);
	engine_use_rings(fixture.engine);
}

static void end(void)
{
	fixture_close(&fixture);
	check_int(arrays, 0);
	check_int(ring_bytes, 0);
}

static struct twi_lane *lane(void)
{
	return &fixture.engine->worker.near.lane[twi_thread()->lane];
}

static uint64_t size(void)
{
	return (uint64_t)lane()->ring.mask + 1;
}

static void schedule(int number)
{
	for (int i = 0; i < number; i++)
		check_int(tw_schedule(fixture.engine, TW_MS(5), &count_kind, NULL, NULL), 0);
}

/* Moves the clock and polls. Checks that exactly `number` timeouts run. */
static void run_all(int number)
{
	atomic_store(&fired, 0);
	fixture.now_ns += TW_MS(10);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	check_int(tw_engine_poll(fixture.engine, 0), number);
	check_int(atomic_load(&fired), number);
}

Test(rings, a_thread_that_schedules_now_and_then_takes_8_KiB, .init = begin, .fini = end)
{
	for (int round = 0; round < 10; round++) {
		schedule(TWI_RING_LEAST / 2);
		run_all(TWI_RING_LEAST / 2);
	}
	check_int(size(), TWI_RING_LEAST);
	check_int(allocations, 1);
	check_true(ring_bytes <= 8192);
}

Test(rings, a_full_ring_grows_and_loses_nothing, .init = begin, .fini = end)
{
	schedule(FULL);
	check_int(size(), FULL);
	check_int(twi_ring_pushed(&lane()->ring), FULL);
	run_all(FULL);
	/* The next push finds that the worker has emptied the smaller arrays, and frees them. */
	schedule(FULL + 1);
	check_int(arrays, 1);
	run_all(FULL + 1);
}

Test(rings, entries_lie_in_several_arrays_at_once, .init = begin, .fini = end)
{
	int left = 0;

	for (int round = 1; round <= 30; round++) {
		schedule(round * 97);
		left += round * 97;
		/* Only some rounds poll, so between two polls the ring may grow several times. */
		if (round % 7 == 0) {
			run_all(left);
			left = 0;
		}
	}
	run_all(left);
}

Test(rings, a_burst_that_comes_again_allocates_nothing, .init = begin, .fini = end)
{
	size_t before;

	schedule(3 * TWI_RING_LEAST);
	run_all(3 * TWI_RING_LEAST);
	before = allocations;
	for (int round = 0; round < 20; round++) {
		for (int calm = 0; calm < 30; calm++) {
			schedule(10);
			run_all(10);
		}
		schedule(3 * TWI_RING_LEAST);
		run_all(3 * TWI_RING_LEAST);
	}
	check_int(allocations, before);
}

/* Pushes `pushes` timeouts one by one. The worker empties the ring after every eight. */
static void be_calm(uint64_t pushes)
{
	for (uint64_t i = 0; i < pushes; i += 8) {
		schedule(8);
		run_all(8);
	}
}

Test(rings, a_ring_that_is_calm_for_long_shrinks, .init = begin, .fini = end)
{
	schedule(3 * TWI_RING_LEAST);
	run_all(3 * TWI_RING_LEAST);
	check_int(size(), 16 * TWI_RING_LEAST);
	be_calm(2 * size());
	check_int(size(), 16 * TWI_RING_LEAST);
	be_calm(70 * size());
	check_int(size(), TWI_RING_LEAST);
	check_true(ring_bytes <= 8192);
	schedule(3 * TWI_RING_LEAST);
	run_all(3 * TWI_RING_LEAST);
}

Test(rings, without_memory_the_link_queues_take_the_rest, .init = begin, .fini = end)
{
	most_bytes = twi_ring_bytes(TWI_RING_LEAST - 1);
	schedule(3 * TWI_RING_LEAST);
	check_int(twi_ring_pushed(&lane()->ring), TWI_RING_LEAST);
	/* Only the first of these pushes may try to allocate. */
	check_int(allocations, 2);
	run_all(3 * TWI_RING_LEAST);
	/* When there is memory again, the ring must grow. */
	most_bytes = SIZE_MAX;
	schedule(TWI_RING_LEAST);
	run_all(TWI_RING_LEAST);
	schedule(3 * TWI_RING_LEAST);
	check_int(size(), 16 * TWI_RING_LEAST);
	run_all(3 * TWI_RING_LEAST);
}

Test(rings, a_batch_gets_the_room_that_it_needs, .init = begin, .fini = end)
{
	enum { MANY = TWI_BATCH_MAX };
	static struct tw_item items[MANY];
	static struct tw_handle handles[MANY];

	for (int i = 0; i < MANY; i++)
		items[i] = (struct tw_item){.kind = &count_kind, .time_ns = TW_MS(5)};
	check_int(tw_schedule_many(fixture.engine, items, MANY, handles, NULL), MANY);
	check_int(twi_ring_pushed(&lane()->ring), MANY);
	check_int(tw_cancel_many(handles, MANY / 2, NULL), MANY / 2);
	run_all(MANY / 2);
}
