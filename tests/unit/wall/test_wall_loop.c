/* SPDX-License-Identifier: MIT */
/*
 * Timeouts at dates in loop mode and with executors, in virtual time.
 *
 * Seen to fail with these defects: a loop does not check the count of steps before it sleeps; a step
 * forward gives each date a new deadline, even a later one.
 */
#include "dispatch_scene.h"
#include "wall_scene.h"

#include <errno.h>
#include <poll.h>

static struct wall_scene scene;

static void loop_open(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	wall_open(&scene, &options);
}

static bool readable(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	return poll(&polled, 1, 0) > 0;
}

/* Polls until the descriptor is no longer readable. Returns how many timeouts ran. */
static int64_t polls(int fd)
{
	int64_t runs = 0;

	do
		runs += tw_engine_poll(scene.fixture.engine, 0);
	while (readable(fd));
	return runs;
}

Test(wall_loop, a_date_in_the_past_runs_in_the_next_poll)
{
	struct probe probe;

	loop_open();
	(void)probe_wall(&scene, &probe, DATE_NS - 1);
	check_at_most(tw_engine_next_due(scene.fixture.engine), scene.fixture.now_ns);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

/* The loop's descriptor is made before the first date is scheduled. */
Test(wall_loop, a_step_makes_the_descriptor_readable)
{
	struct probe probe;
	int fd;

	loop_open();
	fd = tw_engine_fd(scene.fixture.engine);
	(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	check_true(readable(fd));
	check_int(polls(fd), 0);
	check_int(tw_clock_set_wall(scene.fixture.clock, DATE_NS + HOUR_NS), 0);
	check_true(readable(fd));
	check_int(polls(fd), 1);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

/* A step back needs one poll. After that the loop must sleep longer. */
Test(wall_loop, next_due_follows_the_wall_clock)
{
	struct tw_engine *engine;
	struct probe probe;

	loop_open();
	engine = scene.fixture.engine;
	(void)probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	check_int(tw_engine_poll(engine, 0), 0);
	check_at_most(tw_engine_next_due(engine), 4 * HOUR_NS + scene.fixture.tick_ns);
	check_int(tw_clock_set_wall(scene.fixture.clock, DATE_NS + HOUR_NS / 2), 0);
	check_int(tw_engine_next_due(engine), 0);
	check_int(tw_engine_poll(engine, 0), 0);
	check_at_most(tw_engine_next_due(engine),
		      3 * HOUR_NS + HOUR_NS / 2 + scene.fixture.tick_ns);
	check_int(tw_clock_set_wall(scene.fixture.clock, DATE_NS), 0);
	check_int(tw_engine_next_due(engine), 0);
	check_int(tw_engine_poll(engine, 0), 0);
	check_int(tw_clock_set(scene.fixture.clock, 4 * HOUR_NS - 1), 0);
	check_int(tw_engine_poll(engine, 0), 0);
	check_int(tw_clock_set(scene.fixture.clock, 4 * HOUR_NS + 1), 0);
	check_int(tw_engine_poll(engine, 0), 1);
	fixture_close(&scene.fixture);
}

/* The run of a date that has passed is held up, and the wall clock is stepped forward meanwhile. The
 * step must not make the run look less late. */
Test(wall_loop, a_step_hides_no_lateness)
{
	struct tw_options options = fixture_options();
	struct probe one, two;
	struct tw_engine *engine;

	options.flags = TW_ENGINE_LOOP;
	options.late_ns = (uint64_t)NS_PER_S;
	wall_open(&scene, &options);
	engine = scene.fixture.engine;
	(void)probe_wall(&scene, &one, DATE_NS + NS_PER_S);
	(void)probe_wall(&scene, &two, DATE_NS + NS_PER_S);
	check_int(tw_engine_poll(engine, 0), 0);
	check_int(tw_clock_set(scene.fixture.clock, scene.fixture.now_ns + HOUR_NS), 0);
	check_int(tw_clock_set_wall(scene.fixture.clock, DATE_NS + 2 * HOUR_NS), 0);
	/* This poll also notices the step. */
	check_int(tw_engine_poll(engine, 1), 1);
	check_int(tw_engine_poll(engine, 1), 1);
	check_int(one.runs + two.runs, 2);
	check_int(stats_of(engine).late, 2);
	fixture_close(&scene.fixture);
}

/* A timeout with a date must not run before one with an earlier date. Equal dates must keep
 * their order. */
Test(wall_loop, equal_dates_run_in_the_order_of_their_scheduling)
{
	enum { COUNT = 64 };
	static atomic_int ran[COUNT];

	loop_open();
	for (int i = 0; i < COUNT; i++) {
		struct tw_timeout seen = {.size = sizeof seen};
		struct tw_handle handle =
			must_wall(&scene, DATE_NS + NS_PER_S + i / 8, &count_kind, &ran[i]);

		check_int(tw_timeout_get(handle, &seen), 0);
		check_int(seen.deadline_ns, scene.fixture.now_ns + NS_PER_S + i / 8);
	}
	check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
	check_int(tw_clock_set(scene.fixture.clock, scene.fixture.now_ns + 2 * NS_PER_S), 0);
	for (int i = 0; i < COUNT; i++) {
		check_int(tw_engine_poll(scene.fixture.engine, 1), 1);
		check_int(ran[i], 1);
	}
	fixture_close(&scene.fixture);
}

/* A cancel must still work while the timeout is in an executor's queue: the callback must not
 * run. */
Test(wall_executor, cancelled_in_the_queue_it_does_not_run)
{
	struct tw_options options = executor_options(TW_REJECTION_RUN, QUEUE);
	struct tw_handle handle;
	struct probe probe;

	wall_open(&scene, &options);
	handle = probe_wall(&scene, &probe, DATE_NS);
	fixture_flush(&scene.fixture);
	check_int(executor.count, 1);
	check_true(executor.asked[0] == &probe);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_CANCELLED);
	check_int(probe.finalised, 1);
	fixture_close(&scene.fixture);
}

Test(wall_executor, in_an_executor_it_runs_once)
{
	struct tw_options options = executor_options(TW_REJECTION_RUN, QUEUE);
	struct tw_handle handle;
	struct probe probe;

	wall_open(&scene, &options);
	handle = probe_wall(&scene, &probe, DATE_NS + HOUR_NS);
	fixture_flush(&scene.fixture);
	check_int(executor.offered, 0);
	wall_step(&scene, HOUR_NS);
	check_int(executor.count, 1);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(probe.runs, 1);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	check_true(tw_due_run(&executor.due[0]) != 0);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}

Test(wall_executor, one_that_is_rejected_is_dropped)
{
	struct tw_options options = executor_options(TW_REJECTION_DROP, 0);
	struct probe probe;

	wall_open(&scene, &options);
	dropped.engine = scene.fixture.engine;
	(void)probe_wall(&scene, &probe, DATE_NS);
	fixture_flush(&scene.fixture);
	check_int(dropped.count, 1);
	check_true(dropped.arg == &probe);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_DROPPED);
	fixture_close(&scene.fixture);
}

/* A rejected timeout is offered again at its date, so after a step back it must wait. */
Test(wall_executor, requeued_timeout_waits_for_its_date_after_a_step_back)
{
	struct tw_options options = executor_options(TW_REJECTION_REQUEUE, 0);
	struct probe probe;

	wall_open(&scene, &options);
	(void)probe_wall(&scene, &probe, DATE_NS);
	fixture_flush(&scene.fixture);
	check_int(executor.offered, 1);
	wall_step(&scene, -HOUR_NS);
	executor.accept = QUEUE;
	wall_pass(&scene, 2 * scene.fixture.tick_ns);
	check_int(executor.count, 0);
	wall_pass(&scene, HOUR_NS);
	check_int(executor.count, 1);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(probe.runs, 1);
	fixture_close(&scene.fixture);
}
