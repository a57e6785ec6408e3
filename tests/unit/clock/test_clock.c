/* SPDX-License-Identifier: MIT */
/* The virtual clock, the real clock, and tw_engine_flush. */
#include "asleep.h"
#include "fault.h"
#include "probe.h"

#include <errno.h>

Test(clock, bad_arguments_are_rejected)
{
	struct tw_clock *clock = NULL;

	check_int(tw_clock_create_virtual(0, NULL), -EINVAL);
	check_int(tw_clock_create_virtual(-1, &clock), -EINVAL);
	check_int(tw_clock_create_virtual(INT64_MIN, &clock), -EINVAL);
	check_true(clock == NULL);
	check_int(tw_clock_set(NULL, 0), -EINVAL);
	check_int(tw_clock_destroy(NULL), 0);
}

Test(clock, has_no_end_of_time)
{
	struct tw_clock *clock;

	check_int(tw_clock_create_virtual(INT64_MAX, &clock), -EINVAL);
	check_int(tw_clock_create_virtual(0, &clock), 0);
	check_int(tw_clock_set(clock, INT64_MAX), -EINVAL);
	check_int(tw_clock_destroy(clock), 0);
}

/* The last tick boundary is later than a clock can show. The worker must sleep, not spin until
 * then. */
Test(clock, worker_sleeps_at_the_last_moment)
{
	struct tw_stats before = {.size = sizeof(before)};
	struct tw_stats after = {.size = sizeof(after)};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_clock_set(fixture.clock, INT64_MAX - 1), 0);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	check_int(tw_stats_get(fixture.engine, &before), 0);
	for (int i = 0; i < 100; i++)
		check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	check_int(tw_stats_get(fixture.engine, &after), 0);
	check_int(after.turns - before.turns <= 200, 1);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_close(&fixture);
}

Test(clock, does_not_step_back)
{
	struct tw_clock *clock;

	check_int(tw_clock_create_virtual(1000, &clock), 0);
	check_int(tw_clock_set(clock, 999), -EINVAL);
	check_int(tw_clock_set(clock, -1), -EINVAL);
	check_int(tw_clock_set(clock, 1000), 0);
	check_int(tw_clock_set(clock, 2000), 0);
	check_int(tw_clock_set(clock, 1999), -EINVAL);
	check_int(tw_clock_destroy(clock), 0);
}

Test(clock, engine_follows_its_virtual_clock)
{
	struct fixture fixture;

	fixture_open_at(&fixture, NULL, 5000);
	check_int(tw_engine_now(fixture.engine), 5000);
	check_int(tw_clock_set(fixture.clock, 5000), 0);
	check_int(tw_clock_set(fixture.clock, 4999), -EINVAL);
	check_int(tw_engine_now(fixture.engine), 5000);
	check_int(tw_clock_set(fixture.clock, 7000), 0);
	check_int(tw_engine_now(fixture.engine), 7000);
	fixture_close(&fixture);
}

Test(clock, virtual_clock_belongs_to_one_engine)
{
	struct tw_options options = fixture_options();
	struct tw_engine *second = NULL;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	options.clock = fixture.clock;
	check_int(tw_engine_create(&options, &second), -EBUSY);
	check_true(second == NULL);
	check_int(tw_clock_destroy(fixture.clock), -EBUSY);
	fixture_stop(&fixture);
	check_int(tw_clock_destroy(fixture.clock), -EBUSY);
	check_int(tw_engine_destroy(fixture.engine), 0);
	/* The clock must be free again for another engine. */
	check_int(tw_engine_create(&options, &second), 0);
	check_int(tw_engine_destroy(second), 0);
	check_int(tw_clock_destroy(fixture.clock), 0);
}

Test(clock, failed_create_leaves_the_clock_free)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	check_int(tw_clock_create_virtual(0, &options.clock), 0);
	options.slots = 0;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.slots = 16;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	check_int(tw_clock_destroy(options.clock), 0);
}

Test(clock, set_wakes_the_worker)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, 10 * NS_PER_MS);
	fixture_flush(&fixture);
	check_true(asleep_park_await(fixture.engine));
	check_int(tw_clock_set(fixture.clock, 11 * NS_PER_MS), 0);
	check_true(wait_until_at_least(&probe.runs, 1));
	fixture_close(&fixture);
}

Test(clock, stands_still_in_real_time)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_schedule(&fixture, &probe, NS_PER_MS);
	/*
	 * In real time the timeout would be due now. The flush makes the worker look at the virtual
	 * clock, which has not moved.
	 */
	sleep_ns(5 * NS_PER_MS);
	fixture_flush(&fixture);
	check_int(probe.runs, 0);
	check_int(tw_engine_now(fixture.engine), 0);
	fixture_close(&fixture);
}

Test(clock, real_one_is_monotonic)
{
	struct tw_engine *engine = real_engine_open(NULL);
	int64_t before_ns = monotonic_ns();
	int64_t now_ns = tw_engine_now(engine);

	check_at_least(now_ns, before_ns);
	check_at_least(monotonic_ns(), now_ns);
	real_engine_close(engine);
}

/* In real time, the timeout must never be early. It may be late if the machine is busy. */
Test(clock, real_one_fires_by_itself)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;
	int64_t begin_ns;

	probe_init(&probe, engine);
	begin_ns = monotonic_ns();
	must_schedule(engine, 20 * NS_PER_MS, &probe_final_kind, &probe);
	check_true(wait_until_at_least(&probe.finalised, 1));
	check_at_least(probe.ran_at_ns, begin_ns + 20 * NS_PER_MS);
	check_at_most(probe.ran_at_ns, begin_ns + 2 * NS_PER_S);
	check_int(probe.runs, 1);
	real_engine_close(engine);
}

/* If a timeout is due earlier than the time until which the worker sleeps, the schedule must wake
 * the worker. */
Test(clock, real_one_is_woken_for_a_nearer_deadline)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct probe probe;
	atomic_int far_runs = 0;

	must_schedule(engine, 1000 * NS_PER_S, &count_kind, &far_runs);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(asleep_park_await(engine));
	probe_init(&probe, engine);
	must_schedule(engine, 5 * NS_PER_MS, &probe_final_kind, &probe);
	check_true(wait_until_at_least(&probe.runs, 1));
	check_int(far_runs, 0);
	real_engine_close(engine);
}

/* With one far timeout the worker must sleep between ticks, without a busy loop. */
Test(clock, idle_worker_sleeps)
{
	struct tw_engine *engine = real_engine_open(NULL);
	atomic_int runs = 0;
	struct tw_stats before;
	struct tw_stats after;
	int64_t begin_ns;

	must_schedule(engine, 60 * NS_PER_S, &count_kind, &runs);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_true(asleep_park_await(engine));
	begin_ns = monotonic_ns();
	before = stats_of(engine);
	sleep_ns(500 * NS_PER_MS);
	after = stats_of(engine);
	check_at_most(after.turns - before.turns, (monotonic_ns() - begin_ns) / NS_PER_MS + 50);
	real_engine_close(engine);
}

Test(clock, flush_of_a_new_engine_returns_at_once)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_flush(fixture.engine, 0), 0);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	fixture_close(&fixture);
}

Test(clock, flush_times_out_while_a_callback_blocks)
{
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	check_int(tw_engine_flush(fixture.engine, 0), -ETIMEDOUT);
	check_int(tw_engine_flush(fixture.engine, 10 * NS_PER_MS), -ETIMEDOUT);
	gate_open(&gate);
	check_int(tw_engine_flush(fixture.engine, PATIENCE_NS), 0);
	fixture_close(&fixture);
}

/* A rejected create must not take memory. */
Test(clock, rejected_create_allocates_nothing)
{
	static struct fault memory;
	struct tw_clock *clock = NULL;

	fault_init(&memory);
	check_int(tw_memory_allocator_set(&memory.allocator), 0);
	check_int(tw_clock_create_virtual(-1, &clock), -EINVAL);
	check_int(tw_clock_create_virtual(0, NULL), -EINVAL);
	check_int(atomic_load(&memory.calls), 0);
}
