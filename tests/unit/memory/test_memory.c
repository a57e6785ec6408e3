/* SPDX-License-Identifier: MIT */
/*
 * The allocator hook, the memory cap, the reservation, and defect B21 of docs/internals/testing.md:
 * cancelled timeouts must not keep memory.
 *
 * Seen to fail with this defect: a cancel leaves the timeout in its slot until it is due (b21).
 */
#include "fault.h"
#include "probe.h"

#include <errno.h>
#include <stdlib.h>

Test(memory, allocator_without_a_function_is_rejected)
{
	struct fault fault;
	struct tw_allocator bad;

	fault_init(&fault);
	bad = fault.allocator;
	bad.allocate = NULL;
	check_int(tw_memory_allocator_set(&bad), -EINVAL);
	bad = fault.allocator;
	bad.release = NULL;
	check_int(tw_memory_allocator_set(&bad), -EINVAL);
	check_int(tw_memory_allocator_set(NULL), 0);
}

Test(memory, allocator_serves_engines_and_slabs)
{
	struct fixture fixture;
	struct probe probe;
	struct fault fault;
	uint64_t slab_bytes;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, NS_PER_S);
	slab_bytes = tw_memory_slab_bytes();
	check_at_least(slab_bytes, 64);
	check_at_least(fault.calls, 2);
	check_at_least(fault.live_bytes, (long long)slab_bytes);
	fixture_close(&fixture);
	/* The slabs stay allocated. The engine's own memory is given back. */
	check_int(tw_memory_slab_bytes(), slab_bytes);
	check_at_least(fault.live_bytes, (long long)slab_bytes);
	check_int(fault.bad_releases, 0);
}

Test(memory, engine_gives_back_to_the_allocator_it_was_made_with)
{
	struct fixture fixture;
	struct fault fault;
	long long before;

	fault_init(&fault);
	check_int(tw_memory_reserve(1000), 0);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	before = fault.live_bytes;
	fixture_open(&fixture, NULL);
	check_at_least(fault.live_bytes, before + 1);
	check_int(tw_memory_allocator_set(NULL), 0);
	fixture_close(&fixture);
	check_int(fault.live_bytes, before);
	check_int(fault.bad_releases, 0);
}

Test(memory, no_memory_for_an_engine)
{
	struct tw_engine *engine = NULL;
	struct fault fault;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fault_arm(&fault, 1, 1000000);
	check_int(tw_engine_create(NULL, &engine), -ENOMEM);
	check_true(engine == NULL);
	fault_disarm(&fault);
	check_int(tw_engine_create(NULL, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

/* Schedules until a schedule is rejected. Returns the number of accepted timeouts. */
static int fill(struct tw_engine *engine, struct tw_handle *ret_handles, int capacity,
		int *ret_error)
{
	static atomic_int unused;
	int count = 0;

	do
		*ret_error =
			tw_schedule(engine, TW_NEVER, &count_kind, &unused, &ret_handles[count]);
	while (*ret_error == 0 && ++count < capacity);
	return count;
}

enum { CAPACITY = 1000000 };

Test(memory, cap_rejects_and_what_is_free_can_be_used)
{
	struct tw_handle *handles = calloc(CAPACITY, sizeof(*handles));
	const uint64_t cap_bytes = 8 << 20;
	struct tw_options options = fixture_options();
	struct fixture fixture;
	int error;
	int count;
	int i;

	options.check = TW_CHECK_CHEAP;
	check_int(tw_memory_cap_set(cap_bytes), 0);
	fixture_open(&fixture, &options);
	count = fill(fixture.engine, handles, CAPACITY, &error);
	check_int(error, -ENOMEM);
	check_at_most(tw_memory_slab_bytes(), cap_bytes);
	check_at_least(count, cap_bytes / 64 / 2);
	for (i = 0; i < count; i++)
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	fixture_flush(&fixture);
	/* The worker may keep some blocks until they fill a magazine. */
	check_at_least(fill(fixture.engine, handles, CAPACITY, &error), count / 2);
	check_int(error, -ENOMEM);
	check_int(tw_memory_cap_set(0), 0);
	check_int(fill(fixture.engine, handles, 100, &error), 100);
	check_int(error, 0);
	fixture_close(&fixture);
	free(handles);
}

Test(memory, reserve_counts_what_is_there)
{
	uint64_t reserved_bytes;

	check_int(tw_memory_reserve(0), 0);
	check_int(tw_memory_reserve(100000), 0);
	reserved_bytes = tw_memory_slab_bytes();
	check_at_least(reserved_bytes, 100000 * 64);
	check_int(tw_memory_reserve(100000), 0);
	check_int(tw_memory_reserve(50000), 0);
	check_int(tw_memory_slab_bytes(), reserved_bytes);
}

Test(memory, reserve_is_enough)
{
	struct tw_handle *handles = calloc(100000, sizeof(*handles));
	struct tw_options options = fixture_options();
	struct fixture fixture;
	uint64_t reserved_bytes;
	int error;

	options.check = TW_CHECK_CHEAP;
	check_int(tw_memory_reserve(100000), 0);
	reserved_bytes = tw_memory_slab_bytes();
	fixture_open(&fixture, &options);
	check_int(fill(fixture.engine, handles, 100000, &error), 100000);
	check_int(tw_memory_slab_bytes(), reserved_bytes);
	fixture_close(&fixture);
	free(handles);
}

Test(memory, reserve_beyond_cap_or_memory_returns_enomem)
{
	struct fault fault;

	check_int(tw_memory_cap_set(16 << 20), 0);
	check_int(tw_memory_reserve(10000000), -ENOMEM);
	check_at_most(tw_memory_slab_bytes(), 16 << 20);
	check_int(tw_memory_reserve(UINT64_MAX), -ENOMEM);
	check_int(tw_memory_cap_set(0), 0);
	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	fault_arm(&fault, 2, 1000000);
	check_int(tw_memory_reserve(10000000), -ENOMEM);
	fault_disarm(&fault);
	check_int(tw_memory_reserve(1000000), 0);
}

/* Schedules and cancels `count` far timeouts in each round. */
static void cancel_rounds(struct fixture *fixture, int rounds, int count)
{
	struct tw_handle *handles = calloc((size_t)count, sizeof(*handles));
	atomic_int unused = 0;
	int round;
	int i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < count; i++)
			handles[i] = must_schedule(fixture->engine, 300 * NS_PER_S + i, &count_kind,
						   &unused);
		if (round % 2)
			fixture_flush(fixture);
		for (i = 0; i < count; i++)
			check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
		fixture_flush(fixture);
	}
	free(handles);
}

Test(memory, b21_cancelled_far_timeouts_are_not_held)
{
	struct fixture fixture;
	struct tw_stats warm;
	uint64_t warm_bytes;

	fixture_open(&fixture, NULL);
	cancel_rounds(&fixture, 4, 2000);
	warm_bytes = tw_memory_slab_bytes();
	warm = stats_of(fixture.engine);
	cancel_rounds(&fixture, 20, 2000);
	check_int(tw_memory_slab_bytes(), warm_bytes);
	check_at_most(stats_of(fixture.engine).wheel_bytes, warm.wheel_bytes + (64 << 10));
	fixture_close(&fixture);
}

Test(memory, b21_a_hundred_thousand_cancelled_at_once_serve_again)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	uint64_t warm_bytes;

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	cancel_rounds(&fixture, 2, 100000);
	warm_bytes = tw_memory_slab_bytes();
	cancel_rounds(&fixture, 6, 100000);
	check_int(tw_memory_slab_bytes(), warm_bytes);
	fixture_close(&fixture);
}

/*
 * Schedules 100,000 timeouts of 300 s per second, for 10 s of virtual time. Each is cancelled a
 * tick later. Memory must not grow.
 */
Test(memory, b21_a_stream_of_cancelled)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_handle handles[100] = {{0}};
	atomic_int unused = 0;
	uint64_t warm_bytes = 0;
	int i;

	options.check = TW_CHECK_NONE;
	fixture_open(&fixture, &options);
	for (i = 0; i < 1000000; i++) {
		/* The timeout was scheduled a tick ago, so it is in the wheel. */
		if (i >= 100)
			check_int(tw_cancel(handles[i % 100]), TW_CANCEL_DONE);
		handles[i % 100] =
			must_schedule(fixture.engine, 300 * NS_PER_S, &count_kind, &unused);
		if (i % 100 == 99)
			fixture_advance(&fixture, NS_PER_MS);
		if (i == 300000)
			warm_bytes = tw_memory_slab_bytes();
	}
	check_at_most(tw_memory_slab_bytes(), warm_bytes + (2 << 20));
	fixture_close(&fixture);
}
