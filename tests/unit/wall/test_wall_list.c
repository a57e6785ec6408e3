/* SPDX-License-Identifier: MIT */
/*
 * The memory of the list of dates, in virtual time. When a timeout comes into the list, the worker
 * drops others that no longer depend on the wall clock. So the list must not grow while it holds
 * such timeouts.
 *
 * Seen to fail with these defects: a timeout that has run stays in the list; so does one that was
 * rescheduled.
 */
#include "fault.h"
#include "wall_scene.h"

/* A number of timeouts that fills the list, so that one more makes it grow. */
enum { ROOM = 4096, BLOCKS = 4 * ROOM };

static struct wall_scene scene;
static struct fault fault;
static struct tw_handle dates[ROOM], others[BLOCKS];
static atomic_int runs;

/* Schedules and cancels timeouts without a date, so that later timeouts find all memory that they
 * need besides the list. Returns how many bytes were in use meanwhile. */
static long long others_come_and_go(int count)
{
	long long bytes;

	for (int i = 0; i < count; i++)
		others[i] = must_schedule(scene.fixture.engine, HOUR_NS, &count_kind, &runs);
	fixture_flush(&scene.fixture);
	bytes = fault.live_bytes;
	for (int i = 0; i < count; i++)
		check_int(tw_cancel(others[i]), TW_CANCEL_DONE);
	fixture_flush(&scene.fixture);
	return bytes;
}

static void dates_come(int64_t date_ns)
{
	for (int i = 0; i < ROOM; i++)
		dates[i] = must_wall(&scene, date_ns, &count_kind, &runs);
	fixture_flush(&scene.fixture);
}

/* Opens a loop whose list is full. In a loop, this thread does the worker's work, and only when
 * the test wants it. So each run of the test uses the same memory. */
static void full_open(void)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	wall_open(&scene, &options);
	(void)others_come_and_go(BLOCKS);
	dates_come(DATE_NS + HOUR_NS);
	atomic_store(&runs, 0);
}

Test(wall_list, timeouts_that_have_run_leave_their_room)
{
	long long bytes;

	full_open();
	wall_step(&scene, HOUR_NS);
	check_int(runs, ROOM);
	bytes = others_come_and_go(ROOM);
	dates_come(DATE_NS + 2 * HOUR_NS);
	check_at_most(fault.live_bytes, bytes);
	fixture_close(&scene.fixture);
}

Test(wall_list, rescheduled_timeouts_leave_their_room)
{
	long long bytes;

	full_open();
	for (int i = 0; i < ROOM; i++)
		check_int(tw_reschedule(dates[i], 100 * HOUR_NS), TW_RESCHEDULE_DONE);
	bytes = others_come_and_go(ROOM);
	dates_come(DATE_NS + 2 * HOUR_NS);
	check_at_most(fault.live_bytes, bytes);
	check_int(runs, 0);
	fixture_close(&scene.fixture);
}
