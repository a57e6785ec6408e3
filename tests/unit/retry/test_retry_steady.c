/* SPDX-License-Identifier: MIT */
/*
 * After a warm-up, submits, attempts, completions, cancels and drops must not allocate. A new queue
 * must allocate only itself. This program replaces the C library's malloc family and counts the
 * calls.
 *
 * Seen to fail with this defect: a destroyed queue does not pass on its chunks.
 */
#include "retry_scene.h"

#include "slowdown.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static atomic_long allocations;

#ifndef SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_calloc(count, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_memalign(align, bytes);
}
#endif

enum { COUNT = 1000 };

/* Returns 1 if the program can count allocations. It cannot if a sanitizer or valgrind has its
 * own allocator. */
static long counted(void)
{
	long before = atomic_load(&allocations);
	void *volatile memory = aligned_alloc(64, 64);

	free(memory);
	return atomic_load(&allocations) - before;
}

static struct job jobs[COUNT];
static struct tw_retry_handle handles[COUNT];

static const struct tw_retry_schedule schedule =
	TW_RETRY_EXPONENTIAL(NS_PER_MS, 8 * NS_PER_MS, 200, TW_RETRY_JITTER_EQUAL);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 4);

/* Ends tasks in each possible way. A fifth of them is dropped, because the queue holds no more. */
static void use_once(struct fixture *fixture, struct tw_retry *queue)
{
	for (int i = 0; i < COUNT; i++) {
		job_init(&jobs[i], fixture->engine, i % 3 ? TW_RETRY_AGAIN : TW_RETRY_PENDING);
		(void)tw_retry_submit(queue, i % 7 * NS_PER_MS, &kind, &jobs[i], &handles[i]);
	}
	for (int tick = 0; tick < 60; tick++) {
		fixture_advance(fixture, NS_PER_MS);
		for (int i = 0; i < COUNT; i += 3)
			(void)tw_retry_complete(jobs[i].self,
						i % 2 ? TW_RETRY_AGAIN : TW_RETRY_DONE);
		for (int i = tick; i < COUNT; i += 100)
			(void)tw_retry_cancel(handles[i]);
	}
	check_int(tw_retry_pending(queue), 0);
	for (int i = 0; i < COUNT; i++)
		check_int(jobs[i].ended, 1);
}

Test(retry_steady, steady_state_allocates_nothing)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_retry *queue;
	uint64_t slabs;
	long before;

	options.check = TW_CHECK_NONE;
	options.slots = 64;
	check_int(tw_memory_reserve(8 * COUNT), 0);
	fixture_open(&fixture, &options);
	queue = queue_open(&fixture, COUNT * 4 / 5, TW_RETRY_DROP_OLDEST);
	for (int i = 0; i < 20; i++)
		use_once(&fixture, queue);
	before = atomic_load(&allocations);
	slabs = tw_memory_slab_bytes();
	for (int i = 0; i < 10; i++)
		use_once(&fixture, queue);
	check_int(atomic_load(&allocations) - before, 0);
	check_int(tw_memory_slab_bytes(), slabs);
	scene_close(&fixture, queue);
}

/* Each queue must use the memory of the previous one, so that repeated creation and destruction
 * does not use more memory. */
Test(retry_steady, each_queue_uses_the_memory_of_the_previous_one)
{
	struct fixture fixture;
	struct tw_retry *queue;
	long before;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, COUNT, TW_RETRY_REJECT);
	use_once(&fixture, queue);
	check_int(tw_retry_destroy(queue), 0);
	before = atomic_load(&allocations);
	for (int i = 0; i < 100; i++) {
		queue = queue_open(&fixture, COUNT, TW_RETRY_REJECT);
		if (i % 20 == 0)
			use_once(&fixture, queue);
		check_int(tw_retry_destroy(queue), 0);
	}
	/* valgrind shows the program's own allocations, but not those of a library. */
	if (slowdown() == 1)
		check_int(atomic_load(&allocations) - before, 100 * counted());
	fixture_close(&fixture);
}

#ifndef SANITIZED
/* The counter must notice an allocation. Otherwise a count of 0 would prove nothing. */
Test(retry_steady, counter_sees_an_allocation)
{
	if (slowdown() == 1)
		check_int(counted(), 1);
}
#endif
