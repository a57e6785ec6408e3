/* SPDX-License-Identifier: MIT */
/* Threads that begin and end: attach, detach, and the memory that a thread gives back when it
 * ends. */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

static struct fixture fixture;
static atomic_int failures;
static atomic_int runs;

/* Schedules, cancels some of its timeouts, and ends its thread at once. */
static void *short_life(void *arg)
{
	struct tw_handle handle = {0};
	int i;

	(void)arg;
	for (i = 0; i < 50; i++) {
		if (tw_schedule(fixture.engine, 1, &count_kind, &runs, &handle) != 0)
			atomic_fetch_add(&failures, 1);
		if (i % 2 && tw_cancel(handle) < 0)
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

static void *short_attached_life(void *arg)
{
	if (tw_thread_attach() != 0 || tw_thread_attach() != 0)
		atomic_fetch_add(&failures, 1);
	short_life(arg);
	if (tw_thread_detach() != 0 || tw_thread_detach() != 0)
		atomic_fetch_add(&failures, 1);
	return NULL;
}

static void run_threads(void *(*body)(void *arg), int count)
{
	pthread_t thread;
	int i;

	for (i = 0; i < count; i++) {
		check_int(pthread_create(&thread, NULL, body, NULL), 0);
		check_int(pthread_join(thread, NULL), 0);
		if (i % 10 == 9)
			fixture_advance(&fixture, NS_PER_MS);
	}
	check_int(failures, 0);
}

static void check_constant_memory(void *(*body)(void *arg))
{
	uint64_t warm_bytes;

	fixture_open(&fixture, NULL);
	run_threads(body, 100);
	warm_bytes = tw_memory_slab_bytes();
	run_threads(body, 1000);
	check_int(tw_memory_slab_bytes(), warm_bytes);
	fixture_close(&fixture);
}

Test(threads, thread_that_ends_gives_its_memory_back)
{
	check_constant_memory(short_life);
}

Test(threads, detached_thread_gives_its_memory_back)
{
	check_constant_memory(short_attached_life);
}

/* Cancels 16 timeouts in the ring. That is the number of blocks that a thread keeps warm for its
 * next schedules. */
static void *warm_life(void *arg)
{
	struct tw_handle handle[16];

	(void)arg;
	for (int i = 0; i < 16; i++)
		if (tw_schedule(fixture.engine, TW_NEVER, &count_kind, &runs, &handle[i]) != 0)
			atomic_fetch_add(&failures, 1);
	for (int i = 0; i < 16; i++)
		if (tw_cancel(handle[i]) != TW_CANCEL_DONE)
			atomic_fetch_add(&failures, 1);
	return NULL;
}

/*
 * Runs so many threads that their warm blocks would need more than a slab. Seen to fail with this
 * defect: warm blocks are not given back.
 */
Test(threads, end_gives_back_what_was_kept_warm)
{
	uint64_t first_bytes;

	fixture_open(&fixture, NULL);
	run_threads(warm_life, 10);
	first_bytes = tw_memory_slab_bytes();
	run_threads(warm_life, 2500);
	check_int(tw_memory_slab_bytes(), first_bytes);
	fixture_close(&fixture);
}

Test(threads, attach_twice_and_use_after_detach)
{
	struct probe probe;

	check_int(tw_thread_detach(), 0);
	check_int(tw_thread_attach(), 0);
	check_int(tw_thread_attach(), 0);
	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, 1);
	check_int(tw_thread_detach(), 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(tw_engine_pending(fixture.engine), 0);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(tw_thread_detach(), 0);
	fixture_close(&fixture);
}

/* The counts of a thread must remain after it has ended. */
Test(threads, counters_survive_their_thread)
{
	fixture_open(&fixture, NULL);
	run_threads(short_life, 10);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(stats_of(fixture.engine).scheduled, 500);
	check_int(stats_of(fixture.engine).expired + stats_of(fixture.engine).cancelled, 500);
	check_int(runs, stats_of(fixture.engine).expired);
	fixture_close(&fixture);
}

/* The test makes one key before the library's key and one after it. So their destructors run
 * before and after the library's. */
#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#elif defined(__has_feature)
#define IS_TSAN __has_feature(thread_sanitizer)
#else
#define IS_TSAN 0
#endif
#if IS_TSAN
/* ThreadSanitizer ends its own part of the thread in the last of the system's four rounds of
 * destructors. With it, the destructors make calls in only two rounds. */
#define ROUNDS 2
#else
#define ROUNDS 4
#endif

static pthread_key_t early_key;
static pthread_key_t late_key;
static atomic_int destructor_calls;

static void schedule_in_destructor(pthread_key_t key, void *value)
{
	intptr_t rounds_left = (intptr_t)value;

	atomic_fetch_add(&destructor_calls, 1);
	short_life(NULL);
	if (rounds_left > 1)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): the pointer holds a number */
		pthread_setspecific(key, (void *)(rounds_left - 1));
}

static void on_early_key(void *value)
{
	schedule_in_destructor(early_key, value);
}

static void on_late_key(void *value)
{
	schedule_in_destructor(late_key, value);
}

static void *life_with_destructors(void *arg)
{
	pthread_setspecific(early_key, (void *)ROUNDS);
	pthread_setspecific(late_key, (void *)ROUNDS);
	return short_life(arg);
}

Test(threads, schedule_from_destructors_before_and_after_ours)
{
	uint64_t warm_bytes;

	check_int(pthread_key_create(&early_key, on_early_key), 0);
	fixture_open(&fixture, NULL);
	run_threads(short_life, 1);
	check_int(pthread_key_create(&late_key, on_late_key), 0);
	run_threads(life_with_destructors, 100);
	warm_bytes = tw_memory_slab_bytes();
	run_threads(life_with_destructors, 300);
	check_int(destructor_calls, 400 * 2 * ROUNDS);
	check_int(tw_memory_slab_bytes(), warm_bytes);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(stats_of(fixture.engine).scheduled, (401 + destructor_calls) * 50);
	fixture_close(&fixture);
}

/* In the next test, the threads exist longer than an engine, and then use the next engine. */
static atomic_int phase;

static void *long_life(void *arg)
{
	int seen = 0;

	(void)arg;
	while (seen < 20) {
		if (atomic_load(&phase) > seen) {
			seen++;
			short_life(NULL);
			atomic_fetch_add(&destructor_calls, 1);
		}
		sched_yield();
	}
	return NULL;
}

Test(threads, thread_may_outlive_many_engines)
{
	pthread_t thread;
	int i;

	check_int(pthread_create(&thread, NULL, long_life, NULL), 0);
	for (i = 0; i < 20; i++) {
		fixture_open(&fixture, NULL);
		atomic_fetch_add(&phase, 1);
		check_true(wait_until_at_least(&destructor_calls, i + 1));
		fixture_advance(&fixture, NS_PER_MS);
		check_int(stats_of(fixture.engine).scheduled, 50);
		fixture_close(&fixture);
	}
	check_int(pthread_join(thread, NULL), 0);
	check_int(failures, 0);
}

/* In the next test, one thread schedules, and another one cancels. */
enum { CROSS = 20000 };

static struct tw_handle cross_handles[CROSS];
static atomic_int cross_ready;
static atomic_int cross_outcomes[5];

static void *cross_canceller(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < CROSS; i++) {
		while (atomic_load(&cross_ready) <= i)
			sched_yield();
		atomic_fetch_add(&cross_outcomes[tw_cancel_wait(cross_handles[i], TW_NEVER)], 1);
	}
	return NULL;
}

Test(threads, cancel_from_another_thread)
{
	struct tw_stats stats;
	pthread_t thread;
	int i;

	fixture_open(&fixture, NULL);
	check_int(pthread_create(&thread, NULL, cross_canceller, NULL), 0);
	for (i = 0; i < CROSS; i++) {
		cross_handles[i] =
			must_schedule(fixture.engine, i % 3 * NS_PER_MS + 1, &count_kind, &runs);
		atomic_store(&cross_ready, i + 1);
		if (i % 50 == 0)
			check_int(tw_clock_set(fixture.clock, i / 50 * NS_PER_MS), 0);
	}
	check_int(pthread_join(thread, NULL), 0);
	fixture_advance_to(&fixture, CROSS * NS_PER_MS);
	stats = stats_of(fixture.engine);
	check_int(stats.cancelled, cross_outcomes[TW_CANCEL_DONE]);
	check_int(stats.expired, runs);
	check_int(stats.expired + stats.cancelled, CROSS);
	check_at_least(stats.cancelled, 1);
	fixture_close(&fixture);
}
