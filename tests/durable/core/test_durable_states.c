/* SPDX-License-Identifier: MIT */
/*
 * Conditions that restrict a set, alone and together: a log that is too long, a full store, a step
 * of the clock. After a step the set holds its timers: it does not run them until the set is
 * resumed.
 *
 * Seen to fail with these defects:
 * - when the store becomes full, the set no longer holds its timers after a step;
 * - when the store has space again, the set forgets the held timers;
 * - after a step, the set accepts new timers although the log is too long;
 * - a log of exactly the bound counts as too long;
 * - while the log is too long, the set holds runs, or the ends of timers;
 * - the set reports a state twice.
 */
#include "scene.h"

#define DAY (86400 * SECOND)

static uint64_t state(void)
{
	struct tw_durable_stats stats;

	check_int(tw_durable_stats_get(scene.set, &stats, sizeof stats), 0);
	return stats.state;
}

static uint64_t log_bytes(void)
{
	struct tw_durable_stats stats;

	check_int(tw_durable_stats_get(scene.set, &stats, sizeof stats), 0);
	return stats.log_bytes;
}

static int try_schedule(const char *payload)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &plain,
		.due_ns = 3600 * SECOND,
		.payload = payload,
		.payload_bytes = 1,
		.context = (void *)(uintptr_t)payload,
	};

	return tw_durable_schedule(scene.set, &spec, NULL);
}

static void step(int64_t ns)
{
	scene.wall_step_ns += ns;
	scene_pass(2 * SECOND);
}

/* Makes the store full in the commit of one new timer. */
static void fill_once(const char *payload)
{
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -ENOSPC;
	check_int(try_schedule(payload), 0);
	scene_settle();
	check_int(scene_ack(payload).status, -ENOSPC);
}

Test(durable_states, a_long_log_refuses_new_timers_alone, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;
	int reports;

	scene_open();
	(void)scene_schedule(&plain, 5 * SECOND, "a");
	id = scene_schedule(&plain, 3600 * SECOND, "b");
	scene_settle();
	reports = scene.states;
	scene.disk->log_bytes = (UINT64_C(1) << 30) + 1;
	scene_pass(2 * SECOND);
	check_int(state(), TW_DURABLE_STATE_SLOW);
	check_int(scene.state, TW_DURABLE_STATE_SLOW);
	check_int(scene.error, 0);
	check_int(log_bytes(), scene.disk->log_bytes);
	check_int(try_schedule("c"), -EAGAIN);
	check_int(tw_durable_cancel(scene.set, id, NULL), -EINPROGRESS);
	scene_pass(5 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.disk->rows, 0);
	check_int(scene.states, reports + 1);
	scene.disk->log_bytes = UINT64_C(1) << 30;
	scene_pass(2 * SECOND);
	check_int(state(), TW_DURABLE_STATE_OPEN);
	check_int(try_schedule("d"), 0);
	scene_settle();
	check_int(scene.disk->rows, 1);
}

Test(durable_states, no_bound_and_no_log_are_never_slow, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_store store;

	scene.options.log_bytes_max = 0;
	scene_open();
	scene.disk->log_bytes = UINT64_MAX;
	scene_pass(3 * SECOND);
	check_int(state(), TW_DURABLE_STATE_OPEN);
	check_true(log_bytes() == UINT64_MAX);
	scene_close();
	store = disk_store_least(scene.disk);
	check_int(store.ops->log_bytes == NULL, true);
	store.ops->close(store.store, 1);
}

Test(durable_states, a_full_store_does_not_end_the_hold_of_a_step, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 10 * SECOND, "a");
	scene_settle();
	step(2 * DAY);
	check_int(state(), TW_DURABLE_STATE_CLOCK_STEPPED);
	fill_once("b");
	check_int(state(), TW_DURABLE_STATE_CLOCK_STEPPED);
	check_int(try_schedule("c"), -ENOSPC);
	check_int(scene.run_count, 0);
	step(-2 * DAY);
	check_int(state(), TW_DURABLE_STATE_OPEN);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 1);
}

Test(durable_states, a_full_store_is_shown_when_the_step_has_ended, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	step(2 * DAY);
	fill_once("a");
	check_int(tw_durable_resume(scene.set, NULL), 0);
	scene_settle();
	check_int(state(), TW_DURABLE_STATE_FULL);
	check_int(scene.error, -ENOSPC);
	scene_pass(3 * SECOND);
	check_int(state(), TW_DURABLE_STATE_OPEN);
}

Test(durable_states, a_step_does_not_end_the_refusal_of_a_long_log, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.disk->log_bytes = UINT64_MAX;
	scene_pass(2 * SECOND);
	check_int(state(), TW_DURABLE_STATE_SLOW);
	step(2 * DAY);
	check_int(state(), TW_DURABLE_STATE_CLOCK_STEPPED);
	check_int(try_schedule("a"), -EAGAIN);
	step(-2 * DAY);
	check_int(state(), TW_DURABLE_STATE_SLOW);
}

Test(durable_states, a_failure_is_shown_before_all_others, .init = scene_make, .fini = scene_end)
{
	scene_open();
	scene.disk->log_bytes = UINT64_MAX;
	step(2 * DAY);
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = UINT64_MAX / 2;
	scene.disk->fault = -EIO;
	(void)tw_durable_cancel(scene.set, (struct tw_durable_id){1, 1}, NULL);
	scene_settle();
	check_int(scene.state, TW_DURABLE_STATE_FAILED);
	check_int(scene.error, -EIO);
	step(-2 * DAY);
	check_int(state(), TW_DURABLE_STATE_FAILED);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
}

Test(durable_states, a_new_open_accepts_a_step_forward, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 3600 * SECOND, "a");
	scene_settle();
	step(2 * DAY);
	check_int(state(), TW_DURABLE_STATE_CLOCK_STEPPED);
	check_int(scene.run_count, 0);
	scene_reopen();
	scene_pass(2 * SECOND);
	check_int(state(), TW_DURABLE_STATE_OPEN);
	check_int(scene.run_count, 1);
}
