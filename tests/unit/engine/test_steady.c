/* SPDX-License-Identifier: MIT */
/*
 * After a warm-up, schedule, cancel, transfer, expiry and the runs of chains must not allocate, and
 * must not touch a page for the first time. This program replaces the C library's malloc and mmap,
 * and counts their calls. getrusage reports page faults. Of three windows, one must be without any
 * fault. (The kernel's own page migration counts as faults, too.)
 */
#include "probe.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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
void *__libc_realloc(void *memory, size_t bytes);

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

void *realloc(void *memory, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_realloc(memory, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	atomic_fetch_add(&allocations, 1);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the system call returns a pointer */
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
#endif

enum { COUNT = 20000, WINDOWS = 3 };

static struct tw_handle handles[COUNT];
static atomic_int runs;

/*
 * Uses the engine once. Half of the timeouts are cancelled, half of these before their transfer.
 * The other half expires.
 */
static void use_once(struct fixture *fixture)
{
	int i;

	for (i = 0; i < COUNT; i++) {
		tw_schedule(fixture->engine, (i % 50 + 1) * NS_PER_MS, &count_kind, &runs,
			    &handles[i]);
		if (i % 4 == 0)
			tw_cancel(handles[i]);
	}
	tw_engine_flush(fixture->engine, PATIENCE_NS);
	for (i = 1; i < COUNT; i += 4)
		tw_cancel(handles[i]);
	for (i = 0; i < 60; i++) {
		fixture->now_ns += NS_PER_MS;
		tw_clock_set(fixture->clock, fixture->now_ns);
		tw_engine_flush(fixture->engine, PATIENCE_NS);
	}
}

/* Runs many rounds, until each slot of the small wheel has held its largest number of timeouts. */
static void warm_up(struct fixture *fixture)
{
	int i;

	for (i = 0; i < 20; i++)
		use_once(fixture);
}

static void open_steady(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	options.check = TW_CHECK_NONE;
	options.slots = 64;
	check_int(tw_memory_reserve(4 * COUNT), 0);
	fixture_open(fixture, &options);
	warm_up(fixture);
}

Test(steady, steady_state_allocates_nothing)
{
	struct fixture fixture;
	struct tw_stats warm;
	uint64_t warm_slab_bytes;
	long before;
	int i;

	open_steady(&fixture);
	warm = stats_of(fixture.engine);
	warm_slab_bytes = tw_memory_slab_bytes();
	before = atomic_load(&allocations);
	for (i = 0; i < 10; i++)
		use_once(&fixture);
	check_int(atomic_load(&allocations) - before, 0);
	check_int(stats_of(fixture.engine).wheel_allocations, warm.wheel_allocations);
	check_int(tw_memory_slab_bytes(), warm_slab_bytes);
	check_int(stats_of(fixture.engine).expired - warm.expired, 10 * COUNT / 2);
	fixture_close(&fixture);
}

static void on_again(struct tw_handle self, void *arg)
{
	(void)tw_period_next(self, (atomic_fetch_add((atomic_int *)arg, 1) % 7 + 1) * NS_PER_MS);
}

static const struct tw_kind again_kind = TW_KIND(on_again, NULL);

/*
 * Uses chains that run thousands of times, chains whose callbacks set the interval, and chains that
 * are scheduled and cancelled.
 */
static void repeat_once(struct fixture *fixture)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);

	for (int i = 0; i < COUNT / 20; i++) {
		period.period_ns = (i % 9 + 1) * NS_PER_MS;
		period.mode = (uint32_t)i % 2;
		period.missed = (uint32_t)i % 3;
		period.runs = i % 4 == 0 ? 5 : 0;
		check_int(tw_schedule_periodic(fixture->engine, &period,
					       i % 5 == 0 ? &again_kind : &count_kind, &runs,
					       &handles[i]),
			  0);
	}
	for (int i = 0; i < 100; i++)
		fixture_advance(fixture, NS_PER_MS);
	for (int i = 0; i < COUNT / 20; i++)
		(void)tw_cancel(handles[i]);
	fixture_advance(fixture, NS_PER_MS);
	check_int(tw_engine_pending(fixture->engine), 0);
}

Test(steady, no_allocation_per_period)
{
	struct fixture fixture;
	struct tw_stats warm;
	uint64_t warm_slab_bytes;
	long before;

	open_steady(&fixture);
	for (int i = 0; i < 3; i++)
		repeat_once(&fixture);
	warm = stats_of(fixture.engine);
	warm_slab_bytes = tw_memory_slab_bytes();
	before = atomic_load(&allocations);
	for (int i = 0; i < 3; i++)
		repeat_once(&fixture);
	check_int(atomic_load(&allocations) - before, 0);
	check_int(stats_of(fixture.engine).wheel_allocations, warm.wheel_allocations);
	check_int(tw_memory_slab_bytes(), warm_slab_bytes);
	check_at_least(stats_of(fixture.engine).periodic_runs - warm.periodic_runs, 3 * COUNT / 2);
	fixture_close(&fixture);
}

#ifndef SANITIZED
static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

Test(steady, no_page_fault)
{
	struct fixture fixture;
	long fewest = 1000000;
	long before;
	int window;
	int i;

	open_steady(&fixture);
	for (window = 0; window < WINDOWS && fewest > 0; window++) {
		before = minor_faults();
		for (i = 0; i < 5; i++)
			use_once(&fixture);
		if (minor_faults() - before < fewest)
			fewest = minor_faults() - before;
	}
	check_int(fewest, 0);
	fixture_close(&fixture);
}

/* The counters must notice an allocation and a fault. Otherwise a zero in the other tests would
 * mean nothing. */
Test(steady, counters_see_allocations_and_faults)
{
	long before_allocations = atomic_load(&allocations);
	long before_faults = minor_faults();
	volatile char *memory =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	for (i = 0; i < 1 << 20; i += 4096)
		memory[i] = 1;
	check_at_least(atomic_load(&allocations) - before_allocations, 1);
	check_at_least(minor_faults() - before_faults, 1);
}
#endif
