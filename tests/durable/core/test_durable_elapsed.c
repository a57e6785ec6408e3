/* SPDX-License-Identifier: MIT */
/*
 * Kinds that count elapsed time. Steps of the wall clock, closes, reboots and suspends must not
 * move their deadlines.
 *
 * Seen to fail with these defects: a step of the wall clock moves a deadline; after a step back, a
 * far timer is not loaded; the clock of elapsed time is lost at a close or a reboot; a step is not
 * stored before the reboot; a deadline is converted by the wrong clock when it is given or shown;
 * timers of the other clock fill the window of timers in memory.
 */
#include "scene.h"

#include "durable/request.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static void setup(void)
{
	scene_make();
	scene.elapsed = true;
}

static struct tw_durable_stats stats(void)
{
	struct tw_durable_stats ret;

	check_int(tw_durable_stats_get(scene.set, &ret, sizeof ret), 0);
	return ret;
}

/* Checks that the last run began this long after the start of the test, within two ticks. */
static void check_last_run(int64_t elapsed_ns)
{
	const struct scene_run *last = &scene.runs[scene.run_count - 1];

	cr_assert(scene.run_count != 0);
	cr_assert(last->boot_ns >= elapsed_ns && last->boot_ns <= elapsed_ns + 2 * NS_PER_MS,
		  "at %lld, not %lld", (long long)last->boot_ns, (long long)elapsed_ns);
}

static void reboot(void)
{
	scene_close();
	scene.boot++;
	scene.boot_start_ns = 7 * SECOND - tw_clock_now(scene.clock);
	scene_open();
}

Test(durable_elapsed, a_step_of_the_wall_clock_does_not_move_it, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 100 * SECOND, "a");
	(void)scene_schedule(&plain, 100 * SECOND, "b");
	scene_pass(SECOND);
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	/* Only the timer that follows the wall clock has run. */
	check_int(scene.run_count, 1);
	scene.wall_step_ns = -HOUR;
	scene_pass(97 * SECOND);
	check_int(scene.run_count, 1);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 2);
	check_last_run(100 * SECOND);
	check_int(scene.disk->rows, 0);
}

Test(durable_elapsed, a_step_back_does_not_hide_a_far_one, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 10 * MINUTE, "a");
	scene_pass(SECOND);
	check_int(stats().in_memory, 0);
	scene.wall_step_ns = -HOUR;
	scene_pass(11 * MINUTE);
	check_int(scene.run_count, 1);
	check_last_run(10 * MINUTE);
}

Test(durable_elapsed, a_step_while_it_is_closed_does_not_move_it, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 10 * MINUTE, "a");
	scene_pass(SECOND);
	scene_close();
	scene.wall_step_ns = HOUR;
	scene_open();
	scene_pass(9 * MINUTE);
	check_int(scene.run_count, 0);
	scene_kill();
	scene_pass(2 * MINUTE);
	check_int(scene.run_count, 1);
	check_last_run(10 * MINUTE);
}

Test(durable_elapsed, after_a_reboot_the_wall_clock_counts, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 10 * MINUTE, "a");
	scene_pass(SECOND);
	reboot();
	scene_pass(9 * MINUTE);
	check_int(scene.run_count, 0);
	scene_pass(2 * MINUTE);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].due_ns, WALL_START + 10 * MINUTE);
	cr_assert(scene.runs[0].wall_ns - scene.runs[0].due_ns <= 2 * NS_PER_MS);
}

/*
 * The wall clock was wrong before the step, and is right after it. The deadline must follow the
 * corrected clock.
 */
Test(durable_elapsed, a_step_before_the_reboot_is_not_counted_twice, .init = setup,
     .fini = scene_end)
{
	scene_open();
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	(void)scene_schedule(&counted, 10 * MINUTE, "a");
	scene_pass(SECOND);
	reboot();
	scene_pass(9 * MINUTE);
	check_int(scene.run_count, 0);
	scene_pass(2 * MINUTE);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].due_ns, WALL_START + HOUR + SECOND + 10 * MINUTE);
	cr_assert(scene.runs[0].wall_ns - scene.runs[0].due_ns <= 2 * NS_PER_MS);
	/*
	 * After the reboot, elapsed time counts from a new start. A step of the wall clock does not
	 * change elapsed time.
	 */
	(void)scene_schedule(&counted, 10 * MINUTE, "b");
	scene_pass(SECOND);
	scene.wall_step_ns = 0;
	scene_reopen();
	scene_pass(10 * MINUTE - 2 * SECOND);
	check_int(scene.run_count, 1);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 2);
}

Test(durable_elapsed, a_suspend_counts, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 100 * SECOND, "a");
	(void)scene_schedule(&counted, 10 * MINUTE, "b");
	scene_pass(SECOND);
	/*
	 * This is a suspend: boot time and wall time advance, while the engine's clock stands
	 * still.
	 */
	scene.boot_start_ns = 5 * MINUTE;
	scene.wall_step_ns = 5 * MINUTE;
	scene_pass(2 * NS_PER_MS);
	check_int(scene.run_count, 1);
	scene_pass(5 * MINUTE);
	check_int(scene.run_count, 2);
	check_last_run(10 * MINUTE);
	check_int(scene.disk->clocks, 1);
}

Test(durable_elapsed, a_suspend_that_holds_others_counts, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 100 * SECOND, "a");
	(void)scene_schedule(&counted, 100 * SECOND, "b");
	scene_pass(SECOND);
	scene.boot_start_ns = scene.wall_step_ns = 48 * HOUR;
	scene_pass(SECOND);
	check_int(scene.state, TW_DURABLE_STATE_CLOCK_STEPPED);
	check_int(scene.run_count, 1);
}

/* If no kind counts elapsed time, the set does not read the second clock. */
Test(durable_elapsed, without_such_kinds_no_clock_is_kept, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, SECOND, "a");
	scene.wall_step_ns = HOUR;
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.disk->clocks, 0);
}

Test(durable_elapsed, a_step_that_holds_others_does_not_hold_it, .init = setup, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, MINUTE, "a");
	(void)scene_schedule(&counted, MINUTE, "b");
	(void)scene_schedule(&counted, 10 * MINUTE, "c");
	scene_pass(SECOND);
	scene.wall_step_ns = 48 * HOUR;
	scene_pass(11 * MINUTE);
	check_int(scene.state, TW_DURABLE_STATE_CLOCK_STEPPED);
	check_int(scene.run_count, 2);
	check_last_run(10 * MINUTE);
	/*
	 * After a step of two days, the set runs no timers of the wall clock, and stores no clock,
	 * until it is resumed.
	 */
	check_int(scene.disk->clocks, 1);
	check_int(tw_durable_resume(scene.set, NULL), 0);
	scene_settle();
	check_int(scene.run_count, 3);
	check_int(scene.disk->clocks, 2);
	check_int(scene.disk->clock.step_ns, 48 * HOUR);
}

/* A deadline that is given after a step is a time of the stepped wall clock. */
Test(durable_elapsed, times_are_those_of_the_present_wall_clock, .init = setup, .fini = scene_end)
{
	struct tw_durable_info info = {.size = sizeof info};
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &counted,
		.flags = TW_DURABLE_AT,
	};
	struct tw_durable_id near_id, far_id;

	scene_open();
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	spec.due_ns = scene_wall() + MINUTE;
	check_int(tw_durable_schedule(scene.set, &spec, &near_id), 0);
	spec.due_ns = scene_wall() + 20 * MINUTE;
	check_int(tw_durable_schedule(scene.set, &spec, &far_id), 0);
	scene_settle();
	/* The deadline is stored as a time of the clock of elapsed time. */
	check_int(disk_find(scene.disk, near_id)->due_ns, WALL_START + SECOND + MINUTE);
	check_int(tw_durable_reschedule(scene.set, near_id, scene_wall() + 2 * MINUTE, NULL),
		  -EINPROGRESS);
	check_int(tw_durable_reschedule(scene.set, far_id, scene_wall() + MINUTE, NULL),
		  -EINPROGRESS);
	scene_settle();
	check_int(disk_find(scene.disk, near_id)->due_ns, WALL_START + SECOND + 2 * MINUTE);
	check_int(disk_find(scene.disk, far_id)->due_ns, WALL_START + SECOND + MINUTE);
	/* The timer `near_id` is just beyond the window of timers in memory. */
	check_int(stats().in_memory, 1);
	check_int(tw_durable_find(scene.set, far_id, &info, 1), -ETIMEDOUT);
	scene_settle();
	scene_pass(MINUTE + SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].due_ns, WALL_START + HOUR + SECOND + MINUTE);
	check_last_run(SECOND + MINUTE);
	cr_assert(stats().lag_max_ns <= 2 * NS_PER_MS);
	scene_pass(MINUTE);
	check_int(scene.run_count, 2);
	check_last_run(SECOND + 2 * MINUTE);
}

/*
 * After a step back, the clock of elapsed time is ahead of the wall clock. By the wall clock, none
 * of these timers would be near.
 */
Test(durable_elapsed, what_comes_near_is_loaded_by_its_own_clock, .init = setup, .fini = scene_end)
{
	struct tw_durable_id far_id, dead_id;

	scene_open();
	scene.result = TW_RETRY_GIVE_UP;
	dead_id = scene_schedule(&counted, SECOND, "a");
	scene_pass(2 * SECOND);
	scene.wall_step_ns = -HOUR;
	far_id = scene_schedule(&counted, 20 * MINUTE, "b");
	scene_pass(10 * MINUTE);
	check_int(stats().in_memory, 0);
	scene.result = TW_RETRY_DONE;
	check_int(tw_durable_reschedule(scene.set, far_id, scene_wall() + 10 * SECOND, NULL),
		  -EINPROGRESS);
	scene_settle();
	check_int(stats().in_memory, 1);
	check_int(tw_durable_dead_revive(scene.set, dead_id, scene_wall() + 10 * SECOND, NULL),
		  -EINPROGRESS);
	scene_settle();
	check_int(stats().in_memory, 2);
	scene_pass(10 * SECOND + 2 * NS_PER_MS);
	check_int(scene.run_count, 3);
}

Test(durable_elapsed, a_paused_one_waits_for_its_kind_only, .init = setup, .fini = scene_end)
{
	static const int64_t steps[] = {48 * HOUR, -HOUR};

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		scene_open();
		(void)scene_schedule(&counted, 10 * SECOND, "a");
		scene_pass(SECOND);
		check_int(tw_durable_pause(scene.set, &counted), 0);
		scene.wall_step_ns += steps[i];
		scene_pass(10 * SECOND);
		check_int(scene.run_count, i);
		check_int(tw_durable_resume(scene.set, &counted), 0);
		scene_settle();
		check_int(scene.run_count, i + 1);
		scene.wall_step_ns -= steps[i];
		scene_pass(SECOND);
		scene_close();
	}
}

Test(durable_elapsed, after_a_crash_its_starts_are_stored_by_its_own_clock, .init = setup,
     .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&counted, 10 * SECOND, "a");
	scene.wall_step_ns = -HOUR;
	scene_pass(SECOND);
	disk_cut(scene.disk);
	check_int(tw_clock_set(scene.clock, 20 * SECOND), 0);
	scene_kill();
	check_int(scene.run_count, 1);
	check_int(scene.disk->starts, 1);
	check_int(scene.disk->clocks, 2);
}

/* Asks for a page of one timer, as tw_durable_list() does, but without waiting. */
static struct tw_durable_info list_one(const struct tw_durable_info *after)
{
	struct tw_durable_id none = {0, 0};
	struct twi_request *request =
		twi_request_make(TWI_ITEM_LIST, after == NULL ? none : after->id, NULL, 0, 1);
	struct tw_durable_info info;

	request->behind = after != NULL;
	request->due_ns = after == NULL ? 0 : after->due_ns;
	request->kind = after == NULL ? NULL : &scene.set->kinds[scene.set->kind_count - 1];
	twi_request_send(scene.set, request, true);
	scene_settle();
	check_int(request->result, 0);
	check_int(request->count, 1);
	info = request->infos[0];
	twi_request_free(request);
	return info;
}

Test(durable_elapsed, a_list_shows_the_present_wall_clock, .init = setup, .fini = scene_end)
{
	struct tw_durable_info first, second;

	scene_open();
	scene.wall_step_ns = -HOUR;
	scene_pass(SECOND);
	(void)scene_schedule(&counted, MINUTE, "a");
	(void)scene_schedule(&counted, 2 * MINUTE, "b");
	scene_settle();
	first = list_one(NULL);
	second = list_one(&first);
	cr_assert(first.kind == &counted);
	check_int(first.due_ns, scene_wall() + MINUTE);
	check_int(second.due_ns, scene_wall() + 2 * MINUTE);
}

Test(durable_elapsed, retries_and_periods_count_it_too, .init = setup, .fini = scene_end)
{
	scene_open();
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	(void)scene_schedule(&counted, SECOND, "a");
	scene.result = TW_RETRY_AGAIN;
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	scene.wall_step_ns = 0;
	scene.result = TW_RETRY_DONE;
	scene_pass(11 * SECOND);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].attempt, 2);
	check_last_run(12 * SECOND);
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	(void)scene_schedule(&counted, SECOND, "b");
	scene.result = TW_DURABLE_NEXT;
	scene.next_ns = scene_wall() + 30 * SECOND;
	scene_pass(2 * SECOND);
	scene.result = TW_RETRY_DONE;
	scene_pass(30 * SECOND);
	check_int(scene.run_count, 4);
	check_int(scene.runs[3].due_ns, scene.next_ns);
	cr_assert(scene.runs[3].wall_ns - scene.next_ns <= 2 * NS_PER_MS);
}

Test(durable_elapsed, a_dead_letter_is_revived_by_the_present_wall_clock, .init = setup,
     .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_RETRY_GIVE_UP;
	id = scene_schedule(&counted, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(disk_dead(scene.disk), 1);
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	check_int(tw_durable_dead_revive(scene.set, id, scene_wall() + MINUTE, NULL), -EINPROGRESS);
	scene.result = TW_RETRY_DONE;
	scene_pass(MINUTE - SECOND);
	check_int(scene.run_count, 1);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 2);
	check_last_run(3 * SECOND + MINUTE);
	check_int(scene.disk->rows, 0);
}

Test(durable_elapsed, one_window_does_not_fill_the_other, .init = setup, .fini = scene_end)
{
	enum { MANY = 100 };

	scene_open();
	for (int i = 0; i < MANY; i++)
		(void)scene_schedule(&plain, MINUTE + i * SECOND / MANY, "a");
	(void)scene_schedule(&counted, MINUTE - SECOND, "b");
	scene_settle();
	scene_close();
	scene.options.near_max = 10;
	scene_open();
	check_int(stats().in_memory, 6);
	scene_pass(MINUTE - SECOND / 2);
	check_int(scene.run_count, 1);
	check_last_run(MINUTE - SECOND);
	scene_pass(5 * SECOND);
	check_int(scene.run_count, MANY + 1);
	check_int(scene.disk->rows, 0);
}

Test(durable_elapsed, least_window_holds_a_timer_of_each_clock, .init = setup, .fini = scene_end)
{
	scene.options.near_max = 1;
	scene_open();
	for (int i = 0; i < 3; i++) {
		(void)scene_schedule(&plain, MINUTE, "a");
		(void)scene_schedule(&counted, MINUTE, "b");
	}
	scene_settle();
	scene_reopen();
	check_int(stats().in_memory, 2);
	scene_pass(MINUTE + SECOND);
	check_int(scene.run_count, 6);
}

Test(durable_elapsed, each_window_has_half_of_the_bytes, .init = setup, .fini = scene_end)
{
	enum { ROWS = 200, ROW_BYTES = 1000 };
	static unsigned char payload[ROW_BYTES];
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &plain,
		.due_ns = MINUTE,
		.payload = payload,
		.payload_bytes = ROW_BYTES,
	};

	scene_open();
	for (int i = 0; i < ROWS; i++)
		check_int(tw_durable_schedule(scene.set, &spec, NULL), 0);
	scene_settle();
	scene_close();
	scene.options.near_bytes_max = 65536;
	scene_open();
	cr_assert(stats().memory_bytes >= 32768 && stats().memory_bytes < 32768 + 2 * ROW_BYTES);
	scene_pass(MINUTE + SECOND);
	check_int(scene.run_count, ROWS);
}

Test(durable_elapsed, a_store_that_cannot_is_rejected, .init = setup, .fini = scene_end)
{
	static const struct tw_durable_kind *const kinds[] = {&plain, &counted};
	struct tw_durable *set;

	scene.options.store = disk_store_least(scene.disk);
	check_int(tw_durable_open(scene.engine, kinds, 2, &scene.options, &set), -ENOTSUP);
	scene.options.store = disk_store_least(scene.disk);
	check_int(tw_durable_open(scene.engine, kinds, 1, &scene.options, &set), 0);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	/* Without kinds that count elapsed time, the set does not ask the store for a clock. */
	check_int(scene.disk->clocks, 0);
}

Test(durable_elapsed, a_clock_that_is_out_of_range_is_damaged, .init = setup, .fini = scene_end)
{
	static const struct tw_durable_clock clocks[] = {
		{"first", INT64_MAX, 0},
		{"first", INT64_MIN, 0},
		{"first", 0, INT64_MAX},
		{"first", 0, INT64_MIN},
		{"0123456789012345678901234567890123456789", 0, 0},
	};

	scene.disk->has_clock = true;
	for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
		scene.disk->clock = clocks[i];
		check_int(scene_try_open(), -EUCLEAN);
	}
	scene.disk->has_clock = false;
	scene.disk->clock_fault = -EIO;
	check_int(scene_try_open(), -EIO);
	scene.set = NULL;
}

Test(durable_elapsed, clock_is_stored_after_a_retry_or_fails_the_set, .init = setup,
     .fini = scene_end)
{
	scene_open();
	scene.disk->clock_fault = -EAGAIN;
	scene.wall_step_ns = HOUR;
	scene_pass(SECOND);
	check_int(scene.state, TW_DURABLE_STATE_OPEN);
	check_int(scene.disk->clock.step_ns, 0);
	scene.disk->clock_fault = 0;
	scene_pass(SECOND);
	check_int(scene.disk->clock.step_ns, HOUR);
	scene.disk->clock_fault = -EIO;
	scene.wall_step_ns = 0;
	scene_pass(SECOND);
	check_int(scene.state, TW_DURABLE_STATE_FAILED);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
}
