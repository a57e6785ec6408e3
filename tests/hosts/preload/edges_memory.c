/* SPDX-License-Identifier: MIT */
/*
 * Without memory for the library's engine, libuv runs the timers itself, at the same times.
 *
 * Seen to fail with these defects: uv_timer_init or uv_timer_start returns an error; a timer that
 * was started again for a later time runs at its earlier time, because the engine cannot file it
 * again.
 */
#include "edges.h"

#include "fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/memory.h>

/* More timers than the engine has blocks for in one allocation. */
enum { MANY = 50000 };

static bool calloc_fails;

/*
 * Replaces the C library's function. It uses explicit_bzero, because a compiler would turn malloc
 * and memset into a calloc.
 */
__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
	size_t all;
	void *memory;

	if (calloc_fails || __builtin_mul_overflow(count, bytes, &all))
		return NULL;
	memory = malloc(all);
	if (memory != NULL)
		explicit_bzero(memory, all);
	return memory;
}

/* There is no memory for one timer of a loop, and then none for any timer of another loop. */
void edges_no_memory(void)
{
	uv_loop_t loops[2];
	uv_timer_t timers[3];

	edges_clock();
	(void)uv_loop_init(&loops[0]);
	(void)uv_loop_init(&loops[1]);
	edges_open(&loops[0], &timers[0], "ours");
	edges_need_ours(&timers[0], true);
	calloc_fails = true;
	edges_open(&loops[0], &timers[1], "libuv's");
	edges_open(&loops[1], &timers[2], "libuv's, in a loop without ours");
	calloc_fails = false;
	edges_need_ours(&timers[1], false);
	edges_need_ours(&timers[2], false);
	for (uint64_t i = 0; i < 3; i++)
		(void)uv_timer_start(&timers[i], edges_print, 10 + i, 30);
	for (int round = 0; round < 5; round++) {
		(void)uv_run(&loops[0], UV_RUN_ONCE);
		(void)uv_run(&loops[1], UV_RUN_ONCE);
	}
	edges_end(&loops[0]);
	edges_end(&loops[1]);
}

static int64_t due_ms[MANY];
static uint64_t runs;
static int64_t wrong;

/*
 * Checks that the timer runs exactly when it is due. In real time it could be later by an iteration
 * of the loop, but the time here is substituted.
 */
static void on_run(uv_timer_t *timer)
{
	size_t at = (size_t)(uintptr_t)timer->data;

	runs++;
	wrong += edges_now_ms() != due_ms[at];
	due_ms[at] += (int64_t)timer->repeat;
	if (runs >= 4 * (uint64_t)MANY)
		uv_stop(timer->loop);
}

static void start_all(uv_timer_t *timers, uint64_t timeout, uint64_t repeat)
{
	for (size_t i = 0; i < MANY; i++) {
		due_ms[i] = edges_now_ms() + (int64_t)timeout;
		edges_need(uv_timer_start(&timers[i], on_run, timeout, repeat) == 0, "start",
			   (int64_t)i);
	}
}

static void count_ours(const uv_timer_t *timers, bool some)
{
	size_t ours = 0;

	for (size_t i = 0; i < MANY; i++)
		ours += timers[i].u.reserved[3] != NULL;
	if (getenv("TESTS_PRELOADED") != NULL)
		edges_need(some ? ours > 0 && ours < MANY : ours == MANY, "timers of ours",
			   (int64_t)ours);
}

/*
 * The engine has no memory when timers start, when they are started again for a later time, and
 * when they repeat.
 */
void edges_no_memory_later(void)
{
	uv_timer_t *timers = calloc(MANY, sizeof *timers);
	static struct fault fault;
	uv_loop_t loop;

	fault_init(&fault);
	edges_need(tw_memory_allocator_set(&fault.allocator) == 0, "allocator", 1);
	edges_clock();
	(void)uv_loop_init(&loop);
	for (size_t i = 0; i < MANY; i++) {
		edges_open(&loop, &timers[i], NULL);
		timers[i].data = (void *)(uintptr_t)i;
	}
	count_ours(timers, false);
	/* This start makes the engine's first allocation, before allocations fail. */
	(void)uv_timer_start(&timers[0], on_run, 5, 20);
	fault_arm(&fault, 1, INT64_MAX);
	start_all(timers, 5, 20);
	count_ours(timers, true);
	start_all(timers, 50, 20);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	printf("%" PRIu64 " runs, %" PRId64 " at a wrong time\n", runs, wrong);
	fault_disarm(&fault);
	edges_end(&loop);
	free(timers);
}
