/* SPDX-License-Identifier: MIT */
/*
 * Tests what a thread gives back when it ends, and how runs (rows of blocks) are cut from slabs and
 * counted. A user would notice a defect there late or never.
 *
 * Seen to fail with these defects:
 * - a thread that ends gives back nothing, does not give back its lane, or gives back only one of
 *   its two magazines;
 * - a detach does nothing;
 * - a run omits its first block;
 * - a slab's count of runs grows after its last run;
 * - tw_memory_reserve does not populate the slab in use, or allocates although it cannot get all of
 *   the memory;
 * - a clock that is not virtual is moved;
 * - a stock keeps blocks although it must not;
 * - a rejected schedule keeps its block.
 */
#include "clock/virtual.h"
#include "engine/engine.h"
#include "memory/slab.h"
#include "thread/thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tickwheel.h>
#include <unistd.h>

enum { FAILURES = 1000 };

/* The lane and the blocks that an ended thread had. The next thread must get them. */
struct had {
	uint32_t lane;
	void *taken; /* the next block of the magazine that it takes from */
	void *given;
};

static void run_thread(void *(*body)(void *argument), void *argument)
{
	pthread_t thread;

	cr_assert(pthread_create(&thread, NULL, body, argument) == 0);
	cr_assert(pthread_join(thread, NULL) == 0);
}

static void *use_and_end(void *argument)
{
	struct had *had = argument;
	struct twi_thread *thread = twi_thread();

	had->lane = thread->lane;
	had->given = twi_pool_take(&thread->stock);
	had->taken = thread->stock.take;
	twi_pool_give(&thread->stock, had->given);
	return NULL;
}

static void *use_and_detach(void *argument)
{
	static struct had next;
	struct had *had = argument;

	use_and_end(had);
	if (tw_thread_detach() != 0)
		return NULL;
	run_thread(use_and_end, &next);
	/* The next thread must get the lane, although this thread still exists. */
	if (next.lane != had->lane)
		had->lane = TWI_LANES;
	return NULL;
}

/*
 * Checks that both magazines of the ended thread are in the depot: this thread must find their
 * first blocks among its next two runs of blocks.
 */
static void *find_blocks(void *argument)
{
	const struct had *had = argument;
	struct twi_thread *thread = twi_thread();
	bool taken = false, given = false;

	for (uint32_t i = 0; i < 2 * TWI_RUN_BLOCKS; i++) {
		void *block = twi_pool_take(&thread->stock);

		taken |= block == had->taken;
		given |= block == had->given;
	}
	return taken && given && thread->lane == had->lane ? argument : NULL;
}

static bool next_thread_finds(struct had *had)
{
	pthread_t thread;
	void *found = NULL;

	cr_assert(pthread_create(&thread, NULL, find_blocks, had) == 0);
	cr_assert(pthread_join(thread, &found) == 0);
	return found != NULL;
}

Test(inside, end_of_a_thread_gives_back)
{
	struct had had = {.lane = TWI_LANES};

	run_thread(use_and_end, &had);
	cr_assert(had.lane < TWI_LANE_SHARED);
	cr_assert(next_thread_finds(&had));
}

Test(inside, detach_gives_back)
{
	struct had had = {.lane = TWI_LANES};

	run_thread(use_and_detach, &had);
	cr_assert(had.lane < TWI_LANE_SHARED);
}

static pthread_barrier_t all_there;

enum { THREADS = 3 * TWI_LANES };

static void *number_of_mine(void *argument)
{
	uint32_t *ret_number = argument;
	const struct twi_thread *thread = twi_thread();

	*ret_number = thread->far != 0 ? thread->far : thread->lane;
	cr_assert(thread->far == 0 || (thread->lane == TWI_LANE_SHARED && thread->pin == NULL));
	(void)pthread_barrier_wait(&all_there);
	return NULL;
}

/* More threads exist at once than near numbers. Each must have its own number, and none may have
 * the shared lane's. */
Test(inside, each_thread_has_a_number_of_its_own)
{
	pthread_t thread[THREADS];
	uint32_t number[THREADS];
	unsigned owners[THREADS + 2] = {0};

	cr_assert(pthread_barrier_init(&all_there, NULL, THREADS) == 0);
	for (int i = 0; i < THREADS; i++)
		cr_assert(pthread_create(&thread[i], NULL, number_of_mine, &number[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert(pthread_join(thread[i], NULL) == 0);
		cr_assert(number[i] < THREADS + 2);
		owners[number[i]]++;
	}
	for (int i = 0; i < THREADS + 1; i++)
		cr_assert(owners[i] == (i != TWI_LANE_SHARED));
	cr_assert(owners[THREADS + 1] == 0);
}

static void never_runs(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

/* Schedules more often than a run has blocks, so that the test notices a block that is not given
 * back. */
Test(inside, a_rejected_schedule_gives_its_block_back)
{
	static const struct tw_kind kind = TW_KIND(never_runs, NULL);
	struct tw_options options;
	struct tw_engine *engine;
	uint32_t runs;

	cr_assert(tw_options_init(&options, sizeof options) == 0);
	options.pending_limit = 1;
	cr_assert(tw_engine_create(&options, &engine) == 0);
	cr_assert(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	runs = twi_load_relaxed(&twi_slab_table[0]->run_count);
	for (int i = 0; i < TWI_RUN_BLOCKS; i++)
		cr_assert(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == -EAGAIN);
	cr_assert(twi_load_relaxed(&twi_slab_table[0]->run_count) == runs);
	cr_assert(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	cr_assert(tw_engine_destroy(engine) == 0);
}

static void detach_inside(struct tw_handle self, void *arg)
{
	int *ret_result = arg;

	(void)self;
	*ret_result = tw_thread_detach();
	if (!twi_thread_self.attached)
		*ret_result = 0;
}

/* A rejected detach must leave the thread as it is. */
Test(inside, rejected_detach_changes_nothing)
{
	static const struct tw_kind kind = TW_KIND(detach_inside, NULL);
	struct tw_engine *engine;
	int result = 0;

	cr_assert(tw_engine_create(NULL, &engine) == 0);
	cr_assert(tw_schedule(engine, 1, &kind, &result, NULL) == 0);
	while (tw_engine_pending(engine) > 0)
		cr_assert(tw_engine_flush(engine, TW_NEVER) == 0);
	cr_assert(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	cr_assert(result == -EBUSY);
	cr_assert(tw_engine_destroy(engine) == 0);
}

/*
 * A stock that keeps no blocks. A thread has one if the library is not notified when the thread
 * ends, because blocks in its stock would be lost then.
 */
Test(inside, stock_that_keeps_nothing_returns_its_blocks)
{
	struct twi_stock stock;
	void *block;

	twi_stock_init(&stock, true);
	block = twi_pool_take(&stock);
	cr_assert(block != NULL);
	cr_assert(stock.take == NULL);
	twi_pool_give(&stock, block);
	cr_assert(stock.give == NULL);
	/*
	 * The block that was given back must be in the depot, and so must the rest of the run that
	 * was cut with it. Then these takes cut no second run.
	 */
	twi_stock_init(&stock, false);
	for (int i = 0; i < TWI_RUN_BLOCKS - 1; i++)
		cr_assert(twi_pool_take(&stock) != NULL);
	cr_assert(twi_load_relaxed(&twi_slab_table[0]->run_count) == 1);
}

Test(inside, a_slab_has_all_its_blocks)
{
	uint32_t blocks = 0, count;
	char *first;

	do {
		count = twi_slab_carve(&first);
		cr_assert(count > 0);
		if (twi_block_index(first) / TWI_SLAB_BLOCKS == 0)
			blocks += count;
	} while (twi_slab_bytes() == TWI_SLAB_BYTES);
	/* The slab's head takes one block. All others must be given out. */
	cr_assert(blocks == TWI_SLAB_BLOCKS - 1);
}

Test(inside, runs_are_not_counted_without_end)
{
	char *first;

	twi_slab_cap_set(TWI_SLAB_BYTES);
	while (twi_slab_carve(&first) > 0)
		;
	for (int i = 0; i < FAILURES; i++)
		cr_assert(twi_slab_carve(&first) == 0);
	cr_assert(twi_load_relaxed(&twi_slab_table[0]->run_count) == TWI_SLAB_RUNS);
}

/*
 * Returns true if the kernel can populate pages without changing them (Linux 5.14). An emulator may
 * report success and do nothing, so the function checks a page.
 */
static bool kernel_populates(size_t page_bytes)
{
#ifdef MADV_POPULATE_WRITE
	void *page =
		mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char resident = 0;

	return page != MAP_FAILED && madvise(page, page_bytes, MADV_POPULATE_WRITE) == 0 &&
	       mincore(page, page_bytes, &resident) == 0 && (resident & 1);
#else
	(void)page_bytes;
	return false;
#endif
}

/* Reserve must populate the memory that it reserves, including the rest of a slab that is
 * already in use. */
Test(inside, reserve_touches_the_slab_in_use)
{
	static unsigned char resident[TWI_SLAB_BYTES / 4096];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *first;

	if (page_bytes != 4096 || !kernel_populates(page_bytes))
		cr_skip_test("the kernel touches no pages");
	cr_assert(twi_slab_carve(&first) > 0);
	cr_assert(twi_slab_reserve(1) == 0);
	cr_assert(mincore(twi_slab_table[0], TWI_SLAB_BYTES, resident) == 0);
	for (size_t page = 0; page < sizeof resident; page++)
		cr_assert(resident[page] & 1);
}

/* If reserve cannot get all of the memory, it must not allocate any. */
Test(inside, reserve_beyond_the_cap_makes_nothing)
{
	char *first;

	cr_assert(twi_slab_carve(&first) > 0);
	twi_slab_cap_set(3 * (uint64_t)TWI_SLAB_BYTES);
	cr_assert(twi_slab_reserve(5 * (uint64_t)TWI_SLAB_BLOCKS) == -ENOMEM);
	cr_assert(twi_slab_bytes() == TWI_SLAB_BYTES);
}

static bool memory_is_out;

static void *fail_or_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	return memory_is_out ? NULL
			     : memset(aligned_alloc(align, (bytes + align - 1) / align * align),
				      0xff, bytes);
}

static void release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

Test(inside, rejected_allocator_leaves_the_other)
{
	static const struct tw_allocator allocator = {fail_or_allocate, release, NULL};
	static const struct tw_allocator without_release = {fail_or_allocate, NULL, NULL};
	struct tw_clock *clock;

	cr_assert(tw_memory_allocator_set(&allocator) == 0);
	cr_assert(tw_memory_allocator_set(&without_release) == -EINVAL);
	cr_assert(tw_clock_create_virtual(0, &clock) == 0);
	cr_assert(tw_clock_destroy(clock) == 0);
}

/*
 * A slab that could not be made must not count towards the cap. The test's allocator returns memory
 * that is not zeroed.
 */
Test(inside, failures_do_not_use_up_the_cap)
{
	static const struct tw_allocator allocator = {fail_or_allocate, release, NULL};
	char *first;

	cr_assert(tw_memory_allocator_set(&allocator) == 0);
	twi_slab_cap_set(2 * (uint64_t)TWI_SLAB_BYTES);
	memory_is_out = true;
	for (int i = 0; i < 5; i++)
		cr_assert(twi_slab_carve(&first) == 0);
	memory_is_out = false;
	cr_assert(twi_slab_carve(&first) > 0);
}

Test(inside, a_clock_of_another_kind_is_not_moved)
{
	cr_assert(twi_clock_virtual_set(&twi_clock_monotonic, INT64_MAX - 1) == -EINVAL);
}
