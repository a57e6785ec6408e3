/* SPDX-License-Identifier: MIT */
/*
 * The linger of a kind: a new timer waits this long for its commit, and is never written if it ends
 * meanwhile.
 *
 * Seen to fail with these defects:
 * - one of the following does not end a linger: a flush, a close, a request, a step of the clock,
 *   too many bytes, a failure;
 * - a run waits for the end of the linger;
 * - a linger lasts beyond the timer's deadline;
 * - the bytes of lingering timers are not counted, or are still counted after the linger.
 */
#include "scene.h"

static struct tw_durable_stats stats(void)
{
	struct tw_durable_stats ret;

	check_int(tw_durable_stats_get(scene.set, &ret, sizeof ret), 0);
	return ret;
}

/* Schedules a timer of the kind `patient` and lets a second pass. */
static struct tw_durable_id linger_one(int64_t delay_ns, const char *payload)
{
	struct tw_durable_id id = scene_schedule(&patient, delay_ns, payload);

	scene_pass(SECOND);
	check_int(scene.disk->puts, 0);
	check_int(scene.set->linger_count, 1);
	/* A lingering timer does not occupy a slot in the table of staged timers. */
	cr_assert(scene.set->slots[id.serial & scene.set->slot_mask] == NULL);
	return id;
}

static bool acked(const void *context)
{
	for (size_t i = 0; i < scene.ack_count; i++) {
		if (scene.acks[i].context == context)
			return true;
	}
	return false;
}

Test(durable_linger, a_cancel_within_the_linger_absorbs, .init = scene_make, .fini = scene_end)
{
	static char payload[] = "a";
	struct tw_durable_id id;

	scene_open();
	id = linger_one(60 * SECOND, payload);
	check_int(tw_durable_cancel(scene.set, id, NULL), TW_DURABLE_ABSORBED);
	check_int(tw_durable_cancel(scene.set, id, NULL), TW_DURABLE_ABSENT);
	scene_pass(10 * SECOND);
	check_int(scene.disk->commits, 0);
	check_int(scene_ack(payload).outcome, TW_DURABLE_ABSORBED);
	check_int(stats().in_memory, 0);
	check_int(stats().staged_bytes, 0);
	scene_pass(60 * SECOND);
	check_int(scene.run_count, 0);
}

Test(durable_linger, a_survivor_is_stored_at_the_end_of_the_linger, .init = scene_make,
     .fini = scene_end)
{
	static char payload[] = "a";
	struct tw_durable_id id;

	scene_open();
	id = linger_one(600 * SECOND, payload);
	scene_pass(3 * SECOND);
	check_int(scene.disk->puts, 0);
	cr_assert(!acked(payload));
	scene_pass(2 * SECOND);
	check_int(scene.disk->puts, 1);
	check_int(scene_ack(payload).outcome, TW_DURABLE_DONE);
	/* The timer is far from due, so the set drops it from memory. */
	check_int(stats().in_memory, 0);
	check_int(tw_durable_cancel(scene.set, id, payload + 1), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(payload + 1).outcome, TW_DURABLE_DONE);
	check_int(scene.disk->rows, 0);
}

Test(durable_linger, a_run_within_the_linger_absorbs, .init = scene_make, .fini = scene_end)
{
	static char payload[] = "a";

	scene_open();
	(void)linger_one(3 * SECOND, payload);
	scene_pass(3 * SECOND);
	check_int(scene.run_count, 1);
	cr_assert(scene.runs[0].wall_ns - scene.runs[0].due_ns <= 2 * NS_PER_MS);
	check_int(scene.disk->commits, 0);
	check_int(scene_ack(payload).outcome, TW_DURABLE_ABSORBED);
	check_int(scene.set->linger_count, 0);
}

Test(durable_linger, a_retry_does_not_wait_for_the_linger, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;
	int64_t due_ns;

	scene_open();
	scene.result = TW_RETRY_AGAIN;
	id = linger_one(2 * SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	/* The retry stored the timer long before the linger would have ended. */
	cr_assert(disk_find(scene.disk, id) != NULL);
	check_int(disk_find(scene.disk, id)->attempt, 1);
	due_ns = disk_find(scene.disk, id)->due_ns;
	cr_assert(due_ns - scene.runs[0].due_ns < 10 * SECOND + SECOND);
	scene.result = TW_RETRY_DONE;
	scene_pass(11 * SECOND);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].attempt, 2);
	check_int(scene.disk->rows, 0);
}

Test(durable_linger, a_pending_run_ends_the_linger, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_RETRY_PENDING;
	id = linger_one(2 * SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	check_int(disk_find(scene.disk, id)->started, 1);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_DONE), 0);
	scene_settle();
	check_int(scene.disk->rows, 0);
}

Test(durable_linger, at_most_once_is_stored_before_its_deadline, .init = scene_make,
     .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	id = scene_schedule(&patient_once, 3 * SECOND, "a");
	scene_pass(SECOND);
	check_int(scene.disk->puts, 0);
	scene_pass(2 * SECOND - 2 * NS_PER_MS);
	check_int(scene.disk->puts, 1);
	check_int(disk_find(scene.disk, id)->started, 0);
	check_int(scene.run_count, 0);
	scene_pass(10 * NS_PER_MS);
	check_int(scene.run_count, 1);
	check_int(scene.disk->starts, 1);
}

Test(durable_linger, a_flush_ends_it, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)linger_one(60 * SECOND, "a");
	/*
	 * In this test no I/O thread runs, so the flush gets no answer in time. Its request stays.
	 */
	check_int(tw_durable_flush(scene.set, 1), -ETIMEDOUT);
	scene_settle();
	check_int(scene.disk->puts, 1);
	check_int(scene.set->linger_count, 0);
}

Test(durable_linger, a_request_for_the_timer_ends_it, .init = scene_make, .fini = scene_end)
{
	static char payload[] = "a";
	struct tw_durable_info info = {.size = sizeof info};
	struct tw_durable_id one, other;

	scene_open();
	one = linger_one(60 * SECOND, payload);
	other = scene_schedule(&patient, 60 * SECOND, "b");
	check_int(tw_durable_reschedule(scene.set, one, scene_wall() + SECOND, payload + 1),
		  -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(payload).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(payload + 1).outcome, TW_DURABLE_DONE);
	check_int(scene.disk->puts, 1);
	check_int(tw_durable_find(scene.set, other, &info, 1), -ETIMEDOUT);
	scene_settle();
	check_int(scene.disk->puts, 2);
	(void)scene_schedule(&patient, 60 * SECOND, "c");
	check_int(tw_durable_list(scene.set, NULL, &info, 1, 1), -ETIMEDOUT);
	scene_settle();
	check_int(scene.disk->puts, 3);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	cr_assert(scene.runs[0].id.serial == one.serial);
}

Test(durable_linger, a_close_stores_what_lingers_and_a_kill_loses_it, .init = scene_make,
     .fini = scene_end)
{
	static char payload[] = "a";
	struct tw_durable_id id;

	scene_open();
	id = linger_one(60 * SECOND, payload);
	scene_reopen();
	check_int(scene_ack(payload).outcome, TW_DURABLE_DONE);
	cr_assert(disk_find(scene.disk, id) != NULL);
	id = scene_schedule(&patient, 60 * SECOND, "b");
	scene_settle();
	scene_kill();
	cr_assert(disk_find(scene.disk, id) == NULL);
	scene_pass(61 * SECOND);
	check_int(scene.run_count, 1);
}

Test(durable_linger, a_key_does_not_linger, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &patient,
		.due_ns = 60 * SECOND,
		.key = "key",
		.key_bytes = 3,
	};

	scene_open();
	check_int(tw_durable_schedule(scene.set, &spec, NULL), 0);
	scene_settle();
	check_int(scene.disk->puts, 1);
}

Test(durable_linger, a_step_of_the_clock_ends_it, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)linger_one(60 * SECOND, "a");
	scene.wall_step_ns = 120 * SECOND;
	scene_pass(2 * NS_PER_MS);
	check_int(scene.run_count, 1);
	check_int(scene.set->linger_count, 0);
}

Test(durable_linger, ended_ones_make_room_for_others, .init = scene_make, .fini = scene_end)
{
	enum { MANY = 400 };
	struct tw_durable_id ids[MANY];

	scene.options.staged_bytes_max = 65536;
	scene_open();
	for (int i = 0; i < MANY; i++) {
		ids[i] = scene_schedule(&patient, 60 * SECOND, "a");
		scene_settle();
		if (i % 10 != 0)
			check_int(tw_durable_cancel(scene.set, ids[i], NULL), TW_DURABLE_ABSORBED);
	}
	cr_assert(stats().staged_bytes <= 65536 / 2);
	/* The timers that were not cancelled continue to linger. */
	check_int(scene.disk->puts, 0);
	for (int i = 0; i < MANY; i++) {
		(void)scene_schedule(&patient, 60 * SECOND, "a");
		scene_settle();
	}
	cr_assert(stats().staged_bytes <= 65536 / 2);
	cr_assert(scene.disk->puts > 0);
}

Test(durable_linger, what_lingers_counts_against_the_bound, .init = scene_make, .fini = scene_end)
{
	static unsigned char payload[4096];
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &patient,
		.due_ns = 60 * SECOND,
		.payload = payload,
		.payload_bytes = sizeof payload,
	};
	int error = 0, count = 0;

	scene.options.staged_bytes_max = 65536;
	scene_open();
	for (; count < 7; count++)
		check_int(tw_durable_schedule(scene.set, &spec, NULL), 0);
	scene_settle();
	check_int(scene.set->linger_count, 7);
	for (; error == 0; count++)
		error = tw_durable_schedule(scene.set, &spec, NULL);
	check_int(error, -EAGAIN);
	check_int(count, 16);
}

Test(durable_linger, after_a_failure_the_outcome_is_unknown, .init = scene_make, .fini = scene_end)
{
	static char payload[] = "a";

	scene_open();
	(void)linger_one(60 * SECOND, payload);
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -EIO;
	(void)scene_schedule(&plain, SECOND, "b");
	scene_pass(2 * SECOND);
	check_int(scene_ack(payload).outcome, TW_DURABLE_UNKNOWN);
	check_int(scene_ack(payload).status, -EIO);
	check_int(scene.set->linger_count, 0);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
}

Test(durable_linger, many_end_in_the_order_of_their_times, .init = scene_make, .fini = scene_end)
{
	enum { MANY = 2000 };

	scene_open();
	for (int i = 0; i < MANY; i++) {
		(void)scene_schedule(&patient, (int64_t)(i * 7919 % MANY + 1) * 2 * NS_PER_MS, "a");
		if (i % 100 == 0)
			scene_pass(NS_PER_MS);
	}
	scene_pass(3 * SECOND);
	for (size_t i = 1; i < scene.set->linger_count; i++)
		cr_assert(scene.set->lingers[i].until_ns >=
			  scene.set->lingers[(i - 1) / 2].until_ns);
	for (size_t i = 0; i < scene.set->linger_count; i++)
		check_int(scene.set->lingers[i].timer->linger_at, i + 1);
	scene_pass(3 * SECOND);
	check_int(scene.run_count, MANY);
	check_int(scene.disk->commits, 0);
	check_int(stats().absorbed, MANY);
}
